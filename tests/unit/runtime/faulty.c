/* SPDX-License-Identifier: MIT */
/* faulty.c - see faulty.h. Counters are atomics: workers call from all sides. */
#include "faulty.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum {
    ADVICE_GUARD = 102, /* MADV_GUARD_INSTALL */
};

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __real_mprotect(void *at, size_t bytes, int prot);
int __real_madvise(void *at, size_t bytes, int advice);
long __real_syscall(long number, ...);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_mprotect(void *at, size_t bytes, int prot);
int __wrap_madvise(void *at, size_t bytes, int advice);
long __wrap_syscall(long number, ...);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

static struct {
    _Atomic int call; /* which fails; FAULTY_CALLS: none */
    _Atomic uint64_t at;
    _Atomic bool all;
    _Atomic uint64_t calls; /* of that kind, since faulty_at */
    _Atomic bool old_kernel;
    _Atomic int64_t mapped_bytes;
    _Atomic uint64_t left_bytes;
    _Atomic uint64_t discarded_bytes;
    _Atomic(void *) left; /* by the last munmap that failed */
} faulty = {.call = FAULTY_CALLS};

void faulty_at(enum faulty_call call, uint64_t k, bool all)
{
    atomic_store(&faulty.calls, 0);
    atomic_store(&faulty.at, k);
    atomic_store(&faulty.all, all);
    atomic_store(&faulty.call, k == 0 ? FAULTY_CALLS : (int)call);
}

bool faulty_end(void)
{
    atomic_store(&faulty.call, FAULTY_CALLS);
    return atomic_load(&faulty.at) > 0 && atomic_load(&faulty.calls) >= atomic_load(&faulty.at);
}

void faulty_old_kernel(void)
{
    atomic_store(&faulty.old_kernel, true);
}

int64_t faulty_mapped_bytes(void)
{
    return atomic_load(&faulty.mapped_bytes);
}

uint64_t faulty_left_bytes(void)
{
    return atomic_load(&faulty.left_bytes);
}

uint64_t faulty_left_discarded_bytes(void)
{
    return atomic_load(&faulty.discarded_bytes);
}

static bool fails(enum faulty_call call)
{
    if (atomic_load(&faulty.call) != (int)call)
        return false;
    uint64_t number = atomic_fetch_add(&faulty.calls, 1) + 1;
    return atomic_load(&faulty.all) ? number >= faulty.at : number == faulty.at;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* ---- the calls ------------------------------------------------------------------------------- */

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    if (fails(FAULTY_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *got = __real_mmap(at, bytes, prot, flags, fd, offset);
    if (got != MAP_FAILED)
        atomic_fetch_add(&faulty.mapped_bytes, (int64_t)bytes);
    return got;
}

int __wrap_munmap(void *at, size_t bytes)
{
    atomic_fetch_sub(&faulty.mapped_bytes, (int64_t)bytes);
    if (!fails(FAULTY_MUNMAP))
        return __real_munmap(at, bytes);
    atomic_fetch_add(&faulty.left_bytes, bytes);
    atomic_store(&faulty.left, at);
    return refuse(ENOMEM);
}

int __wrap_mprotect(void *at, size_t bytes, int prot)
{
    return fails(FAULTY_MPROTECT) ? refuse(ENOMEM) : __real_mprotect(at, bytes, prot);
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
    if (advice == ADVICE_GUARD && atomic_load(&faulty.old_kernel))
        return refuse(EINVAL);
    if (advice == MADV_DONTNEED && at == atomic_load(&faulty.left))
        atomic_fetch_add(&faulty.discarded_bytes, bytes);
    if (advice == ADVICE_GUARD && fails(FAULTY_GUARD))
        return refuse(EAGAIN);
    return fails(FAULTY_MADVISE) ? refuse(EAGAIN) : __real_madvise(at, bytes, advice);
}

long __wrap_syscall(long number, ...)
{
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_process_madvise && atomic_load(&faulty.old_kernel))
        return refuse(EINVAL);
    if (number == SYS_process_madvise && (fails(FAULTY_PROCESS_MADVISE) || fails(FAULTY_GUARD)))
        return refuse(EAGAIN);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    return fails(FAULTY_PTHREAD_CREATE) ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}
