/* SPDX-License-Identifier: MIT */
/* select.c - the first of several cases.
 *
 * A select is one waiter, and for each case a party (source.h) in the line of that case's source.
 * Two phases, and a third if it had to wait:
 *
 *   1. Lock the sources of all cases, in the order of their addresses, each once. Attempt the cases
 *      in a random order. The first that takes place ends it.
 *   2. Else put a party into each line, unlock all, and wait to be claimed.
 *   3. Lock all again, take the parties out, unlock. The claim says which case it was.
 *
 * One winner. Counterparts, closes, the deadline and a cancellation race to claim the one waiter;
 * its state word has one winner (wait.c). A counterpart copies the element only after its claim has
 * won: the others have neither read nor written anything, so losers have consumed nothing, also
 * where two cases share a buffer. It does so before it gives its lock back, and phase 3 takes that
 * lock before the select returns, so the element is there. (A sending case is the other way round:
 * its element is read first, and what was read counts only if the claim wins.)
 *
 * Two selects that meet, A already waiting and B just arriving, on a rendezvous and from whatever
 * sides: B is in phase 1, so it is in no line, nobody can claim it, and it needs no claim of its
 * own: it claims A, once, and both have won; or A was claimed elsewhere, B takes A's party out and
 * goes on. If both arrive at once, they have a channel in common and so one lock in common, which
 * one of them gets first; it has come to the end of phase 2 when the other one gets it. So never do
 * two selects both believe to have met while a third party has claimed one of them; and a select
 * never meets itself, because its parties are in the lines only when it attempts no more.
 *
 * No deadlock: locks of several sources are taken in the order of addresses only, here; all other
 * code holds one at a time, and nobody waits for anything else while holding one.
 *
 * No lost wake: between the last attempt and the parties' being in their lines, no lock is given
 * back.
 *
 * Fair: the order of attempts is a permutation drawn anew each time, so each case that can take
 * place is as likely as any other. Lots are drawn from a counter of the first source, under its
 * lock: no state that all would share, and a seeded run is repeated exactly.
 *
 * Rejected: to register case by case, without holding all the locks. Then a select that finds a
 * counterpart after it has registered elsewhere must claim itself and the other one, and must be
 * able to take back the first claim if the second fails; two of them can do so to each other. */
#include "sync/chan.h"

#include "base/rand.h"
#include "wait/await.h"

#include <sinew/errno.h>
#include <sinew/select.h>

#include <assert.h>

static_assert(SNI_CASES_MAX == SN_SELECT_MAX, "one is the other");
static_assert(sizeof(struct sni_case) <= sizeof(sn_case), "sn_case is too small");
static_assert(offsetof(struct sni_case, result) == offsetof(sn_case, result), "one is the other");

struct select {
    struct sni_waiter waiter;
    struct sni_case *cases;
    unsigned n;
    unsigned flags;
    unsigned active;              /* cases that have a source */
    uint8_t order[SNI_CASES_MAX]; /* their numbers, by the addresses of their sources */
};

/* ---- locks ---------------------------------------------------------------------------------- */

static struct sni_source *nth(const struct select *s, unsigned i)
{
    return s->cases[s->order[i]].source;
}

static void lock_all(const struct select *s)
{
    for (unsigned i = 0; i < s->active; i++)
        if (i == 0 || nth(s, i) != nth(s, i - 1))
            sni_mutex_lock(&nth(s, i)->lock);
}

static void unlock_all(const struct select *s)
{
    for (unsigned i = s->active; i > 0; i--)
        if (i == 1 || nth(s, i - 1) != nth(s, i - 2))
            sni_mutex_unlock(&nth(s, i - 1)->lock);
}

/* Insert case `i` where its source belongs. */
static void insert(struct select *s, unsigned i)
{
    uintptr_t address = (uintptr_t)s->cases[i].source;
    unsigned at = s->active++;
    for (; at > 0 && (uintptr_t)nth(s, at - 1) > address; at--)
        s->order[at] = s->order[at - 1];
    s->order[at] = (uint8_t)i;
}

/* Find all sources. Returns 0, -EINVAL, -EBADF */
static int prepare(struct select *s, sn_case *cases, size_t n, unsigned flags)
{
    if (n > SNI_CASES_MAX || (n > 0 && cases == NULL) || (flags & ~SN_SELECT_ORDERED) != 0)
        return -EINVAL;
    s->cases = (struct sni_case *)(void *)cases;
    s->n = (unsigned)n;
    s->flags = flags;
    s->active = 0;
    for (unsigned i = 0; i < s->n; i++) {
        struct sni_case *c = (struct sni_case *)(void *)&cases[i];
        if (c->kind == NULL)
            return -EINVAL;
        c->source = NULL;
        if (c->at == NULL)
            continue;
        c->source = c->kind->find(c);
        if (c->source == NULL)
            return SNI_CHAN_MISUSE();
        insert(s, i);
    }
    return 0;
}

