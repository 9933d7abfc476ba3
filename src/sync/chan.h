/* SPDX-License-Identifier: MIT */
/* chan.h - the inside of a channel: what its files share.
 *
 *   chan_core.c       life, references, close, sending and receiving, waiting; the ring of those
 *                     with a capacity: bounded, rendezvous (room for none), oneshot
 *   chan_unbounded.c  room without a limit
 *   chan_op.c         the futures
 *   select.c          several at once
 *
 * See chan_core.c for the protocol. */
#ifndef SINEW_SYNC_CHAN_H
#define SINEW_SYNC_CHAN_H

#include "base/list.h"
#include "mem/arena.h"
#include "sync/source.h"

#include <sinew/chan.h>

#include <stddef.h>
#include <string.h>

/* What tells one kind of record from another: the word behind its head. */
enum {
    SNI_CHAN_MAGIC = 0x6e616863,
    SNI_BROADCAST_MAGIC = 0x74736362,
    SNI_WATCH_MAGIC = 0x68637477,
    SNI_CHAN_USES = 16, /* of a channel that are paid for in one go; divides 256 */
    SNI_CHAN_WAIT = 1,  /* what the quick ways say: there is nobody to serve or be served by */
    SNI_CHAN_ASK = 2,   /* it is not for the quick */
};

/* As a capacity: none, but that a length is 32 bits. */
#define SNI_CHAN_UNLIMITED UINT32_MAX

/* A piece of an unbounded channel. Elements lie as in a ring: where malloc puts things. */
struct sni_segment {
    struct sni_segment *next;
    _Alignas(max_align_t) char elements[];
};

struct sni_chan {
    struct sni_record record;
    uint32_t magic;    /* these: immutable */
    uint32_t capacity; /* in elements; the maximum: unbounded */
    size_t element_bytes;
    char *ring; /* NULL: unbounded, or nothing to keep */
    void (*drop)(void *element, void *arg);
    void *drop_arg;
    bool oneshot;
    bool is_quick; /* bounded, for more than one element, and those are 4, 8 or 16 bytes */

    _Alignas(64) struct sni_source source; /* guards all that follows */
    uint32_t len;
    uint32_t head; /* where the oldest element is, in the ring or in the first segment */
    uint32_t tail; /* where the next one goes to, in the ring or in the last segment */
    bool is_closed;
    uint8_t uses;              /* calls that did not wait: see chan_core.c */
    struct sni_list receivers; /* parties; only if there is no element */
    struct sni_list senders;   /* parties; only if there is no room */
    struct sni_segment *first; /* unbounded: where the oldest element is, or NULL */
    struct sni_segment *last;
    struct sni_segment *spare; /* one that was emptied, or NULL */
    uint32_t senders_held;     /* references */
    uint32_t receivers_held;
    uint32_t refusing; /* who have given theirs up, and tell the others: the last frees it */
};

/* The channel of a handle, or NULL. What is not a handle at all has an even number on top, as
 * pointers have (0), and is not looked at: a living record's generation is odd. */
static inline struct sni_chan *sni_chan_find(const sn_chan *handle)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    struct sni_chan *c = (struct sni_chan *)(uintptr_t)(number & UINT64_C(0xFFFFFFFFFFFF));
    if (sni_unlikely((number >> 48 & 1) == 0))
        return NULL;
    /* acquire: pairs with the release that began its life */
    uint32_t generation = sni_atomic_load(&c->record.generation, acquire);
    bool is_ours = (generation & 0xFFFF) == number >> 48 && c->magic == SNI_CHAN_MAGIC;
    return sni_likely(is_ours) ? c : NULL;
}

#define SNI_CHAN_MISUSE() sni_misuse(-EBADF, "a channel is used that is gone, or was none")

/* Copy an element. Small ones without a call. */
static inline void sni_chan_copy(void *to, const void *from, size_t bytes)
{
    if (sni_likely(bytes == 8))
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 16)
        memcpy(to, from, 16);
    else if (bytes != 0)
        memcpy(to, from, bytes);
}

/* ---- under the lock -------------------------------------------------------------------- */

/* Send `value` without waiting: to a receiver that waits, else into the channel.
 *
 * Returns  0; -EAGAIN: it must wait; -EPIPE, -ENOMEM; and a wake may be owed */
int sni_chan_put(struct sni_chan *c, const void *value, struct sni_wake *wake);

/* Receive without waiting. Returns 0; -EAGAIN, -EPIPE; and a wake may be owed */
int sni_chan_take(struct sni_chan *c, void *value, struct sni_wake *wake);

/* Take the lock, and do what is usual.
 *
 * Returns  0, and the lock was given back; it is held: SNI_CHAN_WAIT, as -EAGAIN; SNI_CHAN_ASK: ask
 *          one of the above, and count the use */
int sni_chan_send_quick(struct sni_chan *c, const void *value);
int sni_chan_recv_quick(struct sni_chan *c, void *value);

/* Give the lock back, and pay what is owed: also what a oneshot channel owes to those who come too
 * late. */
void sni_chan_leave(struct sni_chan *c, struct sni_wake wake);

/* Unbounded: room for one more at the end, or from the front. The first gives NULL if there is no
 * memory; neither touches `len`. */
void *sni_segments_grow(struct sni_chan *c);
void *sni_segments_front(struct sni_chan *c);
void sni_segments_shrink(struct sni_chan *c);
void sni_segments_finish(struct sni_chan *c);

#endif
