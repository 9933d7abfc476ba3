/* SPDX-License-Identifier: MIT */
/* file_op.h - an operation on a file as a future.
 *
 * A coroutine may be dropped at any time, and then nothing may have been consumed. So its
 * operations never leave the buffer to the kernel: they wait for readiness, whatever the driver
 * could do, and then make the system call themselves, inside a poll. */
#ifndef SINEW_IO_FILE_OP_H
#define SINEW_IO_FILE_OP_H

#include "io/file.h"
#include "wait/await.h"

#include <sinew/io.h>

struct sni_file_op {
    sn_future future;
    const struct sni_file_op_kind *kind; /* immutable                                          */
    uint64_t handle;                     /* of the file                                        */
    struct sni_file *file;               /* used from the first poll to the end                */
    int fd;                              /* the same time                                      */
    uint32_t kinds;                      /* of files that it may be of; 0: a stranger's `fd`   */
    void *buf;                           /* these: arguments, for `attempt` and `finish`       */
    size_t bytes;
    void *extra;
    uint8_t events;  /* what to wait for                                                      */
    bool is_waiting; /* a driver has `op`, or has completed it and we do not know yet          */
    struct sni_await await;
    struct sni_op op;
};

/* What kinds of operations differ in. */
struct sni_file_op_kind {
    const char *name;

    /* Try it. NULL: to wait for the events is all, and they are the result.
     * Returns  the result; -EAGAIN: wait */
    ptrdiff_t (*attempt)(struct sni_file_op *fop);

    /* The operation is over; make the final result of what was achieved. NULL: it is that. */
    int (*finish)(struct sni_file_op *fop, ptrdiff_t result);
};

/* Make `state` such an operation; the arguments are the caller's to fill in. */
struct sni_file_op *sni_file_op_init(sn_io_state *state, const struct sni_file_op_kind *kind,
                                     uint64_t handle, uint32_t kinds, unsigned events);

#endif
