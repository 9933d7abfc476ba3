/* SPDX-License-Identifier: MIT */
/* place.h - where somebody waits, and who could end that: for reports, never for running.
 *
 * Nothing is written down for this while a program runs. A fiber that waits has lent something
 * (current.h), because a runtime that abandons it must take that back; so its record leads to the
 * frame of the call that waits, and `take_back` tells which call that is. A coroutine that waits
 * holds a future of a kind that is told by its vtable. Each room that lets others wait knows how
 * to read its own frames and says so in a table (struct sni_wait_kind); the runtime, which knows
 * all rooms, has the list of tables (runtime/inspect.c).
 *
 * A frame is read only while its owner cannot go on: inspect.c tells how that is seen to.
 *
 * Rejected: a field in the task that each wait fills in (a store on the way into every wait, and
 * another on the way out, for the sake of programs that hang); a build option that compiles such
 * stores in (the program that hangs was built without). */
#ifndef SINEW_WAIT_PLACE_H
#define SINEW_WAIT_PLACE_H

#include "wait/current.h"

#include <sinew/future.h>

/* Who could end a wait. */
enum sni_tie {
    SNI_TIE_UNKNOWN, /* somebody, or the world outside                                         */
    SNI_TIE_HANDLE,  /* who has a handle of the record that `object` is in                      */
    SNI_TIE_MEMORY,  /* who can get at the memory at `object`                                   */
    SNI_TIE_OWNER,   /* `owner` alone: it holds the lock, or it is the task whose end is awaited */
};

struct sni_place {
    const char *what;   /* "mutex", "send", ...                                           */
    const void *object; /* what people should be told: an address, or a channel's handle    */
    uintptr_t owner;    /* sni_exec_self of the one that has it; a task's address; or 0    */
    enum sni_tie tie;
    const void *link; /* of who waits, in the queue there: its neighbours point to it; or NULL  */
};

typedef void sni_place_fn(const struct sni_place *place, void *arg);

/* One way to wait; what is not there is NULL. Each tells one place, or several of which any one
 * ends the wait. A `take_back` belongs to one struct around its sni_lent, and a vtable to one
 * around its future: they are all that tells what is there. */
struct sni_wait_kind {
    void (*take_back)(struct sni_lent *lent); /* how a fiber's wait is recognised */
    void (*tell)(const struct sni_lent *lent, sni_place_fn *each, void *arg);
    const sn_future_vtable *vtable; /* how that of a coroutine is */
    void (*tell_op)(const sn_future *op, sni_place_fn *each, void *arg);
    bool is_world; /* it ends by a time or a descriptor; then nothing is told */
};

#endif
