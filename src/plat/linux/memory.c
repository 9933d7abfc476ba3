/* SPDX-License-Identifier: MIT */
/* memory.c (linux) - see memory.h.
 *
 * Guards. MADV_GUARD_INSTALL (Linux 6.13) marks pages in the page table. It needs no mapping of
 * its own, and adjacent reservations still merge into one: a million guarded stacks were seen
 * in 25 lines of /proc/self/maps, while mprotect stopped with ENOMEM at stack 32,753. It also
 * survives MADV_DONTNEED, so a stack is emptied in one call. Many guards go into one
 * process_madvise on ourselves, which halves their price.
 *
 * Whether it works is found by effect: under qemu-user the call returns 0 and does nothing. The
 * kernel itself is asked to read from a guarded page, write(2) into a pipe, which answers
 * EFAULT and harms nobody; touching the page would need a signal handler, which belongs to the
 * application. What cannot be tried, for want of descriptors, is not used until it can.
 *
 * The facts found are kept for the process. Two threads may look at the same time and will find
 * the same. A refusal for want of memory is no fact.
 *
 * Functions that look at errno are never inlined: see thread.c. */
#define _GNU_SOURCE 1
#include "plat/memory.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ADVICE_GUARD = 102,   /* MADV_GUARD_INSTALL, newer than many a libc     */
    ADVICE_POPULATE = 23, /* MADV_POPULATE_WRITE, likewise                  */
    SELF = -10000,        /* PIDFD_SELF, likewise                           */
    BATCH = 32,           /* guards in one call: the vector lies on a stack */
    RESIDENCY_PAGES = 1024,
    MAPPINGS_USUAL = 65530,
    MAPPINGS_SPARED = 8192, /* left for libraries, threads and malloc       */
};

static SNI_ATOMIC(int) guard_kind_found; /* SNI_GUARD_AUTO: nobody has looked */
static SNI_ATOMIC(bool) batch_refused;

size_t sni_plat_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- address space ----------------------------------------------------------------- */

SNI_NEVER_INLINE int sni_plat_reserve(void **base, size_t bytes)
{
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED)
        return -errno;
    *base = got;
    return 0;
}

int sni_plat_reserve_aligned(void **base, size_t bytes, size_t align)
{
    size_t page = sni_plat_page_bytes();
    if (bytes == 0 || align < page || (align & (align - 1)) != 0)
        return -EINVAL;
    size_t all = bytes + align - page;
    if (all < bytes)
        return -ENOMEM;
    void *got = NULL;
    int rc = sni_plat_reserve(&got, all);
    if (rc < 0)
        return rc;
    char *from = got;
    size_t before = (size_t)(-(uintptr_t)from & (align - 1));
    sni_plat_release(from, before);
    sni_plat_release(from + before + bytes, all - before - bytes);
    *base = from + before;
    return 0;
}

/* Neighbours are one mapping to the kernel, and cutting one out of the middle needs one more than
 * there were: a process at its limit is refused. Then the address space is lost, but no memory. */
SNI_NEVER_INLINE void sni_plat_release(void *base, size_t bytes)
{
    if (bytes == 0 || munmap(base, bytes) == 0)
        return;
    sni_assert_debug(errno == ENOMEM, "address space was released that nobody has reserved");
    (void)madvise(base, bytes, MADV_DONTNEED);
}

void sni_plat_small_pages(void *base, size_t bytes)
{
    (void)madvise(base, bytes, MADV_NOHUGEPAGE); /* fails where there are none to avoid */
}

void sni_plat_populate(void *base, size_t bytes)
{
    size_t before = (uintptr_t)base % sni_plat_page_bytes();
    /* fails before Linux 5.14 */
    (void)madvise((char *)base - before, before + bytes, ADVICE_POPULATE);
}

SNI_NEVER_INLINE void sni_plat_discard(void *base, size_t bytes)
{
    int rc = madvise(base, bytes, MADV_DONTNEED);
    /* The kernel keeps pages that are locked (EINVAL), and may be too busy (EAGAIN). */
    sni_assert_debug(rc == 0 || errno != ENOMEM, "memory was discarded that nobody has reserved");
    (void)rc;
}

/* ---- guards ------------------------------------------------------------------------ */

/* Does the kernel refuse to read this page? 1 yes, 0 no, negative: it could not be asked. */
static int faults(const void *page)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    ssize_t sent = write(ends[1], page, 1);
    int refused = sent < 0 && errno == EFAULT;
    close(ends[0]);
    close(ends[1]);
    return refused;
}

/* SNI_GUARD_AUTO: not known. */
static enum sni_guard_kind probe(void)
{
    size_t page = sni_plat_page_bytes();
    void *base = NULL;
    if (sni_plat_reserve(&base, page) < 0)
        return SNI_GUARD_AUTO;
    int works = madvise(base, page, ADVICE_GUARD) == 0 ? faults(base) : -errno;
    sni_plat_release(base, page);
    if (works == -EINVAL) /* the kernel does not know it */
        works = 0;
    if (works < 0)
        return SNI_GUARD_AUTO;
    return works ? SNI_GUARD_MADVISE : SNI_GUARD_MPROTECT;
}

