/* SPDX-License-Identifier: MIT */
/* prep.h - an operation as an entry of the submission ring, and a result of poll(2) as events.
 * Pure translation: no state, no system call. The caller sets user data and entry flags. */
#ifndef SINEW_IO_URING_PREP_H
#define SINEW_IO_URING_PREP_H

#include "base/compiler.h"
#include "io/op.h"

#include <liburing.h>
#include <poll.h>

/* The operation itself. A send that would have to wait answers -EAGAIN; without `patient`, so does
 * a receive. */
void sni_uring_prep(struct io_uring_sqe *sqe, const struct sni_op *op, bool patient);

/* The events of poll(2) that the operation needs in order to get further; and whether `there` has
 * one of them. POLLERR and POLLHUP always count: then it gets further, to an error. */
static inline unsigned sni_uring_mask(const struct sni_op *op);
static inline bool sni_uring_mask_is_hit(const struct sni_op *op, unsigned there);
unsigned sni_uring_mask_of_other(const struct sni_op *op); /* than a POLL */

/* The answer to a POLL when these events of poll(2) are there. More than 0 if it is hit, unless by
 * POLLNVAL alone. */
static inline unsigned sni_uring_events(const struct sni_op *op, unsigned there)
{
    if (sni_unlikely((there & (POLLERR | POLLHUP)) != 0))
        return op->events;
    return op->events & (((there & (POLLIN | POLLRDHUP)) != 0 ? SNI_READABLE : 0u) |
                         ((there & POLLOUT) != 0 ? SNI_WRITABLE : 0u) |
                         ((there & POLLPRI) != 0 ? SNI_PRIORITY : 0u));
}

static inline unsigned sni_uring_mask(const struct sni_op *op)
{
    if (sni_unlikely(op->kind != SNI_OP_POLL))
        return sni_uring_mask_of_other(op);
    return ((op->events & SNI_READABLE) != 0 ? POLLIN | POLLRDHUP : 0u) |
           ((op->events & SNI_WRITABLE) != 0 ? POLLOUT : 0u) |
           ((op->events & SNI_PRIORITY) != 0 ? POLLPRI : 0u);
}

static inline bool sni_uring_mask_is_hit(const struct sni_op *op, unsigned there)
{
    return (there & (sni_uring_mask(op) | POLLERR | POLLHUP | POLLNVAL)) != 0;
}

#endif
