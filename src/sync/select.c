/* SPDX-License-Identifier: MIT */
/* select.c - the first of several cases.
 *
 * A select is one waiter, and for each inside case (wait/case.h: channels and the like) a party in
 * the line of that case's source. Two phases, and a third if it had to wait:
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
 * Outside cases (a time, a task, a descriptor, a future) have no lock to hold, and futures run code
 * of the user's. They come around the phases:
 *
 *   0. Look at all cases in a random order, each by itself; the first that is so ends it. Nobody
 *      knows of the select yet, so a future may be polled to its end here, and only here.
 *   2a. When the parties are in their lines, let the outside cases begin: who finds that it is so
 *      claims the waiter, like any counterpart. The claim consumes nothing, so it may come late.
 *   3a. End them: an alarm is cleared, a task is watched no more, an operation is cancelled and
 *      over, a waker finds nobody. Then phase 3.
 *
 * A future's wake does not tell that it is ready, nor does a broadcast's news tell that it is news
 * for this subscription: their claims say "look again", and all begins anew with 0. So does a wake
 * that comes before 2a. A future that loses has been polled and was pending: it is as it was, and
 * holds a waker that wakes nobody (nudge.c) until it is polled or dropped.
 *
 * No deadlock: locks of several sources are taken in the order of addresses only, here; all other
 * code holds one at a time, and nobody waits for anything else while holding one.
 *
 * No lost wake: between the last attempt and the parties' being in their lines, no lock is given
 * back. Outside cases look once more when they begin, or have left a mark (futures).
 *
 * Fair: the order of attempts is a permutation drawn anew each time, so each case that can take
 * place is as likely as any other. Lots are drawn from a counter of the first source, under its
 * lock, or of the executor: no state that all would share, and a seeded run is repeated exactly.
 *
 * Rejected: to register case by case, without holding all the locks. Then a select that finds a
 * counterpart after it has registered elsewhere must claim itself and the other one, and must be
 * able to take back the first claim if the second fails; two of them can do so to each other.
 * Rejected: to look at outside cases under the locks. A future that receives from the same channel
 * would wait for ever, and a system call is long. */
#include "sync/select_priv.h"

#include "base/rand.h"
#include "future/own.h"
#include "sync/chan.h"
#include "wait/guard.h"

#include <sinew/errno.h>

#include <assert.h>

static_assert(SNI_CASES_MAX == SN_SELECT_MAX, "one is the other");
static_assert(sizeof(struct sni_case) <= sizeof(sn_case), "sn_case is too small");
static_assert(offsetof(struct sni_case, more) == offsetof(sn_case, more_), "one is the other");
static_assert(offsetof(struct sni_case, result) == offsetof(sn_case, result), "one is the other");

/* ---- locks ---------------------------------------------------------------------------------- */

static struct sni_source *nth(const struct sni_select *s, unsigned i)
{
    return s->vigil.cases[s->order[i]].source;
}

static void lock_all(const struct sni_select *s)
{
    for (unsigned i = 0; i < s->inside; i++)
        if (i == 0 || nth(s, i) != nth(s, i - 1))
            sni_brief_lock(&nth(s, i)->lock);
}

static void unlock_all(const struct sni_select *s)
{
    for (unsigned i = s->inside; i > 0; i--)
        if (i == 1 || nth(s, i - 1) != nth(s, i - 2))
            sni_brief_unlock(&nth(s, i - 1)->lock);
}

/* Insert case `i` where its source belongs. */
static void insert(struct sni_select *s, unsigned i)
{
    uintptr_t address = (uintptr_t)s->vigil.cases[i].source;
    unsigned at = s->inside++;
    for (; at > 0 && (uintptr_t)nth(s, at - 1) > address; at--)
        s->order[at] = s->order[at - 1];
    s->order[at] = (uint8_t)i;
}

