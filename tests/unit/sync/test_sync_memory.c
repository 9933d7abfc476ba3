/* SPDX-License-Identifier: MIT */
/* Memory of channels and locks (R90, R91): without it a call says so, and nothing is lost or
 * leaked; and in steady state nobody asks for any, wait or not, fibers and threads alike. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#ifdef SINEW_HARNESS_WRAP

#include <pthread.h>
#include <stdatomic.h>

/* ---- none to be had ------------------------------------------------------------------------- */

/* Let each allocation of it fail, one after the other. */
static void create_without_memory(size_t bytes, size_t capacity, const sn_chan_options *opts,
                                  uint64_t least)
{
    for (uint64_t k = 1;; k++) {
        sn_chan *ch = NULL;
        uint64_t before = alloc_count();
        alloc_fail_at(k);
        int rc = sn_chan_create(&ch, bytes, capacity, opts);
        alloc_fail_at(0);
        if (alloc_count() - before < k) { /* there was no such one */
            CHECK_EQ(rc, 0);
            CHECK_GE(k - 1, least);
            CHECK_EQ(sn_chan_destroy(ch), 0);
            return;
        }
        CHECK_EQ(rc, -ENOMEM);
        CHECK(ch == NULL);
    }
}

TEST(a_channel_that_finds_no_memory_is_not_made)
{
    sn_chan_options once = {.oneshot = true};
    create_without_memory(8, 100, NULL, 1);
    create_without_memory(SN_CHAN_ELEMENT_MAX, 2, NULL, 1);
    create_without_memory(8, 0, NULL, 0);
    create_without_memory(0, 100, NULL, 0);
    create_without_memory(8, SN_CHAN_UNBOUNDED, NULL, 0);
    create_without_memory(8, 0, &once, 1);
}

static atomic_int drops;

static void drop(void *element, void *arg)
{
    (void)element;
    (void)arg;
    atomic_fetch_add(&drops, 1);
}

static sn_chan *make(size_t capacity)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, &(sn_chan_options){.drop = drop}), 0);
    return ch;
}

static int recv_now(sn_chan *ch)
{
    int v = -1, rc = sn_chan_recv(ch, &v, SN_NOWAIT);
    return rc < 0 ? rc : v;
}

