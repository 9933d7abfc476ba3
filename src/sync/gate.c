/* SPDX-License-Identifier: MIT */
/* gate.c - the queue of a gate, and the three ways to wait in it.
 *
 * The lock is a bit that is spun for. It is held for a few dozen instructions, never while anybody
 * sleeps; whoever finds it taken for long lets other threads run, since its holder may have lost
 * the processor.
 *
 * Who may touch a guest: with the gate locked, everybody, while it is queued. It is taken out of
 * the queue and claimed in one go (sni_gate_claim), and after that it is its owner's alone, which
 * may have gone on and left its frame. A guest whose time is up or that is cancelled is claimed by
 * others and still queued. It locks the gate and takes itself out (sni_guest_leave); if somebody
 * was quicker, the claim failed and nothing was lost. So what is given to a guest is given by the
 * claim, and a guest that was claimed otherwise has been given nothing.
 *
 * Who may touch a gate: a primitive often ends with the wait, being a variable of who waits. So a
 * guest that was claimed waits until the claimer has unlocked the gate (settle), and whoever
 * unlocks it does not touch it again. So all who are served together are claimed under one lock,
 * however many they are: one that was left in the queue for the next time may be gone by then, its
 * time being up, and the gate with it.
 *
 * Claims are made under the lock, wakes of threads and of coroutines' pollers after it. A fiber is
 * made runnable under the lock, so that one who takes back what an abandoned fiber has lent
 * (take_back, which locks the gate) knows that nobody is about to touch its task. There is room for
 * some threads to be remembered; one that finds none is woken under the lock. A coroutine is
 * remembered in its own guest, which is there until it is woken (await.c): who drops it waits for
 * that. If that one is called by the very sender, from the waker of another, it would wait for
 * itself. So a guest knows who will wake it, and takes itself out of the sender's list then.
 *
 * Who does not wait does not begin to. The state of a fiber's wait is in the fiber (wait.c), and a
 * waker may run on a fiber that has begun to wait and is queued: the guest of a condition unlocks
 * its mutex then. What such a waker calls without suspending must leave that state alone.
 *
 * Rejected: a table of queues by address (8 bytes per primitive, but a table that all runtimes
 * share, and a miss in it at each wait); a lock that parks (the object would need a second queue);
 * waking all under the lock (a system call, or somebody's waker that uses the same object). */
#include "sync/gate.h"

#include "base/assert.h"
#include "plat/thread.h"
#include "sync/mutex.h"

#include <sinew/errno.h>

#include <assert.h>

/* Looks at a locked gate before the thread gives way. */
static_assert(sizeof(sn_gate_) == 16, "a gate is two words");

uint64_t sni_gate_lock_slow(sn_gate_ *gate)
{
    for (unsigned round = 0;; round++) {
        /* relaxed: a guess; acquire: pairs with the release in sni_gate_unlock */
        uint64_t word = sni_atomic_load(&gate->word_, relaxed);
        if ((word & SNI_GATE_LOCKED) == 0 &&
            sni_atomic_cas(&gate->word_, &word, word | SNI_GATE_LOCKED, acquire, relaxed))
            return word & ~(uint64_t)SNI_GATE_BITS;
        sni_plat_back_off(round);
    }
}

static void settle_at(const sn_gate_ *gate)
{
    /* acquire: pairs with the release in sni_gate_unlock */
    for (unsigned round = 0; (sni_atomic_load(&gate->word_, acquire) & SNI_GATE_LOCKED) != 0;
         round++)
        sni_plat_back_off(round);
}

/* Whoever has claimed the guest has let go of its gate, and of that where it was before. */
static void settle(const struct sni_guest *guest)
{
    const sn_gate_ *gate = sni_atomic_load(&guest->gate, relaxed); /* relaxed: by the claim */
    settle_at(gate);
    if (gate != guest->home)
        settle_at(guest->home);
}

/* ---- the queue -------------------------------------------------------------------------- */

void sni_gate_push(sn_gate_ *gate, struct sni_guest *guest)
{
    struct sni_list *link = &guest->waiter.link;
    sni_assert_debug(!guest->is_queued, "a guest is queued twice");
    if (gate->first_ == NULL) {
        sni_list_init(link);
        gate->first_ = link;
    } else {
        sni_list_push_back(gate->first_, link); /* the ring has no head: before the first */
    }
    guest->is_queued = true;
    sni_atomic_store(&guest->gate, gate, relaxed); /* relaxed: the gate's lock publishes it */
}

