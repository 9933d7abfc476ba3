/* SPDX-License-Identifier: MIT */
/* file.h - a descriptor of ours: who uses it, who waits on it, and its end (R84).
 *
 * A file is a record with a checked handle (arena.h). Who uses it holds it meanwhile; a close makes
 * the handle stale at once, ends all waits on it with -EBADF, and the descriptor itself is closed
 * when the last user has left: so its number is not used anew under anybody's hands.
 *
 * An operation is *tried* first, by the system call, and if that would have to wait, given to a
 * driver: either as it is, or as a wait for readiness after which it is tried again. Plain threads
 * bring a small driver of their own. */
#ifndef SINEW_IO_FILE_H
#define SINEW_IO_FILE_H

#include "io/driver.h"
#include "mem/arena.h"
#include "wait/place.h"

/* The two directions of a file, each with its own waits. */
enum sni_direction {
    SNI_IN,
    SNI_OUT,
    SNI_DIRECTIONS,
};

/* One line of memory. `record.own` is its home, or NULL: see file.c. */
struct sni_file {
    struct sni_record record;
    SNI_ATOMIC(uint64_t) state; /* any thread: generation, users, closed; see file.c           */
    int fd;                     /* immutable                                                  */
    struct sni_mutex lock;      /* guards `strays` and the home                               */
    struct sni_chain *ops;      /* operations that the home has; under the home's lock         */
    struct sni_chain *strays;   /* those that other drivers have, or had until just now         */
    SNI_ATOMIC(uint32_t) known[SNI_DIRECTIONS]; /* any user: a ticket and DRY, see file.c      */
    bool is_stream; /* immutable: a short read means that there is hardly more now              */
    uint8_t kind;   /* immutable: what the owner of the file says it is                         */
    bool is_unborn; /* its maker only: nobody has the handle yet                               */
    bool is_kept;   /* its home had a POLL of it, and keeps a registration if it is one that
                       does; under the home's lock                                           */
    uint8_t away;   /* POLLs in a row that came from elsewhere than its home; as is_kept        */
};

/* Make a file of a non-blocking descriptor. From here on it is the file's. `is_stream`: a read that
 * comes out short has found all there is, or came to the end of it, or to urgent data.
 *
 * Returns  0, and its handle; -ENOMEM: the descriptor is still the caller's */
int sni_file_create(int fd, uint8_t kind, bool is_stream, uint64_t *handle);

/* Begin to use the file of `handle`, which must be of one of the `kinds` (bits 1 << kind).
 *
 * Returns  0; -EBADF: not a handle, stale, closed; -ENOTSOCK: of another kind */
int sni_file_use(uint64_t handle, uint32_t kinds, struct sni_file **out);
void sni_file_unuse(struct sni_file *file);

/* Close it. Returns 0, -EBADF */
int sni_file_close(uint64_t handle);

/* Do `op` (its kind and arguments set, the rest not), waiting if need be until `until`.
 *
 * Returns  its result (op.h); -ETIMEDOUT, -EBADF (closed meanwhile), -ENOMEM, -EMFILE,
 *          -EDEADLK (a coroutine must not wait here), -ENOSYS (the executor has no driver) */
ptrdiff_t sni_file_do(struct sni_file *file, struct sni_op *op, sn_deadline until);

/* End the use of a file whose operation, which could have waited until `until`, had this result,
 * and give way if that is due (sni_spend_many): not before, for a fiber that gives way may never go
 * on. What brings descriptors does it before the operation instead. */
void sni_file_end(struct sni_file *file, ptrdiff_t result, sn_deadline until);

/* The same from the handle on, for a RECV or a SEND without flags: as sni_file_use, sni_file_do and
 * sni_file_end. For most of what a program does, and quick if it need not wait. */
ptrdiff_t sni_file_recv(uint64_t handle, uint32_t kinds, void *buf, size_t bytes,
                        sn_deadline until);
ptrdiff_t sni_file_send(uint64_t handle, uint32_t kinds, const void *buf, size_t bytes,
                        sn_deadline until);

/* Sleep until `at` while using the file: for retries, when nothing tells. If the fiber is abandoned
 * meanwhile, its use ends, as in a wait. Returns 0; -EDEADLK (a coroutine), -ENOTSUP (no time) */
int sni_file_nap(struct sni_file *file, sn_deadline at);

/* For reports: both wait for the world. */
extern const struct sni_wait_kind sni_file_waits;
extern const struct sni_wait_kind sni_nap_waits;

/* Wait until one of `events` is there, or `until`. Returns the events, or as above */
ptrdiff_t sni_file_wait(struct sni_file *file, unsigned events, sn_deadline until);

/* The same for a descriptor that is not ours. */
ptrdiff_t sni_fd_wait(int fd, unsigned events, sn_deadline until);

/* Try `op` by its system call; -EAGAIN if it would have to wait. */
ptrdiff_t sni_op_try(struct sni_op *op, int fd);

#endif
