/* SPDX-License-Identifier: MIT */
/* chan_core.c - a channel's life, and how senders and receivers meet.
 *
 * One lock, a store of elements (a ring or segments), and two lists of parties (source.h): those
 * who wait to receive, and those who wait to send. Under the lock, with the parties of which the
 * claim has failed not counted:
 *
 *   1. A receiver waits => the store is empty, and the channel is not closed.
 *   2. A sender waits => the store is full (a rendezvous is always full), and it is not closed.
 *   3. A receiver and a sender wait => they are two cases of one select, which does not meet
 *      itself.
 *
 * A send that finds a receiver gives it the element, from frame to frame: the store is empty, so
 * nobody is overtaken. A receive that has taken an element from a full store moves that of the
 * first waiting sender in. Either way the one who waited has what it waited for when it wakes up,
 * and takes no lock again: no convoy, and nobody barges in.
 *
 * What a wait is worth. Who waits is claimed (wait.c) by its counterpart, by a close, by its
 * deadline or by its cancellation: one of them wins. Counterparts and closes claim under the lock,
 * and unlink first. To a plain receiver the element is copied *before* the claim: it may read it at
 * once. If the claim then fails, its buffer was written to in vain, and the next party is tried;
 * the loser cannot be gone, because it needs the lock to leave. From a sender it is copied before
 * the claim too, since its element may be gone after; that copy counts only if the claim wins. The
 * receiving case of a select is claimed first and copied to then, because two cases may share one
 * buffer; its owner takes the lock before it looks. So each element is in one place: in its
 * sender's hands until the claim, then in the receiver's or in the store.
 *
 * Order: what is said above about the lock; a claim releases to its owner the element copied
 * before it.
 *
 * The same twice. What happens nearly always (an element goes into or out of a ring, or from a
 * fiber to a fiber, or the call must wait) is written out once more in send_quick and recv_quick,
 * in a form that saves no registers; put() and take() know all cases and are the reference. A quick
 * way that finds something unusual leaves it to them, with the lock held and nothing done but that
 * a party that was over is out of the line.
 *
 * The lock is held for some tens of instructions, plus what it takes to make a fiber runnable
 * (see sni_wait_claim_locked for why that is inside).
 *
 * Rejected, for now: a lock-free ring with the lists beside it. It saves the lock's second atomic
 * operation and pays with a fence per message, to look for those who wait; and a select would have
 * to take back a claim of its own. */
#include "sync/chan.h"

#include "wait/await.h"

#include <sinew/errno.h>

#include <assert.h>
#include <stdlib.h>

enum {
    DUE = 1, /* as a result */
};

/* Of parties that a close wakes in one go. */
#ifndef SNI_CHAN_WAKES
#define SNI_CHAN_WAKES 16
#endif

static_assert(sizeof(struct sni_chan) <= SNI_RECORD_BYTES_MAX, "a channel is a record");
static_assert(offsetof(struct sni_chan, first) <= 128, "what every call needs is in two lines");

static void lock(struct sni_chan *c)
{
    sni_brief_lock(&c->source.lock);
}

static void unlock(struct sni_chan *c)
{
    sni_brief_unlock(&c->source.lock);
}

static struct sni_party *party_of(struct sni_list *link)
{
    return sni_container_of(link, struct sni_party, link);
}

/* ---- the store ------------------------------------------------------------------------------ */

static bool is_unbounded(const struct sni_chan *c)
{
    return c->capacity == SNI_CHAN_UNLIMITED;
}

/* Elements of no size have no ring. */
static inline void *in_ring(const struct sni_chan *c, uint32_t at)
{
    return c->ring == NULL ? NULL : c->ring + at * c->element_bytes;
}

/* Where the next element goes to, if there is room. */
static inline void *back_of(struct sni_chan *c)
{
    if (sni_unlikely(is_unbounded(c)))
        return sni_segments_grow(c);
    return in_ring(c, c->tail);
}

/* The element at back_of counts. */
static inline void append(struct sni_chan *c)
{
    c->len++;
    if (++c->tail == c->capacity) /* never of an unbounded one: grow begins a new segment */
        c->tail = 0;
}

static inline void pop(struct sni_chan *c, void *value)
{
    sni_assert_debug(c->len > 0, "an element is taken from an empty channel");
    if (sni_unlikely(is_unbounded(c))) {
        sni_chan_copy(value, sni_segments_front(c), c->element_bytes);
        sni_segments_shrink(c);
    } else {
        sni_chan_copy(value, in_ring(c, c->head), c->element_bytes);
        if (++c->head == c->capacity)
            c->head = 0;
    }
    c->len--;
}

