/* SPDX-License-Identifier: MIT */
/* thread.c (linux) - starting, joining and pinning threads; see thread.h.
 *
 * A thread inherits the signal mask of the one that starts it, so the starter blocks signals,
 * starts, and puts its own mask back: there is no moment at which the new thread could be chosen
 * for a signal that is not meant for it. Blocking them as its first act would leave one.
 *
 * Functions that look at errno are never inlined: the C library promises the compiler that
 * errno stays at one address, which is untrue for a fiber that moves to another thread, so that
 * address must not be remembered in a caller. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plat/thread.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sinew/errno.h>
#include <string.h>
#include <sys/prctl.h>
#if defined(__GLIBC__)
#include <sys/single_threaded.h>
#endif
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_t) <= sizeof(((struct sni_thread *)0)->handle_),
               "a struct sni_thread has no room for a pthread_t");

enum {
    STACK_BYTES_MIN = 64 * 1024, /* below, the thread's own bookkeeping may not fit */
    CPUS_MAX = 8192,             /* the most that a Linux kernel is built for */
};

/* What a thread of ours must still receive: its own faults, and the profiler's clock. */
static const int left_open[] = {
    SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF,
};

static void *run(void *p)
{
    struct sni_thread *t = p;
    if (t->name_[0] != '\0')
        (void)prctl(PR_SET_NAME, t->name_);
    t->fn_(t->arg_);
    return NULL;
}

static void set_name(struct sni_thread *t, const char *name)
{
    size_t len = name == NULL ? 0 : strlen(name);
    if (len > sizeof(t->name_) - 1)
        len = sizeof(t->name_) - 1;
    memset(t->name_, 0, sizeof(t->name_));
    if (len > 0)
        memcpy(t->name_, name, len);
}

/* pthread_create with a stack of `stack_bytes`; 0 or a positive errno, as pthreads have it. */
static int create(struct sni_thread *t, size_t stack_bytes)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    if (stack_bytes != 0)
        rc = pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_t handle;
    if (rc == 0)
        rc = pthread_create(&handle, &attr, run, t);
    if (rc == 0)
        memcpy(t->handle_, &handle, sizeof(handle));
    (void)pthread_attr_destroy(&attr);
    return rc;
}

/* What the system accepts for a stack: large enough, and whole pages. 0 stays 0, and what is
 * absurd stays so, for the system to refuse. */
static size_t stack_round(size_t stack_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    long least = sysconf(_SC_THREAD_STACK_MIN);
    if (stack_bytes == 0)
        return 0;
    if (stack_bytes < STACK_BYTES_MIN)
        stack_bytes = STACK_BYTES_MIN;
    if (least > 0 && stack_bytes < (size_t)least)
        stack_bytes = (size_t)least;
    return (stack_bytes + page - 1) & ~(page - 1);
}

int sni_plat_thread_start(struct sni_thread *t, void (*fn)(void *), void *arg, const char *name,
                          size_t stack_bytes)
{
    if (stack_bytes > SIZE_MAX / 2)
        return -EAGAIN; /* and the rounding below cannot overflow */
    memset(t->handle_, 0, sizeof(t->handle_));
    t->fn_ = fn;
    t->arg_ = arg;
    set_name(t, name);

    sigset_t blocked;
    sigset_t before;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(left_open) / sizeof(left_open[0]); i++)
        (void)sigdelset(&blocked, left_open[i]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int rc = create(t, stack_round(stack_bytes));
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int sni_plat_thread_join(struct sni_thread *t)
{
    pthread_t handle;
    memcpy(&handle, t->handle_, sizeof(handle));
    return -pthread_join(handle, NULL);
}

SNI_NEVER_INLINE int sni_plat_thread_stack(const struct sni_thread *t, uintptr_t *low)
{
    pthread_t handle = pthread_self(); /* not inline: who asks may move, see above */
    if (t != NULL)
        memcpy(&handle, t->handle_, sizeof(handle));
    pthread_attr_t attr;
    void *from = NULL;
    size_t bytes;
    int rc = pthread_getattr_np(handle, &attr);
    if (rc != 0)
        return -rc;
    rc = pthread_attr_getstack(&attr, &from, &bytes);
    (void)pthread_attr_destroy(&attr);
    *low = (uintptr_t)from;
    return -rc;
}

uint64_t sni_plat_thread_id(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

int64_t sni_plat_thread_cpu_ns(void)
{
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0)
        return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

bool sni_plat_thread_is_alone(void)
{
#if defined(__GLIBC__)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

void sni_plat_thread_yield(void)
{
    (void)sched_yield();
}

SNI_NEVER_INLINE int sni_plat_thread_pin(int cpu)
{
    cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
    if (cpu < 0 || cpu >= CPUS_MAX)
        return -EINVAL;
    CPU_ZERO_S(sizeof(sets), sets);
    CPU_SET_S((size_t)cpu, sizeof(sets), sets);
    return sched_setaffinity(0, sizeof(sets), sets) == 0 ? 0 : -errno;
}
