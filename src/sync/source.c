/* SPDX-License-Identifier: MIT */
/* source.c - waiting in a line, for plain calls.
 *
 * A fiber of a runtime that was shut down never goes on: whoever abandons it takes its party out of
 * the line (sni_lent), under the lock; so nobody serves it any more, and who was just about to has
 * come to an end. */
#include "sync/source.h"

#include "base/assert.h"
#include "sync/chan.h"
#include "wait/await.h"

enum {
    WAKES = 16, /* that are paid in one go */
};

struct visit {
    struct sni_waiter waiter;
    struct sni_party party;
    struct sni_lent lent;
    struct sni_source *source;
};

static void leave(struct visit *v)
{
    sni_brief_lock(&v->source->lock);
    sni_list_remove(&v->party.link);
    sni_brief_unlock(&v->source->lock);
}

static void take_back(struct sni_lent *lent)
{
    leave(sni_container_of(lent, struct visit, lent));
}

static inline void enter(struct visit *v, struct sni_source *source, struct sni_list *list,
                         void *value)
{
    v->party = (struct sni_party){.waiter = &v->waiter, .value = value};
    sni_list_init(&v->party.link);
    sni_list_push_back(list, &v->party.link);
    v->lent.take_back = take_back;
    v->source = source;
    sni_brief_unlock(&source->lock);
}

/* A thread, or for some time only. */
SNI_NEVER_INLINE static int wait_somehow(struct sni_source *source, struct sni_list *list,
                                         void *value, sn_deadline until)
{
    struct visit v;
    struct sni_exec *exec = sni_exec_current();
    bool is_coro = exec != NULL && exec->fiber == NULL;
    if (until.ns <= 0 || is_coro) {
        sni_brief_unlock(&source->lock);
        return until.ns <= 0 ? -ETIMEDOUT
                             : sni_misuse(-EDEADLK, "a coroutine waits at a channel and would "
                                                    "block its worker");
    }
    sni_wait_begin_on(&v.waiter, exec);
    enter(&v, source, list, value);
    sni_wait_lend(&v.waiter, &v.lent);
    int rc = sni_wait_commit(&v.waiter, until);
    sni_wait_lend(&v.waiter, NULL);
    if (rc < 0)
        leave(&v);
    return rc;
}

int sni_source_wait(struct sni_source *source, struct sni_list *list, void *value,
                    sn_deadline until)
{
    struct visit v;
    if (sni_unlikely(until.ns != SN_FOREVER.ns))
        return wait_somehow(source, list, value, until);
    struct sni_exec *exec = sni_exec_current();
    if (sni_unlikely(exec == NULL || exec->fiber == NULL || exec->ops->wait_at == 0))
        return wait_somehow(source, list, value, until);
    sni_wait_word *word = sni_wait_begin_near(&v.waiter, exec);
    struct sni_lent **lent = sni_wait_lent_near(exec);
    *lent = &v.lent;
    enter(&v, source, list, value);
    int rc = sni_wait_commit_near(&v.waiter, exec, word);
    *lent = NULL;
    if (sni_unlikely(rc < 0))
        leave(&v);
    return rc;
}

/* Wake the first of the list that still waits. */
static bool wake_one(struct sni_list *list, bool refuse, struct sni_wake *wake)
{
    struct sni_list *link;
    while ((link = sni_list_pop_front(list)) != NULL) {
        struct sni_party *p = sni_container_of(link, struct sni_party, link);
        if (refuse ? sni_party_refuse(p, wake) : sni_party_claim(p, wake))
            return true;
    }
    return false;
}

void sni_source_wake_all(struct sni_source *source, struct sni_list *list, bool refuse)
{
    /* Who comes from now on waits for something else. The list stays under the lock: those in it
     * may time out and take themselves out. */
    struct sni_list now;
    sni_list_init(&now);
    if (!sni_list_empty(list)) {
        sni_list_insert(list, &now);
        sni_list_remove(list);
    }
    bool more;
    do {
        struct sni_wake wakes[WAKES] = {{NULL, NULL}};
        unsigned n = 0;
        while (n < WAKES && wake_one(&now, refuse, &wakes[n]))
            n++;
        more = n == WAKES;
        sni_brief_unlock(&source->lock);
        sni_await_pay(wakes, n);
        if (more)
            sni_brief_lock(&source->lock);
    } while (more);
}

/* ---- for reports ----------------------------------------------------------------------------- */

struct sni_place sni_source_place(const struct sni_source *source, const char *what)
{
    const struct sni_record *record = sni_arena_around((uintptr_t)source);
    if (record == NULL)
        return (struct sni_place){.what = what};
    const void *handle = (const void *)(uintptr_t)sni_record_handle(record);
    return (struct sni_place){.what = what, .object = handle, .tie = SNI_TIE_HANDLE};
}

static bool is_in(struct sni_list *list, const struct sni_list *link)
{
    const struct sni_list *at = list->next;
    while (at != list && at != link)
        at = at->next;
    return at == link;
}

/* Those who wait at a channel are on one side, as a rule (chan_core.c). */
static bool is_sender(struct sni_chan *c, const struct sni_party *party)
{
    sni_brief_lock(&c->source.lock);
    bool sends = !sni_list_empty(&c->senders) &&
                 (sni_list_empty(&c->receivers) || is_in(&c->senders, &party->link));
    sni_brief_unlock(&c->source.lock);
    return sends;
}

/* What begins with a record and goes on with a number. */
struct numbered {
    struct sni_record record;
    uint32_t magic;
};

static void tell(const struct sni_lent *lent, sni_place_fn *each, void *arg)
{
    const struct visit *v = sni_container_of(lent, struct visit, lent);
    struct sni_record *record = sni_arena_around((uintptr_t)v->source);
    uint32_t magic = record != NULL ? ((struct numbered *)(void *)record)->magic : 0;
    const char *what = "channel";
    if (magic == SNI_CHAN_MAGIC)
        what = is_sender((struct sni_chan *)(void *)record, &v->party) ? "send" : "recv";
    else if (magic == SNI_BROADCAST_MAGIC)
        what = "broadcast";
    else if (magic == SNI_WATCH_MAGIC)
        what = "watch";
    struct sni_place place = sni_source_place(v->source, what);
    each(&place, arg);
}

const struct sni_wait_kind sni_source_waits = {.take_back = take_back, .tell = tell};
