/* SPDX-License-Identifier: MIT */
/* case.h - what a select and the things it waits for know of each other.
 *
 * It lies in this room because such things are in many: channels in sync, clocks in timer, tasks in
 * task, descriptors in io. None of them knows select.c, and it knows none of them.
 *
 * Words
 *   source   what has a lock, and lists of those who wait there: a channel, a broadcast, a watch
 *   party    somebody who waits at a source, in one of its lists. A plain call is one party; a
 *            select is one for each of its cases, all with one waiter: who claims that, serves it
 *   case     one of the things a select waits for. It is *inside* if it stands at a source, else
 *            *outside*: the select cannot lock a clock, a task, a driver or a future
 *   vigil    one wait of a select, as the outside cases see it
 *
 * Rules of sources
 *   1. A party is linked, unlinked and looked at under its source's lock.
 *   2. Who serves a party unlinks it first. A claim that fails is a party that is over (served
 *      elsewhere, timed out, cancelled): it stays unlinked, and the next one is tried.
 *   3. Who was served needs the lock no more, except a select. Who was not takes the lock, to
 *      unlink itself and to wait for whoever is just looking at it, before its frame goes away.
 *
 * Rule of outside cases
 *   4. A claim tells that something is so; it consumes nothing, so one that comes too late has done
 *      nothing. What is to be consumed (a future's result) is consumed by the select itself, when
 *      nobody can claim it. */
#ifndef SINEW_WAIT_CASE_H
#define SINEW_WAIT_CASE_H

#include "plat/thread.h"
#include "wait/wait.h"

#include <sinew/errno.h>
#include <sinew/future.h>

enum {
    SNI_CASES_MAX = 64, /* of a select */
};

/* What the claim of a select's waiter says, if it is no error: the number of a case, plus */
enum {
    SNI_SAYS_SERVED = 0,
    SNI_SAYS_CLOSED = SNI_CASES_MAX,   /* inside: its result is -EPIPE                 */
    SNI_SAYS_TOLD = 2 * SNI_CASES_MAX, /* outside: its result is there                 */
    SNI_SAYS_AGAIN = 3 * SNI_CASES_MAX /* without a number: something may be so, look */
};

struct sni_source {
    struct sni_brief lock;
    uint32_t draws; /* under the lock: for selects, how often they drew lots here */
};

struct sni_party {
    struct sni_list link;      /* rule 1 */
    struct sni_waiter *waiter; /* these: immutable while it is linked */
    void *value;               /* where the element goes to or comes from */
    uint16_t index;            /* what a claim says: 0, or the case of a select */
    bool is_case;              /* of a select: others may write to `value`, so claim first; the
                                  owner takes the lock before it looks */
};

enum sni_where {
    SNI_OFF,
    SNI_INSIDE,
    SNI_OUTSIDE,
};

/* A case of a select, as the public sn_case holds it. The first four are its maker's, and stay as
 * they are. */
struct sni_case {
    const struct sni_case_kind *kind;
    void *at;     /* what the user named; NULL: never takes place */
    void *value;  /* what goes with it */
    int64_t more; /* likewise */
    int result;
    uint8_t where;    /* these: the select's. sni_where */
    uint8_t index;    /* outside: its number */
    bool is_prepared; /* outside: and not yet ended */
    union {
        struct { /* inside */
            struct sni_source *source;
            struct sni_party party;
        };
        void *room[9]; /* outside: the kind's own, from `prepare` to `end` */
    };
};

/* One wait of a select. */
struct sni_vigil {
    struct sni_waiter waiter; /* whom to claim; alive until all cases have ended */
    struct sni_case *cases;   /* all of them, for a kind that must know of twins */
    struct sni_door *door;    /* NULL, or how a plain thread waits: set by a `prepare` */
    int64_t until_ns;         /* how long to wait; a `begin` may shorten it */
    int16_t timer;            /* and then this is the case that takes place; else -1 */
    bool is_awaited;          /* by a coroutine: nobody heeds `until_ns` */
};

/* How a plain thread waits if it must do something meanwhile: turn a driver of its own. */
struct sni_door {
    /* Begin `w` so that a claim ends the wait here. */
    void (*bind)(struct sni_door *door, struct sni_waiter *w);

    /* Wait until `w` is claimed, and who claimed it has let go; as sni_wait_commit. */
    int (*wait)(struct sni_door *door, struct sni_waiter *w, int64_t until_ns);

    void (*finish)(struct sni_door *door);
};

/* What a select must know of a kind of case. A new kind is a new table, and a function that makes
 * a case of it. */
struct sni_case_kind {
    /* The source of c->at, which is not NULL; NULL: it is gone, or was none. An outside kind has no
     * such function, nor the others. */
    struct sni_source *(*find)(struct sni_case *c);

    /* Under its lock: do it without waiting. -EAGAIN: it must wait; else the case has taken place
     * with this result, and *wake may be owed. */
    int (*attempt)(struct sni_case *c, struct sni_wake *wake);

    /* Under its lock: the line to wait in. Who serves it there claims by sni_party_claim and only
     * then writes to `value`, before the unlock; or claims by sni_party_refuse. */
    struct sni_list *(*line)(struct sni_case *c);

    /* Without the lock: what an attempt that took place has left to do. NULL: nothing. */
    void (*after)(struct sni_case *c);

    /* Who is served is only told that it is worth while to attempt again. */
    bool is_news;

    /* Of an outside kind. */
    const struct sni_outside *outside;

    const char *name; /* for reports */

    /* For reports: the task that alone makes it so. NULL: others may. */
    const void *(*owner)(const struct sni_case *c);
};

struct sni_outside {
    /* Is it so now? True: the case has taken place with *result. A future is polled, with `waker`;
     * nobody can claim the select meanwhile. */
    bool (*look)(struct sni_case *c, const sn_waker *waker, int *result);

    /* Get what may not be to be had. Nothing is known to others yet. Returns 0, or -errno, which
     * ends the select. NULL: nothing to do, as for the others. */
    int (*prepare)(struct sni_case *c, struct sni_vigil *vigil);

    /* From here on, until `end`, sni_case_tell when it is so; perhaps at once. */
    void (*begin)(struct sni_case *c, struct sni_vigil *vigil);

    /* Begun or just prepared: from the return of this on nobody claims, and nobody touches the
     * case. `abandoned`: the select's fiber never goes on, and should not be woken. */
    void (*end)(struct sni_case *c, bool abandoned);

    bool is_future; /* `look` arms a waker: a wake says SNI_SAYS_AGAIN */
};

/* It is so. */
static inline void sni_case_tell(struct sni_case *c, struct sni_vigil *vigil, int result)
{
    c->result = result;
    (void)sni_wait_claim(&vigil->waiter, SNI_SAYS_TOLD + c->index);
}

/* ---- relays ------------------------------------------------------------------------------- */

/* Passes the claim of one waiter (a task's joiner, an operation's) on to that of a select. */
struct sni_relay {
    struct sni_case *of; /* these: immutable after begin */
    struct sni_vigil *vigil;
    SNI_ATOMIC(uint32_t) over; /* who passed it on will not touch the case any more */
};

/* Bind `w`. */
void sni_relay_begin(struct sni_relay *relay, struct sni_waiter *w, struct sni_case *of,
                     struct sni_vigil *vigil);

/* `w` was made known to those who claim it. */
void sni_relay_published(struct sni_relay *relay, struct sni_waiter *w);

/* `w` was claimed, or is about to be: return when that is over, in a few instructions. */
void sni_relay_settle(const struct sni_relay *relay);

#endif
