/* SPDX-License-Identifier: MIT */
/* guests.h - for tests of src/sync: who waits, misuse, and futures polled by hand. */
#ifndef SINEW_TESTS_GUESTS_H
#define SINEW_TESTS_GUESTS_H

#include "harness.h"
#include "sync/gate.h"
#include "unit/task/with_runtime.h"

#include <pthread.h>

#ifdef SINEW_DEBUG
#define MISUSE_CASE(name, code, sentence) \
    FAIL_TEST(name, sentence)             \
    {                                     \
        (void)misuse_##name();            \
    }
#else
#define MISUSE_CASE(name, code, sentence)  \
    TEST(name)                             \
    {                                      \
        CHECK_EQ(misuse_##name(), (code)); \
    }
#endif
/* MISUSE_TEST(name, code, sentence) { return what the misused call returned; } */
#define MISUSE_TEST(name, code, sentence) \
    static int misuse_##name(void);       \
    MISUSE_CASE(name, code, sentence)     \
    static int misuse_##name(void)

/* How many wait at a gate. */
static inline unsigned guests_at(sn_gate_ *gate)
{
    uint64_t word = sni_gate_lock(gate);
    const struct sni_list *first = gate->first_;
    unsigned n = 0;
    for (const struct sni_list *link = first; link != NULL; n++)
        link = link->next == first ? NULL : link->next;
    sni_gate_unlock(gate, word);
    return n;
}

/* Let others run until `n` wait at the gate. */
static inline void until_guests(sn_gate_ *gate, unsigned n)
{
    while (guests_at(gate) != n)
        sn_yield();
}

typedef SNI_ATOMIC(int) guest_flag;

/* Let others run until one waits at the gate, or has done so and set the flag: its time may be up
 * before we look. */
static inline void until_guest_or(sn_gate_ *gate, guest_flag *has_left)
{
    while (guests_at(gate) != 1 && !sni_atomic_load(has_left, seq_cst))
        sn_yield();
}

/* A future that is polled by hand, and how often its waker was woken. */
struct by_hand {
    SNI_ATOMIC(int) wakes;
};

static inline int by_hand_wake(void *data)
{
    sni_atomic_fetch_add(&((struct by_hand *)data)->wakes, 1, seq_cst);
    return 0;
}

static inline sn_poll poll_by_hand(sn_future *fut, struct by_hand *hand)
{
    static const sn_waker_vtable vt = {.wake_by_ref = by_hand_wake};
    sn_waker waker = {&vt, hand};
    sn_cx cx = {&waker};
    return sn_future_poll(fut, &cx);
}

static inline void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    CHECK_EQ(pthread_create(thread, NULL, fn, arg), 0);
}

/* The thread needs no task of this worker to end. */
static inline void join_thread(pthread_t thread)
{
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

#endif