/* Returns 0; -EBADF: its source is gone */
static inline int prepare_case(struct sni_select *s, struct sni_case *c, unsigned i)
{
    c->where = SNI_OFF;
    if (c->at == NULL)
        return 0;
    if (sni_unlikely(c->kind->find == NULL)) {
        c->where = SNI_OUTSIDE;
        c->index = (uint8_t)i;
        c->is_prepared = false;
        s->outside++;
        s->has_futures |= c->kind->outside->is_future;
        return 0;
    }
    c->where = SNI_INSIDE;
    c->source = c->kind->find(c);
    if (c->source == NULL)
        return SNI_CHAN_MISUSE();
    insert(s, i);
    return 0;
}

int sni_select_prepare(struct sni_select *s, sn_case *cases, size_t n, unsigned flags)
{
    if (n > SNI_CASES_MAX || (n > 0 && cases == NULL) || (flags & ~SN_SELECT_ORDERED) != 0)
        return -EINVAL;
    s->vigil.cases = (struct sni_case *)(void *)cases;
    s->n = (uint8_t)n;
    s->is_ordered = flags != 0;
    s->inside = 0;
    s->outside = 0;
    s->has_futures = false;
    for (unsigned i = 0; i < s->n; i++) {
        struct sni_case *c = &s->vigil.cases[i];
        if (c->kind == NULL)
            return -EINVAL;
        int rc = prepare_case(s, c, i);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- lots ----------------------------------------------------------------------------------- */

static inline void shuffle(uint8_t *turn, unsigned k, uint64_t seed)
{
    struct sni_rand lots;
    sni_rand_init(&lots, seed);
    for (; k > 1; k--) {
        unsigned other = sni_rand_below(&lots, k);
        uint8_t swap = turn[k - 1];
        turn[k - 1] = turn[other];
        turn[other] = swap;
    }
}

/* The numbers of the inside cases, in the order in which to attempt them. Under their locks. */
static void draw(const struct sni_select *s, uint8_t turn[SNI_CASES_MAX])
{
    unsigned k = 0;
    for (unsigned i = 0; i < s->n; i++)
        if (s->vigil.cases[i].where == SNI_INSIDE)
            turn[k++] = (uint8_t)i;
    if (!s->is_ordered && k > 1)
        shuffle(turn, k, nth(s, 0)->draws++);
}

/* The same for all cases, without locks. */
static SNI_NEVER_INLINE unsigned draw_all(const struct sni_select *s, uint8_t turn[SNI_CASES_MAX])
{
    unsigned k = 0;
    for (unsigned i = 0; i < s->n; i++)
        if (s->vigil.cases[i].where != SNI_OFF)
            turn[k++] = (uint8_t)i;
    if (s->is_ordered || k < 2)
        return k;
    struct sni_exec *exec = sni_exec_current();
    shuffle(turn, k, exec != NULL ? exec->draws++ : (uint64_t)sni_now_ns());
    return k;
}

/* ---- the phases ----------------------------------------------------------------------------- */

/* Under all locks. Returns the case that took place, or -EAGAIN */
static int attempt(struct sni_select *s, struct sni_wake *wake)
{
    uint8_t turn[SNI_CASES_MAX];
    draw(s, turn);
    for (unsigned i = 0; i < s->inside; i++) {
        struct sni_case *c = &s->vigil.cases[turn[i]];
        int rc = c->kind->attempt(c, wake);
        if (rc != -EAGAIN) {
            c->result = rc;
            return turn[i];
        }
    }
    return -EAGAIN;
}

static void enlist(struct sni_select *s)
{
    for (unsigned i = 0; i < s->inside; i++) {
        struct sni_case *c = &s->vigil.cases[s->order[i]];
        c->party = (struct sni_party){
            .waiter = &s->vigil.waiter, .value = c->value, .index = s->order[i], .is_case = true};
        sni_list_init(&c->party.link);
        sni_list_push_back(c->kind->line(c), &c->party.link);
    }
}

static void delist(const struct sni_select *s)
{
    lock_all(s);
    for (unsigned i = 0; i < s->inside; i++)
        sni_list_remove(&s->vigil.cases[s->order[i]].party.link);
    unlock_all(s);
}

/* Pay what an attempt owes. The locks are given back. */
static void settle(struct sni_case *c, struct sni_wake wake)
{
    sni_wait_wake(wake);
    if (c->kind->after != NULL)
        c->kind->after(c);
}

/* Attempt one inside case by itself. Returns its result, or -EAGAIN */
static int attempt_one(struct sni_case *c)
{
    struct sni_wake wake = {NULL, NULL};
    sni_brief_lock(&c->source->lock);
    int rc = c->kind->attempt(c, &wake);
    sni_brief_unlock(&c->source->lock);
    if (rc != -EAGAIN) {
        c->result = rc;
        settle(c, wake);
    }
    return rc;
}

int sni_select_look(struct sni_select *s, const sn_waker *waker)
{
    uint8_t turn[SNI_CASES_MAX];
    unsigned k = draw_all(s, turn);
    for (unsigned i = 0; i < k; i++) {
        struct sni_case *c = &s->vigil.cases[turn[i]];
        bool took_place;
        if (c->where == SNI_OUTSIDE)
            took_place = c->kind->outside->look(c, waker, &c->result);
        else
            took_place = attempt_one(c) != -EAGAIN;
        if (took_place)
            return turn[i];
    }
    return -EAGAIN;
}

static void end_outside(struct sni_select *s, bool abandoned)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct sni_case *c = &s->vigil.cases[i];
        if (c->where != SNI_OUTSIDE || !c->is_prepared)
            continue;
        if (c->kind->outside->end != NULL)
            c->kind->outside->end(c, abandoned);
        c->is_prepared = false;
    }
    if (s->nudge != NULL)
        sni_nudge_unbind(s->nudge);
    if (s->vigil.door != NULL)
        s->vigil.door->finish(s->vigil.door);
    s->vigil.door = NULL;
}

