/* SPDX-License-Identifier: MIT */
/* search.h - looking at every word of memory, but for some places. */
#ifndef SINEW_OBSERVE_SEARCH_H
#define SINEW_OBSERVE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sni_span {
    uintptr_t from, to;
};

struct sni_search {
    void (*word)(uintptr_t word, void *arg); /* called for each, at multiples of its size       */
    void *arg;
    int self, pages;        /* plat/self.h                                                     */
    char *buffer;           /* what follows: not from the heap, and left out                   */
    struct sni_span *holes; /* what is left out; sorted before sni_search_all                   */
    size_t holes_n, holes_room;
    uintptr_t from_sp; /* the frame of who searches                                            */
};

/* Returns  0, -ENOMEM, -errno
 * Owns: sni_search_finish, after success. */
int sni_search_init(struct sni_search *search, void (*word)(uintptr_t word, void *arg), void *arg);
void sni_search_finish(struct sni_search *search);

/* Leave that out. Returns 0, -ENOMEM */
int sni_search_skip(struct sni_search *search, uintptr_t from, uintptr_t to);

/* Look at all memory that can be written, but for what is left out.
 *
 * Returns  0; -ENOTSUP: there is a mapping too large to be looked at; -errno */
int sni_search_all(struct sni_search *search);

/* Look at this. */
void sni_search_span(struct sni_search *search, uintptr_t from, uintptr_t to);

#endif