/* ---- the phases ----------------------------------------------------------------------------- */

/* The numbers of the active cases, in the order in which to attempt them. */
static void draw(const struct select *s, uint8_t turn[SNI_CASES_MAX])
{
    unsigned k = 0;
    for (unsigned i = 0; i < s->n; i++)
        if (s->cases[i].source != NULL)
            turn[k++] = (uint8_t)i;
    if ((s->flags & SN_SELECT_ORDERED) != 0 || k < 2)
        return;
    struct sni_rand lots;
    sni_rand_init(&lots, nth(s, 0)->draws++);
    for (; k > 1; k--) {
        unsigned other = sni_rand_below(&lots, k);
        uint8_t swap = turn[k - 1];
        turn[k - 1] = turn[other];
        turn[other] = swap;
    }
}

/* Under all locks. Returns the case that took place, or -EAGAIN */
static int attempt(struct select *s, struct sni_wake *wake)
{
    uint8_t turn[SNI_CASES_MAX];
    draw(s, turn);
    for (unsigned i = 0; i < s->active; i++) {
        struct sni_case *c = &s->cases[turn[i]];
        int rc = c->kind->attempt(c, wake);
        if (rc != -EAGAIN) {
            c->result = rc;
            return turn[i];
        }
    }
    return -EAGAIN;
}

static void enlist(struct select *s)
{
    for (unsigned i = 0; i < s->active; i++) {
        struct sni_case *c = &s->cases[s->order[i]];
        c->party = (struct sni_party){
            .waiter = &s->waiter, .value = c->value, .index = s->order[i], .is_case = true};
        sni_list_init(&c->party.link);
        sni_list_push_back(c->kind->line(c), &c->party.link);
    }
}

/* Phase 3. Afterwards nobody claims any more, and who has claimed has done its part. */
static void delist(const struct select *s)
{
    lock_all(s);
    for (unsigned i = 0; i < s->active; i++)
        sni_list_remove(&s->cases[s->order[i]].party.link);
    unlock_all(s);
}

/* Pay what an attempt owes. The locks are given back. */
static void settle(const struct select *s, int winner, const struct sni_wake *wake)
{
    struct sni_case *c = &s->cases[winner];
    sni_wait_wake(wake);
    if (c->kind->after != NULL)
        c->kind->after(c);
}

/* What a claim said. Returns the case */
static int outcome(const struct select *s, int said)
{
    if (said < 0)
        return said;
    int winner = said % SNI_CASES_MAX;
    s->cases[winner].result = said < SNI_CASES_MAX ? 0 : -EPIPE;
    return winner;
}

/* ---- the call ------------------------------------------------------------------------------- */

struct visit {
    struct select select;
    struct sni_lent lent;
};

/* The fiber never goes on. */
static void take_back(struct sni_lent *lent)
{
    delist(&sni_container_of(lent, struct visit, lent)->select);
}

static void lend(const struct sni_waiter *waiter, struct sni_lent *lent)
{
    if (waiter->fiber != NULL && waiter->ops->lend != NULL)
        waiter->ops->lend(waiter->fiber, lent);
}

int sn_select(sn_case *cases, size_t n, unsigned flags, sn_deadline until)
{
    struct visit v;
    struct select *s = &v.select;
    struct sni_wake wake = {NULL, NULL};
    int rc = prepare(s, cases, n, flags);
    if (rc < 0)
        return rc;
    lock_all(s);
    int winner = attempt(s, &wake);
    if (winner >= 0 || until.ns <= 0) {
        unlock_all(s);
        if (winner < 0)
            return -ETIMEDOUT;
        settle(s, winner, &wake);
        return winner;
    }
    sni_wait_begin(&s->waiter);
    if (sni_unlikely(s->waiter.fiber == NULL && sni_exec_current() != NULL)) {
        unlock_all(s);
        return sni_misuse(-EDEADLK, "a coroutine waits in a select and would block its worker");
    }
    enlist(s);
    unlock_all(s);
    v.lent.take_back = take_back;
    lend(&s->waiter, &v.lent);
    rc = sni_wait_commit(&s->waiter, until);
    lend(&s->waiter, NULL);
    delist(s);
    return outcome(s, rc);
}

/* ---- the future ----------------------------------------------------------------------------- */

