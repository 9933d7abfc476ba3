/* SPDX-License-Identifier: MIT */
/* model_atomic.h - the operations of base/atomic.h as the explorer's; included by it when SNI_MODEL
 * names this file.
 *
 * Each operation is a step: other virtual threads may run before it. It tells its order and the
 * function it stands in, so that a test can plant a mistake at a named place. Values pass as 64
 * bits; results pass by address, so that they keep their types without a cast. */
#ifndef SINEW_TESTS_MODEL_ATOMIC_H
#define SINEW_TESTS_MODEL_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A result that is taken by address and then not used is nothing to warn about. */
#pragma GCC diagnostic ignored "-Wunused-value"

enum model_rmw { MODEL_EXCHANGE, MODEL_OR, MODEL_AND, MODEL_ADD, MODEL_SUB };

void *model_load(const void *at, size_t bytes, int order, const char *function);
void model_store(void *at, size_t bytes, uint64_t value, int order, const char *function);
void *model_rmw(void *at, size_t bytes, enum model_rmw op, uint64_t operand, int order,
                const char *function);
bool model_cas(void *at, size_t bytes, void *expected, uint64_t value, int success, int failure,
               const char *function);
void model_fence(int order, const char *function);

#define MODEL_TYPED_(a, result) (*(__typeof__(&(a)->raw_))(result))
#define MODEL_PLACE_(a)         &(a)->raw_, sizeof((a)->raw_)
#define MODEL_VALUE_(v)         ((uint64_t)(uintptr_t)(v))
#define MODEL_RMW_(a, op, v, order) \
    MODEL_TYPED_(a, model_rmw(MODEL_PLACE_(a), op, MODEL_VALUE_(v), SNI_ORDER_##order, __func__))

#define sni_atomic_load(a, order) \
    MODEL_TYPED_(a, model_load(MODEL_PLACE_(a), SNI_ORDER_##order, __func__))

#define sni_atomic_store(a, v, order) \
    model_store(MODEL_PLACE_(a), MODEL_VALUE_(v), SNI_ORDER_##order, __func__)

#define sni_atomic_exchange(a, v, order)  MODEL_RMW_(a, MODEL_EXCHANGE, v, order)
#define sni_atomic_fetch_or(a, v, order)  MODEL_RMW_(a, MODEL_OR, v, order)
#define sni_atomic_fetch_and(a, v, order) MODEL_RMW_(a, MODEL_AND, v, order)
#define sni_atomic_fetch_add(a, v, order) MODEL_RMW_(a, MODEL_ADD, v, order)
#define sni_atomic_fetch_sub(a, v, order) MODEL_RMW_(a, MODEL_SUB, v, order)

#define sni_atomic_cas(a, expected, v, success, failure)                         \
    model_cas(MODEL_PLACE_(a), (expected), MODEL_VALUE_(v), SNI_ORDER_##success, \
              SNI_ORDER_##failure, __func__)

#define sni_atomic_fence(order) model_fence(SNI_ORDER_##order, __func__)
#define sni_atomic_half_fence() ((void)0) /* a thread's steps are in the order of its program */

#endif
