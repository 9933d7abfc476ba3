/* SPDX-License-Identifier: MIT */
/* current.c - see current.h: the thread-local, and the few functions that touch it.
 *
 * The empty assembly keeps a compiler that sees both this body and its callers from proving
 * anything about the result. */
#include "wait/current.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "plat/clock.h"

static _Thread_local struct sni_exec *current;

SNI_NEVER_INLINE struct sni_exec *sni_exec_current(void)
{
    struct sni_exec *exec = current;
    __asm__ volatile("" : "+r"(exec));
    return exec;
}

SNI_NEVER_INLINE uintptr_t sni_exec_self(void)
{
    struct sni_exec *exec = current;
    uintptr_t self = (uintptr_t)&current; /* each thread has its own */
    if (exec != NULL)
        self = exec->fiber != NULL ? (uintptr_t)exec->fiber : SNI_SELF_CORO;
    __asm__ volatile("" : "+r"(self));
    return self;
}

SNI_NEVER_INLINE uintptr_t sni_exec_spend(void)
{
    struct sni_exec *exec = current;
    uintptr_t self = (uintptr_t)&current;
    if (exec != NULL) {
        int left = --exec->budget;
        self = exec->fiber != NULL ? (uintptr_t)exec->fiber : SNI_SELF_CORO;
        self |= (unsigned)left >> 31; /* SNI_SELF_SPENT, if negative: without a jump */
    }
    __asm__ volatile("" : "+r"(self));
    return self;
}

SNI_NEVER_INLINE void sni_exec_set(struct sni_exec *exec)
{
    __asm__ volatile("" : "+r"(exec));
    current = exec;
}

#ifdef SINEW_DEBUG
typedef const char *place_fn(uintptr_t who);

static SNI_ATOMIC(place_fn *) place_of;

const char *sni_exec_place(uintptr_t who)
{
    /* acquire: pairs with the release below */
    place_fn *place = sni_atomic_load(&place_of, acquire);
    return place != NULL ? place(who) : NULL;
}

void sni_exec_set_place(place_fn *place)
{
    sni_atomic_store(&place_of, place, release); /* release: pairs with the acquire above */
}
#endif

int64_t sni_now_ns(void)
{
    struct sni_exec *exec = sni_exec_current();
    return exec != NULL && exec->ops->now != NULL ? exec->ops->now(exec) : sni_plat_now_ns();
}

/* The budget is used up. Who cannot give way now stays without any. */
static SNI_COLD void give_way(struct sni_exec *exec, int64_t until_ns)
{
    if (exec->fiber == NULL || until_ns <= 0) {
        exec->budget = 0;
        return;
    }
    exec->budget = SNI_BUDGET;
    if (exec->ops->give_way != NULL)
        exec->ops->give_way(exec);
}

void sni_spend(void)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && exec->fiber != NULL && --exec->budget < 0)
        give_way(exec, INT64_MAX);
}

void sni_spend_many(int n, int64_t until_ns)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec != NULL && (exec->budget -= n) < 0)
        give_way(exec, until_ns);
}

SNI_COLD uintptr_t sni_exec_give_way(uintptr_t self, int64_t until_ns)
{
    give_way(sni_exec_current(), until_ns);
    return self & ~(uintptr_t)SNI_SELF_SPENT;
}

bool sni_is_spent_by(int n)
{
    struct sni_exec *exec = sni_exec_current();
    return exec != NULL && exec->fiber == NULL && (exec->budget -= n) < 0;
}

bool sni_is_spent(void)
{
    return sni_is_spent_by(1);
}