int sni_select_get_ready(struct sni_select *s, int64_t until_ns, bool is_awaited)
{
    s->is_hasty = false;
    s->vigil.door = NULL;
    s->vigil.until_ns = until_ns;
    s->vigil.timer = -1;
    s->vigil.is_awaited = is_awaited;
    for (unsigned i = 0; i < s->n && s->outside > 0; i++) {
        struct sni_case *c = &s->vigil.cases[i];
        if (c->where != SNI_OUTSIDE)
            continue;
        int rc = 0;
        if (c->kind->outside->prepare != NULL)
            rc = c->kind->outside->prepare(c, &s->vigil);
        if (rc < 0) {
            end_outside(s, false);
            return rc;
        }
        c->is_prepared = true;
    }
    return 0;
}

static void begin_outside(struct sni_select *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct sni_case *c = &s->vigil.cases[i];
        if (c->where == SNI_OUTSIDE && c->kind->outside->begin != NULL)
            c->kind->outside->begin(c, &s->vigil);
    }
    if (s->nudge != NULL && !sni_nudge_bind(s->nudge, &s->vigil.waiter)) {
        s->is_hasty = true;
        (void)sni_wait_claim(&s->vigil.waiter, SNI_SAYS_AGAIN);
    }
}

int sni_select_begin(struct sni_select *s)
{
    struct sni_wake wake = {NULL, NULL};
    lock_all(s);
    int winner = attempt(s, &wake);
    if (winner < 0)
        enlist(s);
    unlock_all(s);
    if (winner >= 0) {
        end_outside(s, false);
        settle(&s->vigil.cases[winner], wake);
    } else if (s->outside > 0) {
        begin_outside(s);
    }
    return winner;
}

void sni_select_end(struct sni_select *s, bool abandoned)
{
    if (s->outside > 0)
        end_outside(s, abandoned);
    delist(s);
}

