/* SPDX-License-Identifier: MIT */
/* uring.h - the driver on io_uring, and whether this kernel lets us have one.
 *
 * The build takes none.c instead of the rest of this folder where liburing is not found; then
 * both functions return -ENOSYS. Whoever calls falls back to another driver, whatever the error.
 *
 * Threads: all functions may be called from any. The first driver of a process takes some 10 ms
 * less to make if that was expected while there was only one thread (ring.c says why). */
#ifndef SINEW_IO_URING_URING_H
#define SINEW_IO_URING_URING_H

#include "io/driver.h"

#include <stdbool.h>
#include <stdint.h>

/* What a kernel may or may not have; the driver works without each of them. */
enum {
    SNI_URING_COOP = 1,       /* completions do not interrupt a computing owner (5.19)         */
    SNI_URING_SUBMIT_ALL = 2, /* a bad entry does not end a batch (5.18)                       */
    SNI_URING_EXT_ARG = 4,    /* the wait takes its time limit along (5.11); else poll(2) does */
    SNI_URING_CQE_SKIP = 8,   /* a cancel that worked leaves no completion of its own (5.17)   */
    SNI_URING_SEND_MSG = 16,  /* a wake is a message to the ring (6.13); else an eventfd       */
    SNI_URING_PATIENCE = 32,  /* requests wait although their descriptor does not block         */
    SNI_URING_KEEPER = 64,    /* waits of files for readiness go to an epoll instance            */
    SNI_URING_ALL = 127,
};

struct sni_uring_config {
    uint32_t entries;     /* of the submission ring, rounded up to a power of 2; 0 means 256  */
    bool sqpoll;          /* a thread of the kernel looks for submissions                     */
    uint32_t workers_max; /* of the kernel's, for what cannot wait otherwise; 0 means 4        */
    uint32_t without;     /* features not to use even if they are there; for tests            */
};

struct sni_uring_features {
    uint32_t bits;      /* what was found                                                     */
    const char *reason; /* one word: "ok", "unbuilt" (no liburing), "absent" (no system call),
                           "forbidden" (seccomp, kernel.io_uring_disabled), "memory" (before
                           Linux 5.12 that is RLIMIT_MEMLOCK), "descriptors", "old" (lacks an
                           operation that is needed), "refused" (anything else)                */
};

/* Look whether a ring can be made, by making one. Logs nothing.
 *
 * Returns  0, or what sni_uring_create would return; `out` is filled in either case */
int sni_uring_probe(struct sni_uring_features *out);

/* Drivers will perhaps be made by threads that are still to be started. Does what costs little now
 * and much then; nothing if there are threads already. */
void sni_uring_expect(void);

/* A driver of its own ring. `config` may be NULL.
 *
 * Returns  0          *out is the caller's until sni_driver_finish
 *          -ENOSYS    the kernel has no io_uring, or one older than 5.7, or it was not built in
 *          -EPERM     it is forbidden to this process
 *          -ENOMEM    no memory, or, before Linux 5.12, more than RLIMIT_MEMLOCK
 *          -EMFILE, -ENFILE   no descriptor is left */
int sni_uring_create(const struct sni_uring_config *config, struct sni_driver **out);

#endif
