/* SPDX-License-Identifier: MIT */
/* Are channels linearizable? (R91) A few threads and fibers make a few calls on one channel, and
 * note when each began and ended by a common counter. A history is good if there is an order of the
 * calls, in which none comes before one that had ended when it began, and which a queue of that
 * capacity could have had: it is looked for by trying all, with those states left out from which
 * the search has failed before.
 *
 * In that order a send may stand when there is room, a receive when its value is the oldest, a
 * call that did not wait (-ETIMEDOUT) when it could not be done, and -EPIPE after the close (for a
 * receive: when empty). A rendezvous is a queue of capacity 0, in which a send and a receive that
 * overlap stand next to each other, as one. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    ACTORS = 4,
    CALLS = 4, /* of each */
    CALLS_MAX = ACTORS * CALLS,
    SEEN_PLACES = 1 << 14,
};

enum kind { SEND, RECV, CLOSE };

struct call {
    enum kind kind;
    bool is_patient; /* may have waited: -ETIMEDOUT then only says that it did not take place */
    int value;
    int rc;
    uint64_t began, ended;
};

struct history {
    struct call calls[CALLS_MAX];
    int n;
    size_t capacity;
};

/* ---- the checker ---------------------------------------------------------------------------- */

struct state {
    uint32_t done; /* bits of calls */
    bool is_closed;
    int len;
    int8_t queue[CALLS_MAX]; /* numbers of the sends whose values are inside, the oldest first */
};

static struct {
    struct state seen[SEEN_PLACES];
    bool used[SEEN_PLACES];
} memory;

/* Whether the state is new; it is remembered. */
static bool is_new(const struct state *s)
{
    uint32_t hash = s->done * 2654435761u + (uint32_t)s->len * 97u + (uint32_t)s->is_closed;
    for (int i = 0; i < s->len; i++)
        hash = hash * 31u + (uint8_t)s->queue[i];
    for (uint32_t probe = 0; probe < 64; probe++) {
        uint32_t at = (hash + probe) % SEEN_PLACES;
        if (!memory.used[at]) {
            memory.used[at] = true;
            memory.seen[at] = *s;
            return true;
        }
        if (memcmp(&memory.seen[at], s, sizeof(*s)) == 0)
            return false;
    }
    return true; /* forgotten, which costs time only */
}

/* Could `i` be the next: nobody who is left had ended before it began? */
static bool may_be_next(const struct history *h, const struct state *s, int i)
{
    for (int k = 0; k < h->n; k++)
        if ((s->done >> k & 1) == 0 && h->calls[k].ended < h->calls[i].began)
            return false;
    return true;
}

/* Do call `i` in the queue. False: a queue could not have. */
static bool apply(const struct history *h, struct state *s, int i)
{
    const struct call *c = &h->calls[i];
    s->done |= 1u << i;
    if (c->kind == CLOSE) {
        s->is_closed = true;
        return true;
    }
    bool could = c->kind == SEND ? !s->is_closed && s->len < (int)h->capacity : s->len > 0;
    if (c->rc == -ETIMEDOUT)
        return c->is_patient || (!could && !s->is_closed);
    if (c->rc == -EPIPE)
        return s->is_closed && (c->kind == SEND || s->len == 0);
    if (c->rc != 0 || !could)
        return false;
    if (c->kind == SEND) {
        s->queue[s->len++] = (int8_t)i;
        return true;
    }
    if (h->calls[s->queue[0]].value != c->value)
        return false;
    memmove(s->queue, s->queue + 1, (size_t)--s->len);
    s->queue[s->len] = 0;
    return true;
}

static bool search(const struct history *h, struct state s);

/* Of a rendezvous: `send`, which could be the next, and a receive that got its value. */
static bool search_meetings(const struct history *h, const struct state *s, int send)
{
    for (int k = 0; k < h->n; k++) {
        struct state next = *s;
        next.done |= 1u << send | 1u << k;
        if ((s->done >> k & 1) == 0 && h->calls[k].kind == RECV && h->calls[k].rc == 0 &&
            h->calls[k].value == h->calls[send].value && may_be_next(h, s, k) && !s->is_closed &&
            search(h, next))
            return true;
    }
    return false;
}

static bool search(const struct history *h, struct state s)
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
        if (h->capacity == 0 && h->calls[i].kind == SEND && h->calls[i].rc == 0 &&
            search_meetings(h, &s, i))
            return true;
    }
    return false;
}

static bool is_linearizable(const struct history *h)
{
    struct state start;
    memset(&start, 0, sizeof(start)); /* also what lies between the members: it is compared */
    memset(&memory, 0, sizeof(memory));
    return search(h, start);
}

/* ---- the checker checked -------------------------------------------------------------------- */

#define SENT(v, from, to)     {SEND, true, v, 0, from, to}
#define RECEIVED(v, from, to) {RECV, true, v, 0, from, to}