void sni_gate_push_front(sn_gate_ *gate, struct sni_guest *guest)
{
    sni_gate_push(gate, guest);
    gate->first_ = &guest->waiter.link;
}

void sni_gate_remove(sn_gate_ *gate, struct sni_guest *guest)
{
    struct sni_list *link = &guest->waiter.link;
    sni_assert_debug(guest->is_queued, "a guest is taken out that is not queued");
    if (gate->first_ == link)
        gate->first_ = link->next == link ? NULL : link->next;
    sni_list_remove(link);
    guest->is_queued = false;
}

/* Who runs: differs also between those who poll coroutines. */
static uintptr_t who_sends(void)
{
    uintptr_t self = sni_exec_self();
    return self != SNI_SELF_CORO ? self : (uintptr_t)sni_exec_current();
}

/* To be woken when the gate is unlocked, or now. */
static void owe(struct sni_wakes *wakes, struct sni_guest *guest, struct sni_wake wake)
{
    struct sni_list *link = &guest->waiter.link;
    if (wake.ops == NULL) {
        if (sni_likely(wakes->n < SNI_GATE_WAKES_MAX))
            wakes->list[wakes->n++] = wake;
        else
            sni_wait_wake(wake);
        return;
    }
    if (wakes->more == NULL) {
        sni_list_init(link);
        wakes->more = link;
        guest->sender = who_sends();
    } else {
        sni_list_push_back(wakes->more, link); /* as in the queue */
        guest->sender = sni_container_of(wakes->more, struct sni_guest, waiter.link)->sender;
    }
}

bool sni_gate_claim(sn_gate_ *gate, struct sni_guest *guest, int result, struct sni_wakes *wakes)
{
    struct sni_wake wake = {NULL, NULL};
    sni_gate_remove(gate, guest);
    if (!sni_wait_claim_locked(&guest->waiter, result, &wake))
        return false;
    if (wake.who != NULL)
        owe(wakes, guest, wake);
    return true;
}

/* Those that are remembered in their guests. With a head, so that each may take itself out. */
static void send_more(struct sni_list *first)
{
    struct sni_list all;
    struct sni_list *link;
    sni_list_init(&all);
    sni_list_push_back(first, &all);
    while ((link = sni_list_pop_front(&all)) != NULL) {
        const struct sni_waiter *w = sni_container_of(link, struct sni_waiter, link);
        struct sni_wake wake = {w->ops, w->fiber};
        sni_wait_wake(wake); /* from here on the guest may be gone */
    }
}

void sni_wakes_send(const struct sni_wakes *wakes)
{
    for (unsigned i = 0; i < wakes->n; i++)
        sni_wait_wake(wakes->list[i]);
    if (sni_unlikely(wakes->more != NULL))
        send_more(wakes->more);
}

void sni_gate_pass_all(sn_gate_ *gate, uint64_t word, int result)
{
    struct sni_wakes wakes;
    sni_wakes_init(&wakes);
    struct sni_guest *guest;
    while ((guest = sni_gate_first(gate)) != NULL) {
        guest->is_passed = true;
        (void)sni_gate_claim(gate, guest, result, &wakes);
    }
    sni_gate_unlock(gate, word);
    sni_wakes_send(&wakes);
}

#ifdef SINEW_DEBUG
/* One who waits, for a report. */
static uintptr_t who_waits(sn_gate_ *gate)
{
    uint64_t word = sni_gate_lock(gate);
    const struct sni_guest *first = sni_gate_first(gate);
    uintptr_t who = first != NULL ? first->who : 0;
    sni_gate_unlock(gate, word);
    return who;
}
#endif

int sni_gate_enter_at_zero(struct sni_guest *guest)
{
    sn_gate_ *gate = sni_atomic_load(&guest->gate, relaxed); /* relaxed: not queued yet */
    uint64_t word = sni_gate_lock(gate);
    int rc = SNI_GATE_QUEUED;
    if (sni_gate_count(word) == 0)
        rc = 0;
    else if (guest->until.ns == SN_NOWAIT.ns)
        rc = -ETIMEDOUT;
    else
        sni_gate_push(gate, guest);
    sni_gate_unlock(gate, word);
    return rc;
}

