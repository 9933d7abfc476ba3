/* SPDX-License-Identifier: MIT */
/* current.c - see current.h: the thread-local, and the few functions that touch it.
 *
 * The empty assembly keeps a compiler that sees both this body and its callers from proving
 * anything about the result.
 *
 * Its place is fixed when the program is loaded (initial-exec): one load finds it, in a shared
 * library, too. Those of libraries that are loaded later, by dlopen, lie in a room that the C
 * library keeps for them, of a kilobyte or more; ours takes eight bytes. */
#include "wait/current.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "plat/clock.h"

/* As plat/tls.h wants it. */
extern _Thread_local struct sni_exec *sni_exec_here;
__attribute__((used, visibility("hidden"),
               tls_model("initial-exec"))) _Thread_local struct sni_exec *sni_exec_here;

#ifndef SNI_EXEC_INLINE
SNI_NEVER_INLINE struct sni_exec *sni_exec_current(void)
{
    struct sni_exec *exec = sni_exec_here;
    __asm__ volatile("" : "+r"(exec));
    return exec;
}

SNI_NEVER_INLINE uintptr_t sni_exec_thread(void)
{
    uintptr_t self = (uintptr_t)&sni_exec_here;
    __asm__ volatile("" : "+r"(self));
    return self;
}
#endif

SNI_NEVER_INLINE void sni_exec_set(struct sni_exec *exec)
{
    __asm__ volatile("" : "+r"(exec));
    sni_exec_here = exec;
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

SNI_COLD void sni_exec_rest(struct sni_exec *exec, int64_t until_ns)
{
    if (exec->fiber == NULL || until_ns <= 0) {
        exec->budget = 0;
        return;
    }
    exec->budget = SNI_BUDGET;
    if (exec->ops->give_way != NULL)
        exec->ops->give_way(exec);
}

SNI_COLD uintptr_t sni_exec_spent(int64_t until_ns)
{
    sni_exec_rest(sni_exec_current(), until_ns);
    return sni_exec_self(); /* the same fiber, perhaps on another thread */
}