/* ---- meeting -------------------------------------------------------------------------------- */

/* Give `value` to the first receiver that still waits. */
static bool give(struct sni_chan *c, const void *value, struct sni_wake *wake)
{
    struct sni_list *link;
    while ((link = sni_list_pop_front(&c->receivers)) != NULL) {
        struct sni_party *p = party_of(link);
        if (p->is_case) {
            void *to = p->value; /* the claim may resume it; it then waits for our lock */
            if (!sni_party_claim(p, wake))
                continue;
            sni_chan_copy(to, value, c->element_bytes);
            return true;
        }
        sni_chan_copy(p->value, value, c->element_bytes);
        if (sni_party_claim(p, wake))
            return true;
    }
    return false;
}

/* Get the element of the first sender that still waits. */
static bool get(struct sni_chan *c, void *to, struct sni_wake *wake)
{
    struct sni_list *link;
    while ((link = sni_list_pop_front(&c->senders)) != NULL) {
        struct sni_party *p = party_of(link);
        sni_chan_copy(to, p->value, c->element_bytes);
        if (sni_party_claim(p, wake))
            return true;
    }
    return false;
}

static inline int put(struct sni_chan *c, const void *value, struct sni_wake *wake)
{
    if (sni_unlikely(c->is_closed))
        return -EPIPE;
    if (!sni_list_empty(&c->receivers) && give(c, value, wake)) {
        c->is_closed = c->oneshot;
        return 0;
    }
    if (c->len >= c->capacity)
        return -EAGAIN;
    void *to = back_of(c);
    if (sni_unlikely(to == NULL && c->element_bytes != 0))
        return -ENOMEM;
    sni_chan_copy(to, value, c->element_bytes);
    append(c);
    c->is_closed = c->oneshot;
    return 0;
}

static inline int take(struct sni_chan *c, void *value, struct sni_wake *wake)
{
    if (sni_likely(c->len > 0)) {
        pop(c, value);
        if (!sni_list_empty(&c->senders) && get(c, back_of(c), wake))
            append(c);
        return 0;
    }
    if (!sni_list_empty(&c->senders) && get(c, value, wake))
        return 0;
    return c->is_closed ? -EPIPE : -EAGAIN;
}

int sni_chan_put(struct sni_chan *c, const void *value, struct sni_wake *wake)
{
    return put(c, value, wake);
}

