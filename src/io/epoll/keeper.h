/* SPDX-License-Identifier: MIT */
/* keeper.h - an epoll instance, and what is known of each descriptor in it (slots.h).
 *
 * A *keeper* waits for readiness. The epoll driver is one with a way to sleep; the io_uring driver
 * has one for the waits of files, and the ring polls it. Whose it is calls all of these under its
 * driver's lock, takes the kernel's events with epoll_wait, and has them processed in their
 * order. */
#ifndef SINEW_IO_EPOLL_KEEPER_H
#define SINEW_IO_EPOLL_KEEPER_H

#include "io/driver.h"
#include "io/epoll/slots.h"

struct epoll_event;

struct sni_keeper {
    int fd;       /* the epoll instance; -1: there is none                          */
    bool is_rung; /* an event was processed that has SNI_KEEPER_BELL for its data */
    struct sni_slots slots;
};

/* No descriptor of a keeper has that for its data: for one that its driver has added itself. */
#define SNI_KEEPER_BELL UINT64_MAX

/* Make the instance; the rest of a keeper is zero before. The descriptor is close-on-exec.
 *
 * Returns  0, -ENOMEM, -EMFILE, -ENFILE, -ENOSYS */
int sni_keeper_open(struct sni_keeper *k);

/* Close it: no operation waits. What was known stays, for sni_keeper_forget. */
void sni_keeper_close(struct sni_keeper *k);

/* The same, and free everything. */
void sni_keeper_finish(struct sni_keeper *k);

/* Take `op`, a POLL: it is complete, or waits for an event. What cannot be registered is complete
 * with the error, or ready if it is of a kind that always is. */
void sni_keeper_submit(struct sni_keeper *k, struct sni_op *op);

/* The same for one that is kept; but if it cannot be registered, nothing is done with it.
 *
 * Returns  0; -ENOMEM, or what epoll_ctl(2) says (-ENOSPC, -EPERM, -EBADF) */
int sni_keeper_try(struct sni_keeper *k, struct sni_op *op);

/* Complete `op`, which waits, with -ECANCELED. */
void sni_keeper_cancel(struct sni_op *op);

/* As `forget` in io/driver.h. */
uint32_t sni_keeper_forget(struct sni_keeper *k, int fd);

/* Events that the kernel has told. Those of a registration that is no more are ignored.
 *
 * Returns  how many operations were completed */
unsigned sni_keeper_process(struct sni_keeper *k, const struct epoll_event *events, int count);

#endif
