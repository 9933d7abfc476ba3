/* SPDX-License-Identifier: MIT */
/* prep.h - an operation as an entry of the submission ring, and a result of poll(2) as events.
 * Pure translation: no state, no system call. The caller sets user data and entry flags. */
#ifndef SINEW_IO_URING_PREP_H
#define SINEW_IO_URING_PREP_H

#include "io/op.h"

#include <liburing.h>

/* The operation itself. Without `patient`, a transfer that would have to wait answers -EAGAIN. */
void sni_uring_prep(struct io_uring_sqe *sqe, const struct sni_op *op, bool patient);

/* A poll for what the operation needs in order to get further. */
void sni_uring_prep_poll_for(struct io_uring_sqe *sqe, const struct sni_op *op);

/* What poll(2) calls the events, and back. */
unsigned sni_uring_poll_mask(unsigned events);
unsigned sni_uring_events(unsigned poll_mask);

#endif
