/* SPDX-License-Identifier: MIT */
/* counting_waker.h - a waker that counts references and wakes, for tests. */
#ifndef SINEW_TESTS_COUNTING_WAKER_H
#define SINEW_TESTS_COUNTING_WAKER_H

#include <sinew/future.h>
#include <stdatomic.h>

struct counting_waker {
    atomic_int refs;
    atomic_int wakes;
    atomic_int clones;
};

/* A first reference to `counter`; drop it at the end and check that `refs` is 0. */
sn_waker counting_waker_init(struct counting_waker *counter);

#endif
