/* SPDX-License-Identifier: MIT */
/* slots.h - what a keeper (keeper.h) knows of each descriptor: a table indexed by its number. */
#ifndef SINEW_IO_EPOLL_SLOTS_H
#define SINEW_IO_EPOLL_SLOTS_H

#include "base/compiler.h"
#include "base/list.h"
#include "io/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a descriptor is registered with the kernel. */
enum sni_slot_how {
    SNI_SLOT_NONE,    /* not at all                                                             */
    SNI_SLOT_ONESHOT, /* a stranger's: for one event at a time; perhaps closed behind our back   */
    SNI_SLOT_KEPT,    /* a file's of ours: edge-triggered, until it is forgotten                 */
};

enum { SNI_SLOT_EVENTS = 3 }; /* SNI_READABLE, SNI_WRITABLE, SNI_PRIORITY */

/* One descriptor. Under the driver's lock. */
struct sni_slot {
    struct sni_list waiters;        /* sni_op.waiter.link, in the order of submission            */
    uint32_t generation;            /* grows with each registration, and each time that a stranger's
                                       is armed; in the kernel's events, so that those of an older
                                       one are known                                             */
    uint32_t sequence;              /* grows with each event while KEPT; 0 if there never was one */
    uint32_t seen[SNI_SLOT_EVENTS]; /* KEPT: the last event that told of it                      */
    uint8_t how;                    /* sni_slot_how                                              */
    uint8_t ready;                  /* KEPT: told of, and nobody has found it untrue since       */
    bool cuts;                      /* KEPT: told of an end or of urgent data: a read may come out
                                       short although there is more                              */
};

/* The number of the event after `sequence`: a ticket (driver.h), so 31 bits and never 0. */
static inline uint32_t sni_slot_next(uint32_t sequence)
{
    return sequence < SNI_TICKET_MAX ? sequence + 1 : 1;
}

/* Of two numbers that are less than 2^30 events apart. */
static inline bool sni_slot_is_not_older(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 1) >= 0;
}

enum { SNI_SLOTS_CHUNK = 256 };

/* Slots never move: a chunk of them is made when the first of its numbers is used. Zeroed is
 * empty. */
struct sni_slots {
    struct sni_slot **chunks;
    size_t count; /* of chunks, made or not */
};

/* The slot of `fd`, or NULL if it was never asked for by sni_slots_make. */
static inline struct sni_slot *sni_slots_find(const struct sni_slots *slots, int fd)
{
    size_t chunk = (unsigned)fd / SNI_SLOTS_CHUNK; /* of a negative number: more than there are */
    if (sni_unlikely(chunk >= slots->count || slots->chunks[chunk] == NULL))
        return NULL;
    return &slots->chunks[chunk][(unsigned)fd % SNI_SLOTS_CHUNK];
}

/* The same, made if needed. `fd` is not negative.
 *
 * Returns  0, -ENOMEM */
int sni_slots_make(struct sni_slots *slots, int fd, struct sni_slot **slot);

void sni_slots_finish(struct sni_slots *slots);

#endif