int sni_gate_finish(sn_gate_ *gate, bool is_idle, uintptr_t holder)
{
    /* acquire: pairs with the release of whoever used it last */
    bool is_waited = (sni_atomic_load(&gate->word_, acquire) & SNI_GATE_WAITED) != 0;
    if (is_idle && !is_waited)
        return 0;
    bool is_held = holder != 0 || !is_waited;
    (void)is_held; /* and that is all there is to tell, in a release build */
    return sni_gate_misuse(-EBUSY, "something was finished that is in use, or waited for",
                           is_held ? "held by" : "waited for by",
                           is_held ? holder : who_waits(gate));
}

/* ---- guests ----------------------------------------------------------------------------- */

static inline void init_guest(struct sni_guest *guest, const struct sni_gate_kind *kind,
                              sn_gate_ *gate, void *object, uint32_t units, uintptr_t who)
{
    *guest = (struct sni_guest){
        .kind = kind, .object = object, .who = who, .units = units, .home = gate};
    sni_atomic_store(&guest->gate, gate, relaxed); /* relaxed: nobody else knows the guest */
}

void sni_guest_init(struct sni_guest *guest, const struct sni_gate_kind *kind, sn_gate_ *gate,
                    void *object, uint32_t units)
{
    init_guest(guest, kind, gate, object, units, sni_exec_self());
}

bool sni_guest_is_coroutine(const struct sni_guest *guest)
{
    return guest->who == SNI_SELF_CORO;
}

int sni_guest_leave(struct sni_guest *guest, int why)
{
    /* relaxed: looked at again under the lock of what it says */
    sn_gate_ *gate = sni_atomic_load(&guest->gate, relaxed);
    uint64_t word = sni_gate_lock(gate);
    while (sni_atomic_load(&guest->gate, relaxed) != gate) { /* relaxed: as above */
        sni_gate_unlock(gate, word);
        gate = sni_atomic_load(&guest->gate, relaxed); /* relaxed: as above */
        word = sni_gate_lock(gate);
    }
    bool was_queued = guest->is_queued;
    bool is_passed = guest->is_passed;
    if (was_queued)
        sni_gate_remove(gate, guest);
    if (was_queued && guest->kind->left != NULL)
        guest->kind->left(guest, word);
    else
        sni_gate_unlock(gate, word);
    if (gate != guest->home) /* whoever has moved it here may still hold the other one */
        settle_at(guest->home);
    if (was_queued)
        return why;
    int result = sni_wait_result(&guest->waiter); /* whoever took it out has claimed it, or tried */
    return result < 0 && is_passed ? 0 : result;
}

/* The fiber never goes on. */
static void take_back(struct sni_lent *lent)
{
    struct sni_guest *guest = sni_container_of(lent, struct sni_guest, lent);
    int result = sni_guest_leave(guest, -ECANCELED);
    if (guest->kind->refuse != NULL)
        guest->kind->refuse(guest, result);
}

static int commit(struct sni_guest *guest, sn_deadline until)
{
    struct sni_waiter *w = &guest->waiter;
    guest->lent.take_back = take_back;
    sni_wait_lend(w, &guest->lent);
    int rc = sni_wait_commit(w, until);
    sni_wait_lend(w, NULL);
    return rc;
}

int sni_guest_wait(struct sni_guest *guest, sn_deadline until)
{
    guest->until = until;
    if (until.ns == SN_NOWAIT.ns)
        return guest->kind->enter(guest); /* and is not queued */
    if (sni_guest_is_coroutine(guest))
        return sni_misuse(-EDEADLK, "a coroutine waits and would block its worker: await the op");
    for (;;) {
        sni_wait_begin(&guest->waiter);
        int rc = guest->kind->enter(guest);
        if (rc != SNI_GATE_QUEUED)
            return rc;
        rc = commit(guest, guest->until);
        if (rc < 0)
            return sni_guest_leave(guest, rc);
        settle(guest);
        if (rc != SNI_GATE_AGAIN)
            return rc;
    }
}

/* ---- guests that coroutines await ---------------------------------------------------------- */

struct guest_op {
    sn_future future;
    struct sni_guest guest;
    struct sni_await await;
    bool is_waiting;
};

static_assert(sizeof(struct guest_op) <= sizeof(sn_sync_state), "sn_sync_state is too small");

