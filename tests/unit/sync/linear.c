/* SPDX-License-Identifier: MIT */
/* linear.c - the search for an order of calls, and the objects that it is an order for.
 *
 * All orders are tried, depth first, with those states left out from which the search has failed
 * before. A state is which calls are done, and what the object then is.
 *
 * Objects. A call stands in the order where it took place; one that gave -ETIMEDOUT without waiting
 * stands where it could not be done; one that waited in vain may stand anywhere and does nothing.
 *
 *   channel     a queue with a capacity. -EPIPE stands after the close, for a receive: when empty.
 *               A rendezvous is a queue of capacity 0, in which a send and a receive that overlap
 *               stand next to each other, as one
 *   mutex       free, or somebody's
 *   semaphore   a number. An attempt is also refused if another waits for more than there is, and
 *               must not be overtaken: there is a call that waited at the same time
 *   rwlock      one who writes, or a number of readers. Attempts are refused as with a semaphore */
#include "unit/sync/linear.h"

#include <sinew/errno.h>

#include <stdio.h>
#include <string.h>

enum {
    SEEN_PLACES = 1 << 14,
    PROBES = 64,
};

struct state {
    uint32_t done;                  /* bits of calls                                            */
    bool is_closed;                 /* a channel's                                              */
    int8_t owner;                   /* of a lock: actor + 1, or 0                               */
    int16_t count;                  /* units, readers, or how many are in the queue             */
    int8_t queue[LINEAR_CALLS_MAX]; /* numbers of the sends, the oldest first   */
};

static struct {
    struct state seen[SEEN_PLACES];
    uint32_t used[SEEN_PLACES]; /* by which search */
    uint32_t search;
} memory;

/* Whether the state is new; it is remembered. */
static bool is_new(const struct state *s)
{
    uint32_t hash = s->done * 2654435761u + (uint32_t)s->count * 97u + (uint32_t)s->is_closed +
                    (uint32_t)s->owner * 57u;
    for (int i = 0; i < LINEAR_CALLS_MAX; i++)
        hash = hash * 31u + (uint8_t)s->queue[i];
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        uint32_t at = (hash + probe) % SEEN_PLACES;
        if (memory.used[at] != memory.search) {
            memory.used[at] = memory.search;
            memory.seen[at] = *s;
            return true;
        }
        if (memcmp(&memory.seen[at], s, sizeof(*s)) == 0)
            return false;
    }
    return true; /* forgotten, which costs time only */
}

/* ---- the objects ----------------------------------------------------------------------------- */

/* What a call on a channel does. False: a queue could not have. */
static bool apply_chan(const struct linear_history *h, struct state *s, int i)
{
    const struct linear_call *c = &h->calls[i];
    if (c->what == LINEAR_CLOSE) {
        s->is_closed = true;
        return true;
    }
    bool sends = c->what == LINEAR_SEND;
    bool could = sends ? !s->is_closed && s->count < h->size : s->count > 0;
    if (c->rc == -ETIMEDOUT)
        return c->is_patient || (!could && !s->is_closed);
    if (c->rc == -EPIPE)
        return s->is_closed && (sends || s->count == 0);
    if (c->rc != 0 || !could)
        return false;
    if (sends) {
        s->queue[s->count++] = (int8_t)i;
        return true;
    }
    if (h->calls[s->queue[0]].value != c->value)
        return false;
    memmove(s->queue, s->queue + 1, (size_t)--s->count);
    s->queue[s->count] = 0;
    return true;
}

/* Somebody waited while call `i` was made, perhaps. */
static bool may_be_in_line(const struct linear_history *h, int i)
{
    for (int k = 0; k < h->n; k++)
        if (k != i && h->calls[k].is_patient && h->calls[k].began < h->calls[i].ended &&
            h->calls[i].began < h->calls[k].ended)
            return true;
    return false;
}

/* A call that takes something, which is to be had if `could`. */
static bool may_take(const struct linear_history *h, int i, bool could)
{
    const struct linear_call *c = &h->calls[i];
    if (c->rc == 0)
        return could;
    if (c->rc != -ETIMEDOUT)
        return false;
    return c->is_patient || !could || (h->kind != LINEAR_MUTEX && may_be_in_line(h, i));
}