int sni_select_outcome(struct sni_select *s, int said)
{
    if (said == -ETIMEDOUT && s->outside > 0 && s->vigil.timer >= 0 &&
        sni_wait_is_past(sn_deadline_at_(s->vigil.until_ns))) {
        s->vigil.cases[s->vigil.timer].result = 0;
        return s->vigil.timer;
    }
    if (said < 0)
        return said;
    if (said >= SNI_SAYS_TOLD)
        return said == SNI_SAYS_AGAIN ? -EAGAIN : said - SNI_SAYS_TOLD;
    int winner = said % SNI_CASES_MAX;
    struct sni_case *c = &s->vigil.cases[winner];
    c->result = said < SNI_SAYS_CLOSED ? 0 : -EPIPE;
    if (c->kind->is_news && attempt_one(c) == -EAGAIN)
        return -EAGAIN;
    return winner;
}

/* ---- the call ------------------------------------------------------------------------------- */

struct visit {
    struct sni_select select;
    struct sni_lent lent;
    struct sni_guard guard; /* while futures are polled */
};

/* The fiber never goes on. */
static void take_back(struct sni_lent *lent)
{
    struct sni_select *s = &sni_container_of(lent, struct visit, lent)->select;
    sni_select_end(s, true);
    if (s->outside > 0)
        sni_nudge_finish(s->nudge);
}

#define WOULD_BLOCK() \
    sni_misuse(-EDEADLK, "a coroutine waits in a select and would block its worker")

/* All that can be done without waiting was in vain, and the parties are in their lines. */
static int wait_inside(struct visit *v, sn_deadline until)
{
    struct sni_select *s = &v->select;
    v->lent.take_back = take_back;
    sni_wait_lend(&s->vigil.waiter, &v->lent);
    int rc = sni_wait_commit(&s->vigil.waiter, until);
    sni_wait_lend(&s->vigil.waiter, NULL);
    delist(s);
    return sni_select_outcome(s, rc);
}

/* The phases, for a select that is all inside. -EAGAIN: again. */
static int select_inside(struct visit *v, sn_deadline until)
{
    struct sni_select *s = &v->select;
    struct sni_wake wake = {NULL, NULL};
    lock_all(s);
    int winner = attempt(s, &wake);
    if (winner >= 0 || until.ns <= 0) {
        unlock_all(s);
        if (winner < 0)
            return -ETIMEDOUT;
        settle(&s->vigil.cases[winner], wake);
        return winner;
    }
    sni_wait_begin(&s->vigil.waiter);
    if (sni_unlikely(s->vigil.waiter.fiber == NULL && sni_exec_current() != NULL)) {
        unlock_all(s);
        return WOULD_BLOCK();
    }
    enlist(s);
    unlock_all(s);
    return wait_inside(v, until);
}

/* Let others have a turn: what a future that woke itself at once waits for may be one of them. */
static void give_way(void)
{
    struct sni_exec *exec = sni_exec_current();
    if (exec == NULL)
        sni_wait_yield_thread();
    else if (exec->ops->give_way != NULL)
        exec->ops->give_way(exec);
}

/* Wait once. Returns the case that took place, or -errno; -EAGAIN: again */
static int wait_outside(struct visit *v, sn_deadline until)
{
    struct sni_select *s = &v->select;
    int rc = sni_select_get_ready(s, until.ns, false);
    if (rc < 0)
        return rc;
    struct sni_door *door = s->vigil.door;
    if (door != NULL)
        door->bind(door, &s->vigil.waiter);
    else
        sni_wait_begin(&s->vigil.waiter);
    rc = sni_select_begin(s);
    if (rc != -EAGAIN)
        return rc;
    int64_t until_ns = s->vigil.until_ns;
    if (door != NULL) {
        rc = door->wait(door, &s->vigil.waiter, until_ns);
    } else {
        v->lent.take_back = take_back;
        sni_wait_lend(&s->vigil.waiter, &v->lent);
        rc = sni_wait_commit(&s->vigil.waiter, sn_deadline_at_(until_ns));
        sni_wait_lend(&s->vigil.waiter, NULL);
    }
    sni_select_end(s, false);
    rc = sni_select_outcome(s, rc);
    if (rc == -EAGAIN && s->is_hasty)
        give_way();
    return rc;
}

