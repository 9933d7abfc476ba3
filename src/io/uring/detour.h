/* SPDX-License-Identifier: MIT */
/* detour.h - asking epoll for what a poll of io_uring cannot tell.
 *
 * A *detour* is an epoll instance with one descriptor in it. It is readable while that descriptor
 * has one of the events, and so the ring polls it instead. It costs a descriptor and three system
 * calls: for the few waits that need it.
 *
 * Threads: none of these is shared; the driver's lock orders. */
#ifndef SINEW_IO_URING_DETOUR_H
#define SINEW_IO_URING_DETOUR_H

/* A detour to `fd`, for the events of `mask` (of poll(2)); POLLERR and POLLHUP always count.
 *
 * Returns  a descriptor, for sni_detour_close
 *          -EPERM             `fd` cannot be polled: it is always ready
 *          -EBADF             `fd` is no descriptor
 *          -EMFILE, -ENFILE, -ENOMEM, -ENOSPC   not now */
int sni_detour_open(int fd, unsigned mask);

/* The events of poll(2) that are there now; 0: none. */
unsigned sni_detour_read(int detour);

void sni_detour_close(int detour);

#endif