/* Each way to send: plainly, many, by select, by a future. */
TEST(an_unbounded_channel_without_memory_leaves_the_value_to_its_sender)
{
    sn_chan *ch = make(SN_CHAN_UNBOUNDED);
    int v[3] = {1, 2, 3};
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan_op op;
    sn_case c = sn_case_send(ch, &v[0]);
    alloc_fail_at(1);
    CHECK_EQ(sn_chan_send(ch, &v[0], SN_FOREVER), -ENOMEM);
    alloc_fail_at(1);
    CHECK_EQ(sn_chan_send_n(ch, v, 3, SN_FOREVER), -ENOMEM);
    alloc_fail_at(1);
    CHECK_EQ(sn_select(&c, 1, 0, SN_FOREVER), 0);
    CHECK_EQ(c.result, -ENOMEM);
    alloc_fail_at(1);
    sn_poll p = sn_future_poll(sn_chan_send_op(&op, ch, &v[0]), &cx);
    CHECK(!sn_poll_pending(p));
    CHECK_EQ(p.value, -ENOMEM);
    CHECK_EQ(op.result, -ENOMEM);
    CHECK_EQ(sn_chan_len(ch), 0);
    CHECK_EQ(recv_now(ch), -ETIMEDOUT);
    CHECK_EQ(sn_chan_send_n(ch, v, 3, SN_FOREVER), 3); /* there is some again */
    CHECK_EQ(recv_now(ch), 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    CHECK_EQ(atomic_load(&drops), 2); /* those that were inside, and no others */
}

/* It had none for the next segment: how many went in is known, the rest is the caller's. */
TEST(a_batch_that_runs_out_of_memory_says_how_far_it_came)
{
    enum { MANY = 5000 };
    static int v[MANY];
    sn_chan *ch = make(SN_CHAN_UNBOUNDED);
    for (int i = 0; i < MANY; i++)
        v[i] = i;
    int sent = 0;
    for (int round = 0; sent < MANY; round++) {
        CHECK_LT(round, MANY);
        alloc_fail_at(round == 0 ? 2 : 1);
        ptrdiff_t n = sn_chan_send_n(ch, v + sent, (size_t)(MANY - sent), SN_NOWAIT);
        CHECK(n > 0 || n == -ENOMEM);
        CHECK(round > 0 || (n > 0 && n < MANY));
        sent += n > 0 ? (int)n : 0;
        alloc_fail_at(0);
        if (n < 0)
            CHECK_EQ(sn_chan_send(ch, &v[sent++], SN_NOWAIT), 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(recv_now(ch), i);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* A receiver that waits gets its element from hand to hand. */
TEST(who_waits_at_an_unbounded_channel_needs_no_memory_of_its_sender)
{
    sn_chan *ch = make(SN_CHAN_UNBOUNDED);
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan_op op;
    int v = 0, w = 4;
    CHECK(sn_poll_pending(sn_future_poll(sn_chan_recv_op(&op, ch, &v), &cx)));
    alloc_fail_at(1);
    CHECK_EQ(sn_chan_send(ch, &w, SN_FOREVER), 0);
    alloc_fail_at(0);
    CHECK_EQ(sn_future_poll(&op.future_, &cx).value, 0);
    CHECK_EQ(v, 4);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- none needed ---------------------------------------------------------------------------- */

enum { WARM = 300, ROUNDS = 2000, PARTIES = 2 };

static struct {
    sn_chan *there, *back, *narrow;
    sn_mutex mutex, fair;
    sn_cond changed;
    int turn; /* guarded by fair */
    sn_sem sem;
    sn_event set[PARTIES];
    sn_rwlock rwlock;
    sn_barrier barrier;
    uint64_t before;
} all;

static void use_channels(int me, int i)
{
    int v = i, w = -1;
    sn_chan *mine = me == 0 ? all.there : all.back, *other = me == 0 ? all.back : all.there;
    if (me == 0)
        CHECK_EQ(sn_chan_send(mine, &v, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_recv(other, &w, SN_FOREVER), 0);
    CHECK_EQ(w, i);
    if (me == 1)
        CHECK_EQ(sn_chan_send(mine, &v, SN_FOREVER), 0);
    for (int k = 0; k < 3; k++) /* a capacity of two: it waits for room, or for a value */
        CHECK_EQ(me == 0 ? sn_chan_send(all.narrow, &v, SN_FOREVER)
                         : sn_chan_recv(all.narrow, &w, SN_FOREVER),
                 0);
}

static void use_locks(int me, int i)
{
    CHECK_EQ(sn_mutex_lock(&all.mutex, SN_FOREVER), 0);
    sn_yield(); /* so that the other one must wait */
    CHECK_EQ(sn_mutex_unlock(&all.mutex), 0);
    CHECK_EQ(sn_mutex_lock(&all.fair, SN_FOREVER), 0);
    while (all.turn != me)
        CHECK_EQ(sn_cond_wait(&all.changed, &all.fair, SN_FOREVER), 0);
    all.turn = 1 - me;
    CHECK_EQ(sn_cond_signal(&all.changed), 0);
    CHECK_EQ(sn_mutex_unlock(&all.fair), 0);
    CHECK_EQ(sn_sem_acquire(&all.sem, 2, SN_FOREVER), 0);
    sn_yield();
    CHECK_EQ(sn_sem_release(&all.sem, 2), 0);
    bool writes = i % 2 == me;
    CHECK_EQ(writes ? sn_rwlock_lock(&all.rwlock, SN_FOREVER)
                    : sn_rwlock_lock_shared(&all.rwlock, SN_FOREVER),
             0);
    sn_yield();
    CHECK_EQ(writes ? sn_rwlock_unlock(&all.rwlock) : sn_rwlock_unlock_shared(&all.rwlock), 0);
    CHECK_EQ(sn_event_set(&all.set[1 - me]), 0);
    CHECK_EQ(sn_event_wait(&all.set[me], SN_FOREVER), 0);
    int rc = sn_barrier_wait(&all.barrier, SN_FOREVER);
    CHECK(rc == 0 || rc == 1);
}

static int use_all(void *arg)
{
    int me = *(int *)arg;
    for (int i = 0; i < WARM + ROUNDS; i++) {
        if (i == WARM && me == 0) /* the other one has not begun this round, see the barrier */
            all.before = alloc_count();
        use_channels(me, i);
        use_locks(me, i);
    }
    if (me == 0)
        CHECK_EQ(alloc_count(), all.before);
    return 0;
}

static void *use_all_as_thread(void *arg)
{
    CHECK_EQ(use_all(arg), 0);
    return NULL;
}

static void begin(void)
{
    all.there = make(0);
    all.back = make(0);
    all.narrow = make(2);
    all.mutex = (sn_mutex)SN_MUTEX_INIT;
    all.fair = (sn_mutex)SN_MUTEX_FAIR_INIT;
    all.changed = (sn_cond)SN_COND_INIT;
    all.sem = (sn_sem)SN_SEM_INIT(3);
    all.set[0] = all.set[1] = (sn_event)SN_EVENT_ONE_INIT;
    all.rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    all.barrier = (sn_barrier)SN_BARRIER_INIT(PARTIES);
}

static int end(void)
{
    return sn_chan_destroy(all.there) | sn_chan_destroy(all.back) | sn_chan_destroy(all.narrow);
}

TASK_TEST(fibers_that_meet_at_channels_and_locks_allocate_nothing)
{
    (void)arg;
    int who[PARTIES] = {0, 1};
    begin();
    sn_task *t = sn_spawn(use_all, &who[1]);
    CHECK_EQ(use_all(&who[0]), 0);
    return sn_join(t, NULL) | end();
}

static int meet_a_thread(void *arg)
{
    (void)arg;
    int who[PARTIES] = {0, 1};
    pthread_t thread;
    begin();
    CHECK_EQ(pthread_create(&thread, NULL, use_all_as_thread, &who[1]), 0);
    CHECK_EQ(use_all(&who[0]), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return end();
}

TEST(a_fiber_and_a_thread_that_meet_allocate_nothing, .limit_s = 60)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 2}, meet_a_thread, NULL), 0);
}

#endif
