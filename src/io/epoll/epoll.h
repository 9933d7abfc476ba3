/* SPDX-License-Identifier: MIT */
/* epoll.h - the driver on epoll(7): for kernels and containers that give no io_uring. */
#ifndef SINEW_IO_EPOLL_EPOLL_H
#define SINEW_IO_EPOLL_EPOLL_H

#include "io/driver.h"

/* A driver that can POLL and keeps registrations: mind "Tickets" in io/driver.h. Takes two
 * descriptors.
 *
 * Returns  0, -ENOMEM, -EMFILE, -ENFILE; what epoll_ctl(2) says (-ENOSPC, -EPERM in a sandbox)
 * Owns: to be finished, and freed by that, with sni_driver_finish */
int sni_epoll_create(struct sni_driver **driver);

#endif
