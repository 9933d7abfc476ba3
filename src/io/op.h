/* SPDX-License-Identifier: MIT */
/* op.h - one operation on a descriptor, from the moment somebody waits for it to its end.
 *
 * An operation lies in its owner's frame. It belongs to a driver from sni_driver_submit until
 * the driver *completes* it, exactly once, whether it succeeded, failed or was cancelled; only
 * then is its waiter claimed. So when its owner goes on, the kernel has neither the operation
 * nor its buffer any more.
 *
 * A deadline, a close or a cancellation does not end the wait: it asks the driver to cancel,
 * and the operation completes soon after, with -ECANCELED or, if that came too late, with what
 * it achieved. `why` remembers who asked first. */
#ifndef SINEW_IO_OP_H
#define SINEW_IO_OP_H

#include "base/list.h"
#include "wait/wait.h"

#include <stddef.h>
#include <stdint.h>

/* What an operation does. Each driver can do POLL; one that cannot do another kind itself
 * (sni_driver_ops.native) gets a POLL instead, and the owner makes the system call. */
enum sni_op_kind {
    SNI_OP_POLL,    /* events  -> the events that are there (more than 0)                  */
    SNI_OP_ACCEPT,  /* addr, addr_bytes (in and out) -> a new descriptor, close-on-exec     */
    SNI_OP_CONNECT, /* addr, *addr_bytes -> 0                                               */
    SNI_OP_RECV,    /* buf, bytes, flags -> bytes; 0 is the end of the stream               */
    SNI_OP_SEND,    /* buf, bytes, flags -> bytes                                           */
    SNI_OP_RECVMSG, /* msg, flags -> bytes                                                  */
    SNI_OP_SENDMSG, /* msg, flags -> bytes                                                  */
    SNI_OP_KINDS,
};

/* Events of a POLL, in and out. A broken or closed other end makes both true. Whoever is told of
 * one tries, and may find that it is not so any more, or never was. */
enum {
    SNI_READABLE = 1,
    SNI_WRITABLE = 2,
    SNI_PRIORITY = 4, /* urgent data, a change of a sysfs file: what poll(2) calls POLLPRI */
};

struct sni_driver;
struct sockaddr;
struct msghdr;

/* A list whose head is one word: `at` is what points to the link. One that is in none points to
 * itself, so that to take it out is harmless. */
struct sni_chain {
    struct sni_chain *next;
    struct sni_chain **at;
};

static inline void sni_chain_init(struct sni_chain *link)
{
    link->next = NULL;
    link->at = &link->next;
}

static inline void sni_chain_push(struct sni_chain **head, struct sni_chain *link)
{
    link->next = *head;
    link->at = head;
    if (sni_unlikely(link->next != NULL))
        link->next->at = &link->next;
    *head = link;
}

static inline void sni_chain_remove(struct sni_chain *link)
{
    *link->at = link->next;
    if (sni_unlikely(link->next != NULL))
        link->next->at = link->at;
}

/* There is one for each idle connection: two lines of memory, and no room for what can be shared.
 * `link` of the waiter is the driver's. */
struct sni_op {
    struct sni_waiter waiter;  /* the owner's; claimed with 0 when the operation is complete   */
    struct sni_list pending;   /* in the driver's list of all, under its lock                 */
    struct sni_chain on_file;  /* the file's: `ops` under the driver's lock, or `strays` under
                                  the file's; for operations of foreign descriptors unused     */
    struct sni_driver *driver; /* whom it was given to; NULL before                           */
    union {                    /* these: set by the owner before submit; a POLL needs neither
                                  of the two, and leaves them alone                           */
        void *buf;
        struct msghdr *msg;
        struct sockaddr *addr;
    };
    union {
        size_t bytes;
        uint32_t *addr_bytes;
    };
    int fd;
    uint32_t flags;  /* of the system call; POLL of a kept descriptor: see "Tickets" in driver.h */
    uint8_t kind;    /* sni_op_kind                                                            */
    uint8_t events;  /* POLL                                                                   */
    bool is_stray;   /* in `strays` of its file: not taken out by its end, but by its owner      */
    bool kept;       /* the descriptor is a file's of ours: it is not closed without
                       sni_driver_forget, so a registration may be kept                        */
    bool is_polled;  /* the owner makes the system call, whatever the driver could do            */
    bool is_guess;   /* POLL: what the ticket stands for is a guess, see driver.h               */
    bool is_awaited; /* a coroutine's: nobody but sni_op_complete claims the waiter, and never
                        before the owner sleeps; see driver.c                                  */
    uint8_t state;   /* the driver's, under its lock; 0 before submit                           */
    int why;         /* under the driver's lock: 0, or the reason of the cancellation (-errno)   */
    int result;      /* after completion: as above, or -errno; no system call moves more        */
};

/* Prepare what the owner has to, and no more: the rest is begin's and submit's. */
static inline void sni_op_init(struct sni_op *op, enum sni_op_kind kind)
{
    op->fd = -1;
    op->flags = 0;
    op->kind = (uint8_t)kind;
    op->events = 0;
    op->is_stray = false;
    op->kept = false;
    op->is_polled = false;
    op->is_guess = false;
    op->is_awaited = false;
    op->state = 0;
}

static inline void sni_op_init_move(struct sni_op *op, enum sni_op_kind kind, void *buf,
                                    size_t bytes)
{
    sni_op_init(op, kind);
    op->buf = buf;
    op->bytes = bytes;
}

/* It will be completed soon: fetch it into the cache. Anything may be there. */
static inline void sni_op_prefetch(const struct sni_op *op)
{
    sni_prefetch(op);
    sni_prefetch((const char *)op + 64);
}

/* States of an operation that all drivers share; a driver's own follow. */
enum {
    SNI_OP_IDLE,     /* not submitted                    */
    SNI_OP_COMPLETE, /* it is the owner's again          */
    SNI_OP_PENDING,  /* the driver has it                */
    SNI_OP_DRIVER_STATES,
};

/* Drivers: `op` is over. Under the driver's lock; `op` must not be touched afterwards. */
void sni_op_complete(struct sni_op *op, ptrdiff_t result);

#endif