static sn_poll poll_guest(sn_future *fut, sn_cx *cx)
{
    struct guest_op *op = sni_container_of(fut, struct guest_op, future);
    struct sni_guest *guest = &op->guest;
    if (!op->is_waiting && sni_is_spent()) { /* it has not come yet, and owes nobody anything */
        (void)sn_waker_wake_by_ref(cx->waker);
        return SN_PENDING;
    }
    for (;;) {
        if (op->is_waiting) {
            if (!sni_await_poll(&op->await, &guest->waiter, cx))
                return SN_PENDING;
            op->is_waiting = false;
            sni_await_finish(&op->await);
            int rc = sni_wait_result(&guest->waiter);
            settle(guest);
            if (rc < 0)
                return SN_READY(sni_guest_leave(guest, rc));
            if (rc != SNI_GATE_AGAIN)
                return SN_READY(rc);
        }
        sni_await_begin(&op->await, &guest->waiter);
        int rc = guest->kind->enter(guest);
        if (rc != SNI_GATE_QUEUED)
            return SN_READY(rc);
        op->is_waiting = true;
        sni_await_published(&op->await, &guest->waiter);
    }
}

static void drop_guest(sn_future *fut)
{
    struct guest_op *op = sni_container_of(fut, struct guest_op, future);
    if (!op->is_waiting)
        return;
    int result = sni_guest_leave(&op->guest, -ECANCELED);
    bool is_claimed = sni_wait_is_over(&op->guest.waiter);
    if (is_claimed && !sni_await_is_over(&op->await) && op->guest.sender == who_sends()) {
        sni_list_remove(&op->guest.waiter.link); /* in our own list, further up on this stack */
        sni_await_forgo(&op->await);
    } else if (is_claimed) {
        sni_await_settle(&op->await);
    }
    sni_await_finish(&op->await);
    settle(&op->guest);
    if (op->guest.kind->refuse != NULL)
        op->guest.kind->refuse(&op->guest, result);
}

static const sn_future_vtable guest_vtable = {
    .poll = poll_guest, .drop = drop_guest, .name = "sync"};

/* ---- for reports --------------------------------------------------------------------------- */

/* Who was signalled waits for the mutex of its condition. */
static void tell_guest(const struct sni_guest *guest, sni_place_fn *each, void *arg)
{
    struct sni_place place = {.what = guest->kind->name,
                              .object = guest->object,
                              .tie = SNI_TIE_MEMORY,
                              .link = &guest->waiter.link};
    const sn_gate_ *at = sni_atomic_load(&guest->gate, relaxed); /* relaxed: a moment's answer */
    if (guest->mutex != NULL && at == &guest->mutex->gate_) {
        place.what = "mutex";
        place.object = guest->mutex;
        place.owner = sni_mutex_holder(guest->mutex);
    } else if (guest->kind->holder != NULL) {
        place.owner = guest->kind->holder(guest);
    }
    if (place.owner != 0)
        place.tie = SNI_TIE_OWNER;
    each(&place, arg);
}

static void tell(const struct sni_lent *lent, sni_place_fn *each, void *arg)
{
    tell_guest(sni_container_of(lent, struct sni_guest, lent), each, arg);
}

static void tell_op(const sn_future *fut, sni_place_fn *each, void *arg)
{
    const struct guest_op *op = sni_container_of(fut, struct guest_op, future);
    if (op->is_waiting)
        tell_guest(&op->guest, each, arg);
}

const struct sni_wait_kind sni_gate_waits = {
    .take_back = take_back, .tell = tell, .vtable = &guest_vtable, .tell_op = tell_op};

/* ---- making one ----------------------------------------------------------------------------- */

sn_future *sni_guest_op(sn_sync_state *state, const struct sni_gate_kind *kind, sn_gate_ *gate,
                        void *object, uint32_t units)
{
    struct guest_op *op = (struct guest_op *)(void *)state;
    op->is_waiting = false;
    sni_await_init(&op->await);
    init_guest(&op->guest, kind, gate, object, units, SNI_SELF_CORO);
    op->guest.until = SN_FOREVER;
    return sn_future_init(&op->future, &guest_vtable);
}

sn_future *sni_guest_op_on(sn_sync_state *state, const struct sni_gate_kind *kind, sn_gate_ *gate,
                           void *object, sn_mutex *m)
{
    sn_future *fut = sni_guest_op(state, kind, gate, object, 0);
    sni_container_of(fut, struct guest_op, future)->guest.mutex = m;
    return fut;
}