/* A future panicked, and the frames of this select are left. All of them lie there most likely;
 * what they wait for must not find them there. */
static void undo_look(struct sni_guard *guard)
{
    struct sni_select *s = &sni_container_of(guard, struct visit, guard)->select;
    for (unsigned i = 0; i < s->n; i++) {
        struct sni_case *c = &s->vigil.cases[i];
        if (c->where == SNI_OUTSIDE && c->kind->outside->is_future)
            sni_future_abandon(c->at);
    }
    sni_nudge_finish(s->nudge);
}

static int look(struct visit *v, const sn_waker *waker)
{
    struct sni_exec *exec = sni_exec_current();
    if (!v->select.has_futures || exec == NULL || exec->fiber == NULL || exec->ops->guard == NULL)
        return sni_select_look(&v->select, waker);
    v->guard.undo = undo_look;
    exec->ops->guard(exec, &v->guard);
    int rc = sni_select_look(&v->select, waker);
    exec = sni_exec_current(); /* perhaps another than before: one of them may have waited */
    exec->ops->unguard(exec, &v->guard);
    return rc;
}

/* Look, and wait, and look, until something is so. Not inline: it has a frame of its own. */
static SNI_NEVER_INLINE int select_outside(struct visit *v, sn_deadline until)
{
    struct sni_select *s = &v->select;
    const struct sni_exec *exec = sni_exec_current();
    sn_waker nobody = sn_noop_waker();
    const sn_waker *waker = &nobody;
    int rc = -EAGAIN;
    s->nudge = NULL;
    while (rc == -EAGAIN) {
        if (s->nudge != NULL)
            sni_nudge_begin(s->nudge);
        rc = look(v, waker);
        if (rc != -EAGAIN)
            break;
        if (sni_wait_is_past(until)) {
            rc = -ETIMEDOUT;
        } else if (exec != NULL && exec->fiber == NULL) {
            rc = WOULD_BLOCK();
        } else if (s->has_futures && s->nudge == NULL) {
            rc = sni_nudge_create(&s->nudge);
            if (rc == 0) { /* now look with a waker that wakes somebody */
                waker = sni_nudge_waker(s->nudge);
                rc = -EAGAIN;
            }
        } else {
            rc = wait_outside(v, until);
            exec = sni_exec_current(); /* perhaps another than before */
        }
    }
    sni_nudge_finish(s->nudge);
    return rc;
}

int sn_select(sn_case *cases, size_t n, unsigned flags, sn_deadline until)
{
    struct visit v;
    int rc = sni_select_prepare(&v.select, cases, n, flags);
    if (rc < 0)
        return rc;
    if (sni_unlikely(v.select.outside > 0)) {
        rc = select_outside(&v, until);
    } else {
        do
            rc = select_inside(&v, until);
        while (sni_unlikely(rc == -EAGAIN));
    }
    if (rc >= 0)
        sni_spend_many(1, until.ns);
    return rc;
}

/* ---- for reports ------------------------------------------------------------------------------
 * */

void sni_select_tell(const struct sni_select *s, sni_place_fn *each, void *arg)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct sni_case *c = &s->vigil.cases[i];
        struct sni_place place = {.what = c->kind->name, .object = c->at};
        if (c->where == SNI_INSIDE)
            place = sni_source_place(c->source, c->kind->name);
        else if (c->where == SNI_OUTSIDE && c->kind->owner != NULL)
            place.owner = (uintptr_t)c->kind->owner(c);
        if (place.owner != 0)
            place.tie = SNI_TIE_OWNER;
        if (c->where != SNI_OFF)
            each(&place, arg);
    }
}

static void tell(const struct sni_lent *lent, sni_place_fn *each, void *arg)
{
    sni_select_tell(&sni_container_of(lent, struct visit, lent)->select, each, arg);
}

const struct sni_wait_kind sni_select_waits = {.take_back = take_back, .tell = tell};
