/* SPDX-License-Identifier: MIT */
/* file_op.h - an operation on a file as a future.
 *
 * A coroutine may be dropped at any time, and then nothing may have been consumed. So its
 * operations never leave the buffer to the kernel: they wait for readiness, whatever the driver
 * could do, and then make the system call themselves, inside a poll.
 *
 * A connection that is served by a coroutine and idle has one of these, so it holds nothing twice:
 * what to move lies in the operation, which as a POLL does not use it, and the kind is found by the
 * future's vtable. */
#ifndef SINEW_IO_FILE_OP_H
#define SINEW_IO_FILE_OP_H

#include "io/file.h"
#include "wait/await.h"

#include <sinew/io.h>

struct sni_file_op {
    sn_future future;
    union {
        uint64_t handle;       /* of the file, before                                         */
        struct sni_file *file; /* while is_using: from the first poll to the end               */
    };
    void *extra;      /* an argument, for `attempt` and `finish`                                */
    uint8_t kinds;    /* of files that it may be of; 0: a stranger's descriptor, op.fd           */
    bool is_using;    /* the file                                                              */
    bool is_waiting;  /* a driver has `op`, or has completed it and we do not know yet          */
    bool is_borrowed; /* the waker: it is not ours to drop                                     */
    sn_waker waker;   /* whose it is, see file_op.c; empty: none                               */
    struct sni_op op; /* from the beginning: `events`; `buf` and `bytes`, arguments too; `fd`   */
};

/* What kinds of operations differ in. */
struct sni_file_op_kind {
    sn_future_vtable vt; /* SNI_FILE_OP(name) */

    /* Try it. NULL: to wait for the events is all, and they are the result.
     * Returns  the result; -EAGAIN: wait */
    ptrdiff_t (*attempt)(struct sni_file_op *fop);

    /* The operation is over; make the final result of what was achieved. NULL: it is that. */
    int (*finish)(struct sni_file_op *fop, ptrdiff_t result);
};

sn_poll sni_file_op_poll(sn_future *fut, sn_cx *cx);
void sni_file_op_drop(sn_future *fut);

#define SNI_FILE_OP(text) {.poll = sni_file_op_poll, .drop = sni_file_op_drop, .name = (text)}

/* Make `state` such an operation, without a buffer; the other arguments are the caller's to fill
 * in. */
static inline struct sni_file_op *sni_file_op_init(sn_io_state *state,
                                                   const struct sni_file_op_kind *kind,
                                                   uint64_t handle, uint32_t kinds, unsigned events)
{
    struct sni_file_op *fop = (struct sni_file_op *)(void *)state;
    fop->future.vt = &kind->vt;
    fop->future.state_ = 0; /* new, as sn_future_init makes it */
    fop->handle = handle;
    fop->kinds = (uint8_t)kinds;
    fop->is_using = false;
    fop->is_waiting = false;
    fop->is_borrowed = false;
    fop->waker.vt = NULL;
    sni_op_init_move(&fop->op, SNI_OP_POLL, NULL, 0);
    fop->op.is_awaited = true;
    fop->op.events = (uint8_t)events;
    return fop;
}

#endif
