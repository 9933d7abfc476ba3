/* SPDX-License-Identifier: MIT */
/* poll.h - the driver that needs nothing but poll(2): for plain threads, and where all else is
 * forbidden. */
#ifndef SINEW_IO_POLL_POLL_H
#define SINEW_IO_POLL_POLL_H

#include "io/bell.h"
#include "io/driver.h"

#include <poll.h>

enum { SNI_POLL_INLINE = 4 }; /* operations that need no memory of the heap */

/* May others reach the driver while its owner sleeps in it? */
enum sni_poll_reach {
    SNI_POLL_ALONE,  /* nobody submits, cancels, reaps or wakes but the owner: no wake descriptor */
    SNI_POLL_SHARED, /* anybody                                                                   */
};

struct sni_poll {
    struct sni_driver driver; /* all that follows, but for the bell: under its lock               */
    struct sni_bell bell;
    struct sni_list ops; /* what is pending, in the order of submission                      */
    unsigned count;
    bool alone;           /* immutable                                                        */
    bool on_heap;         /* immutable                                                        */
    bool asleep;          /* the owner is in wait, and `set` is its own                        */
    bool same;            /* `ops` are those of `set`, one by one                             */
    bool fresh;           /* and `set` has the kernel's answers                               */
    struct pollfd *set;   /* what is asked for; [0] is the bell's                              */
    struct pollfd *spare; /* NULL, or a larger one for the next wait                          */
    unsigned room;        /* of `set`                                                         */
    unsigned spare_room;
    struct pollfd inline_[1 + SNI_POLL_INLINE];
};

/* A driver in the caller's memory, which stays where it is: a thread keeps one on its stack for as
 * long as it waits. Allocates nothing for up to SNI_POLL_INLINE operations at a time. A shared one
 * gets its wake descriptor with the first operation, which is complete with -EMFILE, -ENFILE or
 * -ENOMEM if there is none to be had. To be finished by sni_driver_finish. */
void sni_poll_init(struct sni_poll *poll, enum sni_poll_reach reach);

/* A shared driver on the heap, with its wake descriptor.
 *
 * Returns  0, -ENOMEM, -EMFILE, -ENFILE
 * Owns: to be finished, and freed by that, with sni_driver_finish */
int sni_poll_create(struct sni_driver **driver);

#endif
