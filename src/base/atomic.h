/* SPDX-License-Identifier: MIT */
/* atomic.h - every atomic operation of the house goes through these names.
 *
 * A shared word is declared SNI_ATOMIC(type): a struct, so that reading it without an
 * operation does not compile. The order is an argument by its bare name (relaxed, acquire,
 * release, acq_rel, seq_cst), because each use must say which one it needs and why.
 *
 * The facade is where a test takes over: compiled with SNI_ATOMIC_STEP defined as a
 * function-like macro, each operation first calls it, so that an explorer decides what
 * another thread or an interrupt handler does at that very point. Compiled with SNI_MODEL
 * defined as the name of a header, the operations are all that header's: so tests/model also
 * decides when a store becomes visible, and checks what the orders promise.
 *
 * The compiler's own operations stand behind the names, not <stdatomic.h>: they act on plain
 * integers, so that public structs can hold a shared word and still be C++. */
#ifndef SINEW_BASE_ATOMIC_H
#define SINEW_BASE_ATOMIC_H

#include <stdint.h>

#define SNI_ATOMIC(type) \
    struct {             \
        type raw_;       \
    }

#define SNI_ORDER_relaxed __ATOMIC_RELAXED
#define SNI_ORDER_acquire __ATOMIC_ACQUIRE
#define SNI_ORDER_release __ATOMIC_RELEASE
#define SNI_ORDER_acq_rel __ATOMIC_ACQ_REL
#define SNI_ORDER_seq_cst __ATOMIC_SEQ_CST

#ifdef SNI_MODEL
#include SNI_MODEL
#else

#ifndef SNI_ATOMIC_STEP
#define SNI_ATOMIC_STEP() ((void)0)
#endif

#define sni_atomic_load(a, order) \
    (SNI_ATOMIC_STEP(), __atomic_load_n(&(a)->raw_, SNI_ORDER_##order))

#define sni_atomic_store(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_store_n(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_exchange(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_exchange_n(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_fetch_or(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_fetch_or(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_fetch_and(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_fetch_and(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_fetch_add(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_fetch_add(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_fetch_sub(a, v, order) \
    (SNI_ATOMIC_STEP(), __atomic_fetch_sub(&(a)->raw_, (v), SNI_ORDER_##order))

#define sni_atomic_fence(order) (SNI_ATOMIC_STEP(), __atomic_thread_fence(SNI_ORDER_##order))

/* A fence for the compiler alone; the other half is a fence that another thread has the kernel put
 * into this one (sni_plat_fence_all). */
#define sni_atomic_half_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Strong compare and swap; `expected` is a pointer and learns what was found. */
#define sni_atomic_cas(a, expected, v, success, failure)                            \
    (SNI_ATOMIC_STEP(), __atomic_compare_exchange_n(&(a)->raw_, (expected), (v), 0, \
                                                    SNI_ORDER_##success, SNI_ORDER_##failure))

#endif /* SNI_MODEL */

/* A plain word that another thread may be writing: for a guess that does no harm if it is wrong. */
#define sni_guess(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

#endif
