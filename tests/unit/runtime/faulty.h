/* SPDX-License-Identifier: MIT */
/* faulty.h - system calls that fail on demand, and a book of the address space that is mapped.
 *
 * The linker's --wrap sends the calls of all statically linked code here, that is the library's and
 * the test's own; what the C library or a sanitizer maps for itself does not come by. */
#ifndef SINEW_TESTS_FAULTY_H
#define SINEW_TESTS_FAULTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum faulty_call {
    FAULTY_MMAP,            /* fails with ENOMEM                        */
    FAULTY_MUNMAP,          /* ENOMEM: a mapping is split and is one too many */
    FAULTY_MPROTECT,        /* ENOMEM                                   */
    FAULTY_MADVISE,         /* EAGAIN, which madvise gives under memory pressure */
    FAULTY_PROCESS_MADVISE, /* EAGAIN                                   */
    FAULTY_GUARD,           /* EAGAIN: either of them, if it is for guards */
    FAULTY_PTHREAD_CREATE,  /* EAGAIN                                   */
    FAULTY_CALLS,
};

/* The k-th call of that kind from now on, over all threads, fails; with `all`, so do those after
 * it. k = 0: none. */
void faulty_at(enum faulty_call call, uint64_t k, bool all);

/* No call fails from now on. Returns true if one did since faulty_at. */
bool faulty_end(void);

/* An older kernel: it knows no guards by madvise. */
void faulty_old_kernel(void);

/* Bytes that are mapped and not unmapped since the process began. What an munmap that was made to
 * fail left behind is not counted: nobody could have done better. */
int64_t faulty_mapped_bytes(void);

/* The bytes of those munmaps, and how many of them then went back by MADV_DONTNEED at least. */
uint64_t faulty_left_bytes(void);
uint64_t faulty_left_discarded_bytes(void);

#endif
