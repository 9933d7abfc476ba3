/* SPDX-License-Identifier: MIT */
/* ring.h - the two rings that are shared with the kernel, and nothing about operations.
 *
 * liburing makes and maps them, and fills in entries; moving their heads and tails is done here,
 * by the operations of base/atomic.h. Its own helpers read the words that are ours as plain
 * memory and so ask for one thread; a ring of ours is reaped by whoever has its driver's lock,
 * while its owner sleeps on it without.
 *
 *     submission   we write entries and move the tail, the kernel moves the head
 *     completion   the kernel writes entries and moves the tail, we move the head
 *
 * Everything here is called under the driver's lock, except sni_ring_sleep and sni_ring_message. */
#ifndef SINEW_IO_URING_RING_H
#define SINEW_IO_URING_RING_H

#include "io/uring/uring.h"

#include <liburing.h>

struct sni_ring {
    struct io_uring map; /* liburing's: where the rings lie, the descriptor, the flags       */
    uint32_t features;   /* immutable: SNI_URING_* bits                                      */
    uint32_t tail;       /* of the entries put; those behind the shared tail are not published */
};

/* A word that the kernel writes too, or reads. */
struct sni_ring_word {
    unsigned raw_;
};

static inline struct sni_ring_word *sni_ring_word(unsigned *word)
{
    return (struct sni_ring_word *)(void *)word;
}

/* Make a ring; `out` receives what was found, also when it fails. Results as sni_uring_create. */
int sni_ring_init(struct sni_ring *ring, const struct sni_uring_config *config,
                  struct sni_uring_features *out);
void sni_ring_finish(struct sni_ring *ring);

/* The next free entry of the submission ring, all zero, which the caller fills in at once; NULL if
 * there is none. The kernel sees it when it is published. */
struct io_uring_sqe *sni_ring_put(struct sni_ring *ring);

/* Show the kernel what was put. Returns how many entries it has not taken. */
unsigned sni_ring_publish(struct sni_ring *ring);

/* Publish, and make the kernel take it; with `events` it also does what work of the calling
 * thread it has put off. One system call, or none if there is nothing to do.
 *
 * Returns  how many entries it took (0 if a thread of the kernel takes them);
 *          -EAGAIN, -EBUSY, -ENOMEM: none now, what was put stays */
int sni_ring_push(struct sni_ring *ring, bool events);

/* The flags that the kernel shows: IORING_SQ_*. */
static inline unsigned sni_ring_flags(struct sni_ring *ring)
{
    /* relaxed: hints; what they stand for is fetched by a system call */
    return sni_atomic_load(sni_ring_word(ring->map.sq.kflags), relaxed);
}

/* How many completions are there to be read, from `head` on. */
static inline unsigned sni_ring_ready(struct sni_ring *ring, unsigned head)
{
    /* acquire: pairs with the kernel's release of the tail behind the entries it wrote */
    return sni_atomic_load(sni_ring_word(ring->map.cq.ktail), acquire) - head;
}

static inline unsigned sni_ring_head(struct sni_ring *ring)
{
    return sni_atomic_load(sni_ring_word(ring->map.cq.khead), relaxed); /* relaxed: ours */
}

static inline const struct io_uring_cqe *sni_ring_at(struct sni_ring *ring, unsigned head)
{
    return &ring->map.cq.cqes[head & ring->map.cq.ring_mask];
}

/* The completions before `head` were read: the kernel may use their place. */
static inline void sni_ring_seen(struct sni_ring *ring, unsigned head)
{
    /* release: pairs with the kernel's acquire, before it writes there */
    sni_atomic_store(sni_ring_word(ring->map.cq.khead), head, release);
}

/* Not locked. Sleep until a completion is there or `ns` nanoseconds have passed; INT64_MAX is
 * for ever; sometimes shorter. The kernel first takes `publ` published entries. */
void sni_ring_sleep(struct sni_ring *ring, unsigned publ, int64_t ns);

/* Not locked; any thread. Let a completion with this user data appear, without submitting.
 *
 * Returns  0; a negative errno: not now, or (-EINVAL) this kernel cannot */
int sni_ring_message(struct sni_ring *ring, uint64_t user_data);

#endif