struct select_op {
    sn_future future;
    int result;
    bool is_waiting; /* the parties are in their lines */
    struct select select;
    struct sni_await await;
};

static_assert(sizeof(struct select_op) <= sizeof(sn_select_state), "sn_select_state is too small");
static_assert(offsetof(struct select_op, result) == offsetof(sn_select_state, result),
              "one is the other");

/* Returns true if it need not wait: `result` tells. */
static bool begin(struct select_op *op)
{
    struct select *s = &op->select;
    struct sni_wake wake = {NULL, NULL};
    int rc = prepare(s, (sn_case *)(void *)s->cases, s->n, s->flags);
    if (rc < 0) {
        op->result = rc;
        return true;
    }
    lock_all(s);
    int winner = attempt(s, &wake);
    if (winner >= 0) {
        unlock_all(s);
        settle(s, winner, &wake);
        op->result = winner;
        return true;
    }
    sni_await_begin(&op->await, &s->waiter);
    enlist(s);
    op->is_waiting = true;
    unlock_all(s);
    sni_await_published(&op->await, &s->waiter);
    return false;
}

static sn_poll poll_select(sn_future *fut, sn_cx *cx)
{
    struct select_op *op = sni_container_of(fut, struct select_op, future);
    if (!op->is_waiting && begin(op))
        return SN_READY(op->result);
    if (!sni_await_poll(&op->await, cx))
        return SN_PENDING;
    sni_await_finish(&op->await);
    delist(&op->select);
    op->result = outcome(&op->select, sni_wait_result(&op->select.waiter));
    return SN_READY(op->result);
}

static void drop_select(sn_future *fut)
{
    struct select_op *op = sni_container_of(fut, struct select_op, future);
    if (!op->is_waiting)
        return;
    delist(&op->select);
    if (sni_wait_is_over(&op->select.waiter)) {
        sni_await_settle(&op->await);
        op->result = outcome(&op->select, sni_wait_result(&op->select.waiter));
    }
    sni_await_finish(&op->await);
}

static const sn_future_vtable select_vtable = {
    .poll = poll_select, .drop = drop_select, .name = "select"};

sn_future *sn_select_op(sn_select_state *state, sn_case *cases, size_t n, unsigned flags)
{
    struct select_op *op = (struct select_op *)(void *)state;
    op->result = -ECANCELED;
    op->is_waiting = false;
    op->await = (struct sni_await){.cell = SN_WAKER_CELL_INIT};
    op->select.cases = (struct sni_case *)(void *)cases;
    op->select.n = n <= SNI_CASES_MAX ? (unsigned)n : SNI_CASES_MAX + 1;
    op->select.flags = flags;
    return sn_future_init(&op->future, &select_vtable);
}

/* ---- channels ------------------------------------------------------------------------------- */

static struct sni_chan *chan_of(const struct sni_case *c)
{
    return sni_container_of(c->source, struct sni_chan, source);
}

static struct sni_source *find_chan(struct sni_case *c)
{
    struct sni_chan *chan = sni_chan_find(c->at);
    return chan == NULL ? NULL : &chan->source;
}

static int attempt_send(struct sni_case *c, struct sni_wake *wake)
{
    return sni_chan_put(chan_of(c), c->value, wake);
}

static int attempt_recv(struct sni_case *c, struct sni_wake *wake)
{
    return sni_chan_take(chan_of(c), c->value, wake);
}

static struct sni_list *senders_line(struct sni_case *c)
{
    return &chan_of(c)->senders;
}

static struct sni_list *receivers_line(struct sni_case *c)
{
    return &chan_of(c)->receivers;
}

/* The value may have closed a oneshot channel; whoever got it may even have freed that. */
static void after_send(struct sni_case *c)
{
    const struct sni_chan *chan = sni_chan_find(c->at);
    if (c->result == 0 && chan != NULL && chan->oneshot)
        (void)sn_chan_close(c->at);
}

static const struct sni_case_kind send_kind = {find_chan, attempt_send, senders_line, after_send};
static const struct sni_case_kind recv_kind = {find_chan, attempt_recv, receivers_line, NULL};

static sn_case make_case(const struct sni_case_kind *kind, sn_chan *ch, void *value)
{
    sn_case c = {.kind_ = kind, .at_ = ch, .value_ = value, .result = 0};
    return c;
}

sn_case sn_case_send(sn_chan *ch, const void *value)
{
    return make_case(&send_kind, ch, (void *)(uintptr_t)value);
}

sn_case sn_case_recv(sn_chan *ch, void *value)
{
    return make_case(&recv_kind, ch, value);
}