int sni_chan_take(struct sni_chan *c, void *value, struct sni_wake *wake)
{
    return take(c, value, wake);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Refuse the first party of the list that still waits. False: there is none. */
static bool refuse(struct sni_list *list, struct sni_wake *wake)
{
    struct sni_list *link;
    while ((link = sni_list_pop_front(list)) != NULL)
        if (sni_party_refuse(party_of(link), wake))
            return true;
    return false;
}

/* Whether somebody waits whom the channel will not serve any more. */
static inline bool has_more(const struct sni_chan *c)
{
    return !sni_list_empty(&c->receivers) || !sni_list_empty(&c->senders);
}

/* Refuse all who wait, some at a time. Under the lock, which is given back, and taken again if they
 * are many: a reference, or `refusing`, keeps the channel from being freed meanwhile. `wake` is
 * owed. */
static SNI_COLD void refuse_all(struct sni_chan *c, struct sni_wake wake)
{
    bool more;
    do {
        struct sni_wake wakes[SNI_CHAN_WAKES + 1] = {wake};
        unsigned n = 1;
        wake = (struct sni_wake){NULL, NULL};
        while (n <= SNI_CHAN_WAKES &&
               (refuse(&c->receivers, &wakes[n]) || refuse(&c->senders, &wakes[n])))
            n++;
        more = has_more(c);
        unlock(c);
        sni_await_pay(wakes, n);
        if (more)
            lock(c);
    } while (more);
}

/* Give the lock back, then pay what is owed. A oneshot channel may just have been closed. */
static inline void leave_to(struct sni_chan *c, struct sni_wake wake)
{
    if (sni_unlikely(c->is_closed && has_more(c))) {
        refuse_all(c, wake);
        return;
    }
    unlock(c);
    sni_wait_wake(wake);
}

void sni_chan_leave(struct sni_chan *c, struct sni_wake wake)
{
    leave_to(c, wake);
}

/* ---- sending and receiving ------------------------------------------------------------------ */

/* An operation that did not wait costs one of the budget (wait/current.h). To ask for the budget is
 * to ask whose it is, so a channel does it for several operations at once, under the lock: DUE says
 * that it has taken place, and that it is time to pay. Who is asked pays for others, too: who uses
 * a channel most pays most, and who uses it alone pays what it owes. */
static inline int count(struct sni_chan *c, int rc)
{
    if (sni_likely(rc == 0))
        rc = ++c->uses % SNI_CHAN_USES == 0; /* DUE, or 0 */
    return rc;
}

/* What try_send or try_recv said, if not that it must wait. */
static SNI_COLD int pay(int rc, int64_t until_ns)
{
    if (rc != DUE)
        return rc;
    sni_spend_many(SNI_CHAN_USES, until_ns);
    return 0;
}

/* Under the lock, which is given back: all that may happen. */
SNI_NEVER_INLINE static int send_held(struct sni_chan *c, const void *value, sn_deadline until)
{
    struct sni_wake wake = {NULL, NULL};
    int rc = count(c, put(c, value, &wake));
    if (rc == -EAGAIN)
        return sni_source_wait(&c->source, &c->senders, (void *)(uintptr_t)value, until);
    leave_to(c, wake);
    return pay(rc, until.ns);
}

SNI_NEVER_INLINE static int recv_held(struct sni_chan *c, void *value, sn_deadline until)
{
    struct sni_wake wake = {NULL, NULL};
    int rc = count(c, take(c, value, &wake));
    if (rc == -EAGAIN)
        return sni_source_wait(&c->source, &c->receivers, value, until);
    leave_to(c, wake);
    return pay(rc, until.ns);
}

/* The quick ways: what is usual, right in the two functions that everybody calls, with no call but
 * the one that makes a fiber runnable. So there is next to nothing to be saved on the stack,
 * neither before that nor before the jump to the wait, which must leave no frame behind (see
 * sni_wait_begin_near). The rest is left to the functions above, by jumps as well.
 *
 * Returns  0, and the lock was given back; SNI_CHAN_WAIT, SNI_CHAN_ASK: it is held */

/* Under the lock: nothing but an element needs to be thought of. */
static inline bool is_usual(const struct sni_chan *c)
{
    return sni_likely(c->is_quick && !c->is_closed && (c->uses + 1) % SNI_CHAN_USES != 0);
}

/* As sni_chan_copy, for those that are quick. */
static inline void copy_quick(void *to, const void *from, size_t bytes)
{
    if (sni_likely(bytes == 8))
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, 16);
}

/* The first of `list`, taken out, if it is a fiber's plain call; else NULL. */
static inline struct sni_party *first_quick(struct sni_list *list)
{
    struct sni_party *p = party_of(list->next);
    const struct sni_exec_ops *ops = p->waiter->ops;
    if (sni_unlikely(p->is_case || ops == NULL || ops->resumes_late))
        return NULL;
    sni_list_remove(&p->link);
    return p;
}

/* An operation has taken place. */
static inline int end_quick(struct sni_chan *c)
{
    c->uses++;
    unlock(c);
    return 0;
}

static SNI_ALWAYS_INLINE int send_quick(struct sni_chan *c, const void *value)
{
    if (sni_unlikely(!is_usual(c)))
        return SNI_CHAN_ASK;
    if (!sni_list_empty(&c->receivers)) {
        struct sni_party *p = first_quick(&c->receivers);
        if (sni_unlikely(p == NULL))
            return SNI_CHAN_ASK;
        copy_quick(p->value, value, c->element_bytes);
        if (sni_unlikely(!sni_party_claim_quick(p)))
            return SNI_CHAN_ASK; /* it was over: the next one */
        return end_quick(c);
    }
    if (sni_unlikely(c->len >= c->capacity))
        return SNI_CHAN_WAIT;
    copy_quick(in_ring(c, c->tail), value, c->element_bytes);
    append(c);
    return end_quick(c);
}

static SNI_ALWAYS_INLINE int recv_quick(struct sni_chan *c, void *value)
{
    bool waits = !sni_list_empty(&c->senders);
    if (sni_unlikely(!is_usual(c) || (c->len > 0 && waits)))
        return SNI_CHAN_ASK;
    if (c->len > 0) {
        copy_quick(value, in_ring(c, c->head), c->element_bytes);
        if (++c->head == c->capacity)
            c->head = 0;
        c->len--;
        return end_quick(c);
    }
    if (!waits)
        return SNI_CHAN_WAIT;
    struct sni_party *p = first_quick(&c->senders);
    if (sni_unlikely(p == NULL))
        return SNI_CHAN_ASK;
    copy_quick(value, p->value, c->element_bytes);
    if (sni_unlikely(!sni_party_claim_quick(p)))
        return SNI_CHAN_ASK; /* it was over: the next one */
    return end_quick(c);
}

