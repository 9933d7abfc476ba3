/* SPDX-License-Identifier: MIT */
/* guard.h - what the running task must undo if it ends here and now: by a panic, or because it is
 * given up.
 *
 * A guard lies in the frame of who has something to undo, and stands among the values of the task
 * (task/local.c), which go with it whatever happens. It is taken out by the same frame. */
#ifndef SINEW_WAIT_GUARD_H
#define SINEW_WAIT_GUARD_H

#include <sinew/local.h>

struct sni_local_value {
    struct sni_local_value *next;
    const sn_local *key;
    void *value;
};

struct sni_guard {
    struct sni_local_value place; /* the task's                       */
    void (*undo)(struct sni_guard *guard);
};

#endif
