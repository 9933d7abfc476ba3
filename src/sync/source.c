/* SPDX-License-Identifier: MIT */
/* source.c - waiting in a line, for plain calls.
 *
 * A fiber of a runtime that was shut down never goes on: whoever abandons it takes its party out of
 * the line (sni_lent), under the lock; so nobody serves it any more, and who was just about to has
 * come to an end. */
#include "sync/source.h"

#include "base/assert.h"

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
    sni_mutex_lock(&v->source->lock);
    sni_list_remove(&v->party.link);
    sni_mutex_unlock(&v->source->lock);
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
    sni_mutex_unlock(&source->lock);
}

/* A thread, or for some time only. */
SNI_NEVER_INLINE static int wait_somehow(struct sni_source *source, struct sni_list *list,
                                         void *value, sn_deadline until)
{
    struct visit v;
    struct sni_exec *exec = sni_exec_current();
    bool is_coro = exec != NULL && exec->fiber == NULL;
    if (until.ns <= 0 || is_coro) {
        sni_mutex_unlock(&source->lock);
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
        sni_mutex_unlock(&source->lock);
        for (unsigned i = 0; i < n; i++)
            sni_wait_wake(wakes[i]);
        if (more)
            sni_mutex_lock(&source->lock);
    } while (more);
}