int sni_chan_send_quick(struct sni_chan *c, const void *value)
{
    lock(c);
    return send_quick(c, value);
}

int sni_chan_recv_quick(struct sni_chan *c, void *value)
{
    lock(c);
    return recv_quick(c, value);
}

static SNI_COLD int send_contended(struct sni_chan *c, const void *value, sn_deadline until)
{
    sni_brief_lock_slow(&c->source.lock);
    return send_held(c, value, until);
}

static SNI_COLD int recv_contended(struct sni_chan *c, void *value, sn_deadline until)
{
    sni_brief_lock_slow(&c->source.lock);
    return recv_held(c, value, until);
}

int sn_chan_send(sn_chan *ch, const void *value, sn_deadline until)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (sni_unlikely(c == NULL))
        return SNI_CHAN_MISUSE();
    if (sni_unlikely(!sni_brief_try(&c->source.lock)))
        return send_contended(c, value, until);
    int rc = send_quick(c, value);
    if (sni_unlikely(rc == SNI_CHAN_WAIT))
        return sni_source_wait(&c->source, &c->senders, (void *)(uintptr_t)value, until);
    if (sni_unlikely(rc == SNI_CHAN_ASK))
        return send_held(c, value, until);
    return 0;
}

int sn_chan_recv(sn_chan *ch, void *value, sn_deadline until)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (sni_unlikely(c == NULL))
        return SNI_CHAN_MISUSE();
    if (sni_unlikely(!sni_brief_try(&c->source.lock)))
        return recv_contended(c, value, until);
    int rc = recv_quick(c, value);
    if (sni_unlikely(rc == SNI_CHAN_WAIT))
        return sni_source_wait(&c->source, &c->receivers, value, until);
    if (sni_unlikely(rc == SNI_CHAN_ASK))
        return recv_held(c, value, until);
    return 0;
}

static ptrdiff_t count_or(size_t done, int rc)
{
    return done > 0 || rc == 0 ? (ptrdiff_t)done : rc;
}

ptrdiff_t sn_chan_send_n(sn_chan *ch, const void *values, size_t n, sn_deadline until)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (sni_unlikely(c == NULL))
        return SNI_CHAN_MISUSE();
    const char *at = values;
    size_t done = 0;
    int rc = 0;
    while (done < n && rc == 0) {
        struct sni_wake wake = {NULL, NULL};
        lock(c);
        while (done < n && rc == 0 && wake.who == NULL) {
            rc = sni_chan_put(c, at, &wake);
            if (rc == 0) {
                done++;
                at += c->element_bytes;
            }
        }
        if (rc == -EAGAIN) {
            rc = sni_source_wait(&c->source, &c->senders, (void *)(uintptr_t)at, until);
            if (rc == 0) {
                done++;
                at += c->element_bytes;
            }
        } else {
            leave_to(c, wake);
        }
    }
    sni_spend_many(1, until.ns);
    return count_or(done, rc);
}

ptrdiff_t sn_chan_recv_n(sn_chan *ch, void *values, size_t n, sn_deadline until)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (sni_unlikely(c == NULL))
        return SNI_CHAN_MISUSE();
    char *at = values;
    size_t done = 0;
    int rc = 0;
    while (done < n && rc == 0) {
        struct sni_wake wake = {NULL, NULL};
        lock(c);
        while (done < n && rc == 0 && wake.who == NULL) {
            rc = sni_chan_take(c, at, &wake);
            if (rc == 0) {
                done++;
                at += c->element_bytes;
            }
        }
        if (rc == -EAGAIN && done == 0) {
            rc = sni_source_wait(&c->source, &c->receivers, at, until);
            return rc == 0 ? 1 : rc;
        }
        leave_to(c, wake);
    }
    sni_spend_many(1, until.ns);
    return count_or(done, rc);
}

size_t sn_chan_len(sn_chan *ch)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (c == NULL)
        return 0;
    lock(c);
    size_t len = c->len;
    unlock(c);
    return len;
}

size_t sn_chan_cap(sn_chan *ch)
{
    const struct sni_chan *c = sni_chan_find(ch);
    if (c == NULL)
        return 0;
    return is_unbounded(c) ? SN_CHAN_UNBOUNDED : c->capacity;
}

/* ---- life ----------------------------------------------------------------------------------- */

