/* SPDX-License-Identifier: MIT */
/* wait_fd.c - waiting for descriptors that are not ours.
 *
 * Nothing is kept about them between two waits: they may be closed and used anew without our
 * knowledge. So each wait is registered with the kernel by itself. */
#include "io/file_op.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert((int)SN_READABLE == SNI_READABLE && (int)SN_WRITABLE == SNI_WRITABLE &&
                  (int)SN_URGENT == SNI_PRIORITY,
              "the house has the same names for events");

static bool are_events(unsigned events)
{
    return events != 0 && (events & ~(unsigned)(SN_READABLE | SN_WRITABLE | SN_URGENT)) == 0;
}

int sn_wait_fd(int fd, unsigned events, sn_deadline until)
{
    if (!are_events(events))
        return -EINVAL;
    return fd < 0 ? -EBADF : (int)sni_fd_wait(fd, events, until);
}

static ptrdiff_t refuse_events(struct sni_file_op *fop)
{
    (void)fop;
    return -EINVAL;
}

sn_future *sn_wait_fd_op(sn_io_state *state, int fd, unsigned events)
{
    static const struct sni_file_op_kind kind = {.vt = SNI_FILE_OP("wait_fd")};
    static const struct sni_file_op_kind wrong = {.vt = SNI_FILE_OP("wait_fd"),
                                                  .attempt = refuse_events};
    struct sni_file_op *fop =
        sni_file_op_init(state, are_events(events) ? &kind : &wrong, 0, 0, events);
    fop->op.fd = fd;
    return &fop->future;
}
