/* SPDX-License-Identifier: MIT */
/* self.h - the memory of this process, seen from outside: for who searches all of it. */
#ifndef SINEW_PLAT_SELF_H
#define SINEW_PLAT_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Call `fn` for each mapping that can be read and written, in the order of addresses; an anonymous
 * one is of this process alone and has no file. `fn` must not map or unmap anything.
 *
 * Returns  0; -errno: the system does not tell; or what `fn` returned, if that is not 0 */
int sni_plat_each_mapping(int (*fn)(uintptr_t from, uintptr_t to, bool anonymous, void *arg),
                          void *arg);

/* A way to read any address without a fault.
 *
 * Returns  a descriptor to be closed by sni_plat_self_close, or -errno */
int sni_plat_self_open(void);
void sni_plat_self_close(int self);

/* The same for a descriptor that tells which pages of anonymous memory were ever written to. */
int sni_plat_pages_open(void);

/* How many bytes from `from` on, in whole pages, have certainly never been written to; at most
 * `bytes`. With a negative descriptor: 0. */
size_t sni_plat_pages_unwritten(int pages, uintptr_t from, size_t bytes);

/* Returns  how many bytes from `from` on were copied to `to`; 0: that page cannot be read */
size_t sni_plat_self_read(int self, uintptr_t from, void *to, size_t bytes);

#endif