static bool apply_sem(const struct linear_history *h, struct state *s, int i)
{
    const struct linear_call *c = &h->calls[i];
    if (c->what == LINEAR_UNLOCK)
        s->count = (int16_t)(s->count + c->value);
    else if (!may_take(h, i, s->count >= c->value))
        return false;
    else if (c->rc == 0)
        s->count = (int16_t)(s->count - c->value);
    return c->what == LINEAR_LOCK || c->rc == 0;
}

/* What a call on a mutex or a lock does; a mutex has no readers. */
static bool apply_lock(const struct linear_history *h, struct state *s, int i)
{
    const struct linear_call *c = &h->calls[i];
    int8_t me = (int8_t)(c->actor + 1);
    bool can = true;
    switch (c->what) {
    case LINEAR_LOCK:
        if (!may_take(h, i, s->owner == 0 && s->count == 0))
            return false;
        s->owner = c->rc == 0 ? me : s->owner;
        return true;
    case LINEAR_LOCK_SHARED:
        if (!may_take(h, i, s->owner == 0))
            return false;
        s->count = (int16_t)(s->count + (c->rc == 0));
        return true;
    case LINEAR_UNLOCK_SHARED:
        can = s->count > 0;
        s->count = (int16_t)(s->count - (c->rc == 0));
        break;
    default: /* an unlock, or a downgrade */
        can = s->owner == me;
        if (c->rc == 0) {
            s->owner = 0;
            s->count = c->what == LINEAR_DOWNGRADE;
        }
    }
    return c->rc == (can ? 0 : -EPERM);
}

static bool apply(const struct linear_history *h, struct state *s, int i)
{
    s->done |= 1u << i;
    switch (h->kind) {
    case LINEAR_CHAN:
        return apply_chan(h, s, i);
    case LINEAR_SEM:
        return apply_sem(h, s, i);
    default:
        return apply_lock(h, s, i);
    }
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Could `i` be the next: nobody who is left had ended before it began? */
static bool may_be_next(const struct linear_history *h, const struct state *s, int i)
{
    for (int k = 0; k < h->n; k++)
        if ((s->done >> k & 1) == 0 && h->calls[k].ended < h->calls[i].began)
            return false;
    return true;
}

static bool search(const struct linear_history *h, struct state s);

/* Of a rendezvous: `send`, which could be the next, and a receive that got its value. */
static bool search_meetings(const struct linear_history *h, const struct state *s, int send)
{
    for (int k = 0; k < h->n; k++) {
        struct state next = *s;
        next.done |= 1u << send | 1u << k;
        if ((s->done >> k & 1) == 0 && h->calls[k].what == LINEAR_RECV && h->calls[k].rc == 0 &&
            h->calls[k].value == h->calls[send].value && may_be_next(h, s, k) && !s->is_closed &&
            search(h, next))
            return true;
    }
    return false;
}

static bool search(const struct linear_history *h, struct state s)
{
    if (s.done == (1u << h->n) - 1)
        return true;
    if (!is_new(&s))
        return false;
    for (int i = 0; i < h->n; i++) {
        if ((s.done >> i & 1) != 0 || !may_be_next(h, &s, i))
            continue;
        struct state next = s;
        if (apply(h, &next, i) && search(h, next))
            return true;
        if (h->kind == LINEAR_CHAN && h->size == 0 && h->calls[i].what == LINEAR_SEND &&
            h->calls[i].rc == 0 && search_meetings(h, &s, i))
            return true;
    }
    return false;
}

bool is_linearizable(const struct linear_history *h)
{
    struct state start;
    memset(&start, 0, sizeof(start)); /* also what lies between the members: it is compared */
    start.count = h->kind == LINEAR_SEM ? (int16_t)h->size : 0;
    memory.search++;
    return search(h, start);
}

void linear_print(const struct linear_history *h)
{
    static const char *const names[] = {"send",   "recv",        "close",         "lock",
                                        "unlock", "lock shared", "unlock shared", "downgrade"};
    for (int k = 0; k < h->n; k++) {
        const struct linear_call *c = &h->calls[k];
        fprintf(stderr, "%2d: %d: %s%s %d: %d, from %d to %d\n", k, c->actor, names[c->what],
                c->is_patient ? " patiently" : "", c->value, c->rc, (int)c->began, (int)c->ended);
    }
}
