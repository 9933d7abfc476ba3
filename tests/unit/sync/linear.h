/* SPDX-License-Identifier: MIT */
/* linear.h - is what happened to an object linearizable?
 *
 * A history is a number of calls, and when each began and ended by a common counter. It is good if
 * there is an order of the calls, in which none comes before one that had ended when it began, and
 * which the object could have had, were they made one after the other. See linear.c for what the
 * objects can do. */
#ifndef SINEW_TESTS_LINEAR_H
#define SINEW_TESTS_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LINEAR_CALLS_MAX = 24,
};

/* What was called. */
enum linear_what {
    LINEAR_SEND, /* a channel's */
    LINEAR_RECV,
    LINEAR_CLOSE,
    LINEAR_LOCK, /* a mutex's, a lock's for reading and writing; a semaphore's are these, with units
                    as the value */
    LINEAR_UNLOCK,
    LINEAR_LOCK_SHARED,
    LINEAR_UNLOCK_SHARED,
    LINEAR_DOWNGRADE,
};

struct linear_call {
    enum linear_what what;
    bool is_patient; /* may have waited: -ETIMEDOUT then only says that it did not take place */
    int value;
    int rc;
    uint64_t began, ended;
    int actor; /* who called; needed for what has an owner */
};

/* What an object is. */
enum linear_kind {
    LINEAR_CHAN,   /* size: its capacity, 0 for a rendezvous */
    LINEAR_MUTEX,  /* size: of no meaning                    */
    LINEAR_SEM,    /* size: the units to begin with          */
    LINEAR_RWLOCK, /* size: of no meaning                    */
};

struct linear_history {
    struct linear_call calls[LINEAR_CALLS_MAX];
    int n;
    enum linear_kind kind;
    int size;
};

/* Look for such an order. Not for two threads at a time. */
bool is_linearizable(const struct linear_history *h);

/* For people, on standard error. */
void linear_print(const struct linear_history *h);

#endif