int sn_chan_create(sn_chan **out, size_t element_bytes, size_t capacity,
                   const sn_chan_options *opts)
{
    static const sn_chan_options defaults = {.drop = NULL};
    opts = opts != NULL ? opts : &defaults;
    if (opts->oneshot)
        capacity = 1;
    bool unbounded = capacity == SN_CHAN_UNBOUNDED;
    if (out == NULL || element_bytes > SN_CHAN_ELEMENT_MAX ||
        (capacity > SN_CHAN_CAPACITY_MAX && !unbounded))
        return -EINVAL;
    char *ring = NULL;
    struct sni_record *record;
    size_t bytes = unbounded ? 0 : capacity * element_bytes;
    if (bytes > 0 && (ring = malloc(bytes)) == NULL)
        return -ENOMEM;
    int rc = sni_record_take(sizeof(struct sni_chan), &record);
    if (rc < 0) {
        free(ring);
        return rc;
    }
    struct sni_chan *c = (struct sni_chan *)(void *)record;
    memset((char *)c + sizeof(c->record), 0, sizeof(*c) - sizeof(c->record));
    c->capacity = unbounded ? SNI_CHAN_UNLIMITED : (uint32_t)capacity;
    c->element_bytes = element_bytes;
    c->ring = ring;
    c->drop = opts->drop;
    c->drop_arg = opts->drop_arg;
    c->oneshot = opts->oneshot;
    c->is_quick = !unbounded && !opts->oneshot &&
                  (element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    sni_list_init(&c->receivers);
    sni_list_init(&c->senders);
    c->senders_held = 1;
    c->receivers_held = 1;
    c->magic = SNI_CHAN_MAGIC;
    *out = (sn_chan *)(uintptr_t)sni_record_handle(record);
    return 0;
}

static void finish(struct sni_chan *c)
{
    sni_assert(!has_more(c), "a channel is freed although somebody waits at it");
    while (c->len > 0 && c->drop != NULL) {
        c->drop(is_unbounded(c) ? sni_segments_front(c) : in_ring(c, c->head), c->drop_arg);
        c->len--;
        if (is_unbounded(c))
            sni_segments_shrink(c);
        else if (++c->head == c->capacity)
            c->head = 0;
    }
    sni_segments_finish(c);
    free(c->ring);
    c->magic = 0;
    sni_record_give(&c->record);
}

static bool is_side(sn_chan_side side)
{
    return side >= SN_CHAN_SENDER && side <= SN_CHAN_BOTH;
}

int sn_chan_acquire(sn_chan *ch, sn_chan_side side)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (c == NULL)
        return SNI_CHAN_MISUSE();
    if (!is_side(side))
        return -EINVAL;
    uint32_t sends = side & SN_CHAN_SENDER, receives = (side & SN_CHAN_RECEIVER) / SN_CHAN_RECEIVER;
    lock(c);
    bool is_there = (!sends || c->senders_held > 0) && (!receives || c->receivers_held > 0);
    if (is_there) {
        c->senders_held += sends;
        c->receivers_held += receives;
    }
    unlock(c);
    return is_there ? 0 : -EPIPE;
}

int sn_chan_release(sn_chan *ch, sn_chan_side side)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (c == NULL)
        return SNI_CHAN_MISUSE();
    if (!is_side(side))
        return -EINVAL;
    uint32_t sends = side & SN_CHAN_SENDER, receives = (side & SN_CHAN_RECEIVER) / SN_CHAN_RECEIVER;
    lock(c);
    if (c->senders_held < sends || c->receivers_held < receives) {
        unlock(c);
        return -EINVAL;
    }
    c->senders_held -= sends;
    c->receivers_held -= receives;
    if (c->senders_held == 0 || c->receivers_held == 0)
        c->is_closed = true;
    if (c->is_closed && has_more(c)) { /* without a reference: all who are refused may be gone */
        c->refusing++;
        refuse_all(c, (struct sni_wake){NULL, NULL});
        lock(c);
        c->refusing--;
    }
    bool is_last = c->senders_held == 0 && c->receivers_held == 0 && c->refusing == 0;
    unlock(c);
    if (is_last)
        finish(c);
    return 0;
}

int sn_chan_close(sn_chan *ch)
{
    struct sni_chan *c = sni_chan_find(ch);
    if (c == NULL)
        return SNI_CHAN_MISUSE();
    lock(c);
    c->is_closed = true;
    leave_to(c, (struct sni_wake){NULL, NULL});
    return 0;
}

int sn_chan_destroy(sn_chan *ch)
{
    if (ch == NULL)
        return 0;
    int rc = sn_chan_close(ch);
    return rc < 0 ? rc : sn_chan_release(ch, SN_CHAN_BOTH);
}
