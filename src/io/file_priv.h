/* SPDX-License-Identifier: MIT */
/* file_priv.h - between file.c and file_op.c: a file's operations in a driver, and what is known
 * about its readiness. */
#ifndef SINEW_IO_FILE_PRIV_H
#define SINEW_IO_FILE_PRIV_H

#include "io/file.h"

/* Give `op`, whose waiter is begun, to `driver`, or to the one where the file has its home. A close
 * finds it until it is complete; or if it is a stray then, until sni_file_unlink.
 *
 * Returns  0; 1: it is complete already; -EBADF: the file is closed, and nothing was done */
int sni_file_submit(struct sni_file *file, struct sni_driver *driver, struct sni_op *op);
void sni_file_unlink_stray(struct sni_file *file, struct sni_op *op);

/* When it is over, before its frame goes away. */
static inline void sni_file_unlink(struct sni_file *file, struct sni_op *op)
{
    if (sni_unlikely(op->is_stray))
        sni_file_unlink_stray(file, op);
}

/* Before a try: the ticket that goes with it. *dry: the try was made already, and in vain. */
uint32_t sni_file_ticket(struct sni_file *file, enum sni_direction way, bool *dry);

/* Before a wait for readiness alone: the ticket that proves that `events` are not there, or 0. */
uint32_t sni_file_proof(struct sni_file *file, unsigned events);

/* After a try that gave `result`, of `bytes` asked for. */
void sni_file_tried(struct sni_file *file, enum sni_direction way, ptrdiff_t result, size_t bytes,
                    uint32_t ticket);

/* Before a wait for `events` that follows no try: the ticket of an earlier one that was in vain,
 * else 0. */
uint32_t sni_file_proof(struct sni_file *file, unsigned events);

/* After a wait: the driver said that it is ready, and gave `ticket`. */
void sni_file_note_ready(struct sni_file *file, enum sni_direction way, uint32_t ticket);

/* What to say of the events that a driver told, more than 0, to whom asked for `events`: a broken
 * other end makes all of those true. */
static inline ptrdiff_t sni_events_told(ptrdiff_t told, unsigned events)
{
    unsigned both = (unsigned)told & events;
    return both != 0 ? (ptrdiff_t)both : (ptrdiff_t)events;
}

#endif