TEST(the_checker_accepts_what_a_queue_can_do)
{
    struct history in_order = {
        {SENT(1, 1, 2), SENT(2, 3, 4), RECEIVED(1, 5, 6), RECEIVED(2, 7, 8)}, 4, 2};
    CHECK(is_linearizable(&in_order));
    struct history overlapping = {
        {SENT(1, 1, 6), SENT(2, 2, 7), RECEIVED(2, 3, 8), RECEIVED(1, 4, 9)}, 4, 1};
    CHECK(is_linearizable(&overlapping));
    struct history meeting = {{SENT(1, 1, 4), RECEIVED(1, 2, 3)}, 2, 0};
    CHECK(is_linearizable(&meeting));
}

TEST(the_checker_refuses_what_no_queue_can_do)
{
    struct history swapped = {
        {SENT(1, 1, 2), SENT(2, 3, 4), RECEIVED(2, 5, 6), RECEIVED(1, 7, 8)}, 4, 2};
    CHECK(!is_linearizable(&swapped));
    struct history overfull = {{SENT(1, 1, 2), SENT(2, 3, 4)}, 2, 1};
    CHECK(!is_linearizable(&overfull));
    struct history twice = {{SENT(1, 1, 2), RECEIVED(1, 3, 4), RECEIVED(1, 5, 6)}, 3, 2};
    CHECK(!is_linearizable(&twice));
    struct history early = {{RECEIVED(1, 1, 2), SENT(1, 3, 4)}, 2, 2};
    CHECK(!is_linearizable(&early));
    struct history missed = {{SENT(1, 1, 2), {RECV, false, 0, -ETIMEDOUT, 3, 4}}, 2, 2};
    CHECK(!is_linearizable(&missed));
    struct history drained = {
        {SENT(1, 1, 2), {CLOSE, false, 0, 0, 3, 4}, {RECV, true, 0, -EPIPE, 5, 6}}, 3, 2};
    CHECK(!is_linearizable(&drained));
    struct history apart = {{SENT(1, 1, 2), RECEIVED(1, 3, 4)}, 2, 0};
    CHECK(!is_linearizable(&apart)); /* a rendezvous whose two did not meet */
}

/* ---- histories ------------------------------------------------------------------------------ */

static sn_chan *ch;
static atomic_uint_fast64_t ticks;
static atomic_int at_the_start;
static struct call book[ACTORS][CALLS];
static uint64_t seed;

static uint64_t next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void make_call(struct call *c, int value, uint64_t lot)
{
    c->is_patient = lot % 3 == 0;
    c->kind = lot / 3 % 41 == 0 ? CLOSE : lot / 3 % 2 == 0 ? SEND : RECV;
    c->value = value;
    sn_deadline until = c->is_patient ? sn_after(SN_US(lot / 64 % 50 + 1)) : SN_NOWAIT;
    c->began = atomic_fetch_add(&ticks, 1);
    if (c->kind == SEND)
        c->rc = sn_chan_send(ch, &c->value, until);
    else if (c->kind == RECV)
        c->rc = sn_chan_recv(ch, &c->value, until);
    else
        c->rc = sn_chan_close(ch);
    c->ended = atomic_fetch_add(&ticks, 1);
}

static int act(void *arg)
{
    int me = (int)(intptr_t)arg;
    uint64_t lots = seed * ACTORS + (uint64_t)me;
    (void)next_number(&lots);
    atomic_fetch_add(&at_the_start, 1);
    for (int i = 0; atomic_load(&at_the_start) < ACTORS && i < 1000; i++)
        sn_yield(); /* so that they begin at about the same time */
    for (int i = 0; i < CALLS; i++)
        make_call(&book[me][i], me * CALLS + i, next_number(&lots));
    return 0;
}

static void *act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
    return NULL;
}

/* Two fibers and two threads. */
static int record(void *arg)
{
    (void)arg;
    pthread_t thread[2];
    sn_task *t[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, act_as_thread, (void *)(intptr_t)(2 + i)), 0);
    for (int i = 0; i < 2; i++)
        t[i] = sn_spawn(act, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    return 0;
}

static void check_histories(size_t capacity, int rounds)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    seed = test_seed();
    for (int i = 0; i < rounds; i++, seed++) {
        struct history h = {.n = CALLS_MAX, .capacity = capacity};
        CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, NULL), 0);
        atomic_store(&at_the_start, 0);
        CHECK_EQ(sn_runtime_block_on(rt, record, NULL), 0);
        CHECK_EQ(sn_chan_destroy(ch), 0);
        memcpy(h.calls, book, sizeof(book));
        if (!is_linearizable(&h)) {
            for (int k = 0; k < h.n; k++)
                fprintf(stderr, "%2d: %s %d: %d, from %d to %d\n", k,
                        h.calls[k].kind == SEND   ? "send"
                        : h.calls[k].kind == RECV ? "recv"
                                                  : "close",
                        h.calls[k].value, h.calls[k].rc, (int)h.calls[k].began,
                        (int)h.calls[k].ended);
            FAIL("history %d is not linearizable, for a capacity of %zu", i, capacity);
        }
    }
    sn_runtime_destroy(rt);
}

TEST(what_happens_on_a_rendezvous_is_linearizable, .limit_s = 60)
{
    check_histories(0, 300);
}

TEST(what_happens_on_a_channel_of_one_is_linearizable, .limit_s = 60)
{
    check_histories(1, 300);
}

TEST(what_happens_on_a_channel_of_three_is_linearizable, .limit_s = 60)
{
    check_histories(3, 300);
}