SNI_NEVER_INLINE enum sni_guard_kind sni_plat_guard_kind(void)
{
    /* relaxed, both: the number is all there is to know; whoever finds 0 looks again */
    int kind = sni_atomic_load(&guard_kind_found, relaxed);
    if (kind == SNI_GUARD_AUTO) {
        kind = (int)probe();
        sni_atomic_store(&guard_kind_found, kind, relaxed); /* as above */
    }
    return kind != SNI_GUARD_AUTO ? (enum sni_guard_kind)kind : SNI_GUARD_MPROTECT;
}

/* vm.max_map_count, or what it usually is. */
static size_t read_mappings_max(void)
{
    char text[24];
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return MAPPINGS_USUAL;
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    size_t value = 0;
    for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
        value = value * 10 + (size_t)(text[i] - '0');
    return value != 0 ? value : MAPPINGS_USUAL;
}

/* The same, asked once per process. */
static size_t mappings_max(void)
{
    static SNI_ATOMIC(size_t) found;
    /* relaxed, both: the number is all there is to know; whoever finds 0 looks again */
    size_t mappings = sni_atomic_load(&found, relaxed);
    if (mappings == 0) {
        mappings = read_mappings_max();
        sni_atomic_store(&found, mappings, relaxed); /* as above */
    }
    return mappings;
}

size_t sni_plat_guard_limit(enum sni_guard_kind kind)
{
    if (kind == SNI_GUARD_AUTO)
        kind = sni_plat_guard_kind();
    if (kind != SNI_GUARD_MPROTECT)
        return SIZE_MAX;
    size_t mappings = mappings_max();
    return mappings > 2 * MAPPINGS_SPARED ? (mappings - MAPPINGS_SPARED) / 2 : mappings / 4;
}

SNI_NEVER_INLINE int sni_plat_guard(void *base, size_t bytes, enum sni_guard_kind kind)
{
    if (kind == SNI_GUARD_AUTO)
        kind = sni_plat_guard_kind();
    int rc = 0;
    if (kind == SNI_GUARD_MADVISE)
        rc = madvise(base, bytes, ADVICE_GUARD);
    else if (kind == SNI_GUARD_MPROTECT)
        rc = mprotect(base, bytes, PROT_NONE);
    else if (kind != SNI_GUARD_NONE)
        return -EINVAL;
    return rc == 0 ? 0 : -errno;
}

/* Up to BATCH marks by one call. Returns how many, 0 if they must be made one by one. */
static size_t guard_batch(char *base, size_t bytes, size_t stride, size_t count)
{
    struct iovec pages[BATCH];
    size_t n = count < BATCH ? count : BATCH;
    /* relaxed: nothing but the number; who misses it asks the kernel and is told the same */
    if (n < 2 || sni_atomic_load(&batch_refused, relaxed))
        return 0;
    for (size_t i = 0; i < n; i++)
        pages[i] = (struct iovec){base + i * stride, bytes};
    long advised = syscall(SYS_process_madvise, SELF, pages, n, ADVICE_GUARD, 0);
    if (advised < (long)bytes) {
        if (errno != ENOMEM && errno != EAGAIN)
            sni_atomic_store(&batch_refused, true, relaxed); /* read above */
        return 0;
    }
    return (size_t)advised / bytes;
}

SNI_NEVER_INLINE int sni_plat_guard_each(void *base, size_t bytes, size_t stride, size_t count,
                                         enum sni_guard_kind kind, size_t *done)
{
    if (kind == SNI_GUARD_AUTO)
        kind = sni_plat_guard_kind();
    char *at = base;
    *done = 0;
    while (*done < count) {
        size_t n = 0;
        if (kind == SNI_GUARD_MADVISE)
            n = guard_batch(at, bytes, stride, count - *done);
        if (n == 0) {
            int rc = sni_plat_guard(at, bytes, kind);
            if (rc < 0)
                return rc;
            n = 1;
        }
        at += n * stride;
        *done += n;
    }
    return 0;
}

/* ---- residency --------------------------------------------------------------------- */

size_t sni_plat_untouched(const void *base, size_t bytes)
{
    unsigned char resident[RESIDENCY_PAGES];
    size_t page = sni_plat_page_bytes();
    size_t done = 0;
    while (done < bytes) {
        size_t left = (bytes - done) / page;
        size_t n = left < RESIDENCY_PAGES ? left : RESIDENCY_PAGES;
        if (n == 0 || mincore((char *)(uintptr_t)base + done, n * page, resident) != 0)
            return done;
        for (size_t i = 0; i < n; i++)
            if (resident[i] & 1)
                return done + i * page;
        done += n * page;
    }
    return done;
}
