/* SPDX-License-Identifier: MIT */
/* test_linear.c - is what happens to locks and channels linearizable (R90, R91), in all
 * interleavings of a few calls? The histories are those of tests/unit/sync/test_lock_linear.c and
 * test_chan_linear.c, but the explorer decides who goes on, and when a deadline has come.
 *
 * Memory is sequentially consistent here: behind a store buffer, a call may be over before what it
 * wrote is there for others, and no clock of theirs would tell. */
#include "model/model.h"

#include "harness.h"
#include "unit/sync/linear.h"

#include <sinew/chan.h>
#include <sinew/errno.h>
#include <sinew/sync.h>

#define SOON sn_deadline_at_(1) /* a deadline; the search decides when it has come */

static sn_mutex mutex;
static sn_sem sem;
static sn_rwlock rwlock;
static sn_chan *ch;
static struct linear_history history;
static uint64_t ticks;

static void begin(enum linear_kind kind, int size)
{
    history.n = 0;
    history.kind = kind;
    history.size = size;
    ticks = 0;
}

/* Between two steps nobody else runs, so the book needs no lock. */
static struct linear_call *begin_call(enum linear_what what, int value, sn_deadline until)
{
    struct linear_call *c = &history.calls[history.n++];
    *c = (struct linear_call){
        .what = what, .value = value, .actor = (int)model_self(), .ended = UINT64_MAX};
    c->is_patient = until.ns != SN_NOWAIT.ns;
    c->began = ticks++;
    return c;
}

static int end_call(struct linear_call *c, int rc)
{
    c->rc = rc;
    c->ended = ticks++;
    return rc;
}

static void check_linear(void)
{
    if (!is_linearizable(&history)) {
        linear_print(&history);
        model_fail("not linearizable");
    }
}

/* ---- the mutex ------------------------------------------------------------------------------- */

static void reset_mutex(void)
{
    begin(LINEAR_MUTEX, 0);
    mutex = (sn_mutex)SN_MUTEX_INIT;
}

static void reset_fair_mutex(void)
{
    begin(LINEAR_MUTEX, 0);
    mutex = (sn_mutex)SN_MUTEX_FAIR_INIT;
}

static void lock(sn_deadline until)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 0, until);
    if (end_call(c, sn_mutex_lock(&mutex, until)) < 0)
        return;
    c = begin_call(LINEAR_UNLOCK, 0, SN_NOWAIT);
    (void)end_call(c, sn_mutex_unlock(&mutex));
}

static void lock_patiently(void)
{
    lock(SN_FOREVER);
}

static void lock_for_some_time_and_try(void)
{
    lock(SOON);
    lock(SN_NOWAIT);
}

static const struct model mutexes = {
    reset_mutex, {lock_patiently, lock_for_some_time_and_try, lock_patiently}, check_linear};
static const struct model fair_mutexes = {
    reset_fair_mutex, {lock_patiently, lock_for_some_time_and_try, lock_patiently}, check_linear};

TEST(a_mutex_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&mutexes, &(struct model_options){.preemptions = 3, .random = 2000});
}

TEST(a_fair_mutex_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&fair_mutexes, &(struct model_options){.preemptions = 3, .random = 2000});
}

/* ---- the semaphore --------------------------------------------------------------------------- */

static void reset_sem(void)
{
    begin(LINEAR_SEM, 2);
    sem = (sn_sem)SN_SEM_INIT(2);
}

static void take(int units, sn_deadline until)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, units, until);
    if (end_call(c, sn_sem_acquire(&sem, (uint32_t)units, until)) < 0)
        return;
    c = begin_call(LINEAR_UNLOCK, units, SN_NOWAIT);
    (void)end_call(c, sn_sem_release(&sem, (uint32_t)units));
}

static void take_one(void)
{
    take(1, SN_FOREVER);
}

static void take_two_for_some_time_and_try_one(void)
{
    take(2, SOON);
    take(1, SN_NOWAIT);
}

static const struct model sems = {
    reset_sem, {take_one, take_two_for_some_time_and_try_one, take_one}, check_linear};

TEST(a_semaphore_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&sems, &(struct model_options){.preemptions = 3, .random = 2000});
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void reset_rwlock(void)
{
    begin(LINEAR_RWLOCK, 0);
    rwlock = (sn_rwlock)SN_RWLOCK_INIT;
}

static void stop_reading(void)
{
    struct linear_call *c = begin_call(LINEAR_UNLOCK_SHARED, 0, SN_NOWAIT);
    (void)end_call(c, sn_rwlock_unlock_shared(&rwlock));
}

static void do_read(sn_deadline until)
{
    struct linear_call *c = begin_call(LINEAR_LOCK_SHARED, 0, until);
    if (end_call(c, sn_rwlock_lock_shared(&rwlock, until)) == 0)
        stop_reading();
}

static void do_write(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 0, SN_FOREVER);
    (void)end_call(c, sn_rwlock_lock(&rwlock, SN_FOREVER));
    c = begin_call(LINEAR_UNLOCK, 0, SN_NOWAIT);
    (void)end_call(c, sn_rwlock_unlock(&rwlock));
}

static void do_write_then_read(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 0, SOON);
    if (end_call(c, sn_rwlock_lock(&rwlock, SOON)) < 0)
        return;
    c = begin_call(LINEAR_DOWNGRADE, 0, SN_NOWAIT);
    (void)end_call(c, sn_rwlock_downgrade(&rwlock));
    stop_reading();
}

static void do_read_and_try_again(void)
{
    do_read(SN_FOREVER);
    do_read(SN_NOWAIT);
}

static const struct model rwlocks = {
    reset_rwlock, {do_write, do_read_and_try_again, do_write_then_read}, check_linear};

TEST(a_rwlock_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&rwlocks, &(struct model_options){.preemptions = 3, .random = 2000});
}

/* ---- channels -------------------------------------------------------------------------------- */

static void reset_chan(size_t capacity)
{
    if (ch != NULL)
        (void)sn_chan_destroy(ch); /* of the last execution; all its threads have ended */
    MODEL_CHECK(sn_chan_create(&ch, sizeof(int), capacity, NULL) == 0);
    begin(LINEAR_CHAN, (int)capacity);
}

static void reset_rendezvous(void)
{
    reset_chan(0);
}

static void reset_one(void)
{
    reset_chan(1);
}

static void send(int value, sn_deadline until)
{
    struct linear_call *c = begin_call(LINEAR_SEND, value, until);
    (void)end_call(c, sn_chan_send(ch, &value, until));
}

static void recv(sn_deadline until)
{
    int value = -1;
    struct linear_call *c = begin_call(LINEAR_RECV, 0, until);
    int rc = sn_chan_recv(ch, &value, until);
    c->value = value;
    (void)end_call(c, rc);
}

static void send_some(void)
{
    send(1, SOON);
    send(2, SN_NOWAIT);
}

static void recv_some(void)
{
    recv(SN_NOWAIT);
    recv(SOON);
}

static void send_and_close(void)
{
    send(3, SOON);
    struct linear_call *c = begin_call(LINEAR_CLOSE, 0, SN_NOWAIT);
    (void)end_call(c, sn_chan_close(ch));
}

static const struct model rendezvous = {
    reset_rendezvous, {send_some, recv_some, send_and_close}, check_linear};
static const struct model ones = {reset_one, {send_some, recv_some, send_and_close}, check_linear};

static void end_with_chan(void)
{
    (void)sn_chan_destroy(ch);
    ch = NULL;
}

TEST(a_rendezvous_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&rendezvous, &(struct model_options){.preemptions = 2, .random = 2000});
    end_with_chan();
}

TEST(a_channel_of_one_is_linearizable_in_all_interleavings, .limit_s = 120)
{
    model_holds(&ones, &(struct model_options){.preemptions = 2, .random = 2000});
    end_with_chan();
}

/* ---- planted --------------------------------------------------------------------------------- */

/* Nobody waits, and nobody unlocks: else it is found first that one waits for ever, or unlocks what
 * it does not hold. */
static void try_mutex(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 0, SN_NOWAIT);
    (void)end_call(c, sn_mutex_lock(&mutex, SN_NOWAIT));
}

static void try_sem(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 2, SN_NOWAIT);
    (void)end_call(c, sn_sem_acquire(&sem, 2, SN_NOWAIT));
}

static void try_to_read(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK_SHARED, 0, SN_NOWAIT);
    (void)end_call(c, sn_rwlock_lock_shared(&rwlock, SN_NOWAIT));
}

static void try_to_write(void)
{
    struct linear_call *c = begin_call(LINEAR_LOCK, 0, SN_NOWAIT);
    (void)end_call(c, sn_rwlock_lock(&rwlock, SN_NOWAIT));
}

static const struct model try_mutexes = {reset_mutex, {try_mutex, try_mutex}, check_linear};
static const struct model try_sems = {reset_sem, {try_sem, try_sem}, check_linear};
static const struct model try_rwlocks = {reset_rwlock, {try_to_read, try_to_write}, check_linear};

static void find(const struct model *model, const char *function)
{
    model_holds(model, &(struct model_options){.preemptions = 3});
    model_finds(model,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = function},
                "not linearizable");
}

TEST(a_mutex_taken_without_compare_and_swap_is_not_linearizable, .limit_s = 60)
{
    find(&try_mutexes, "take_free");
}

TEST(a_semaphore_taken_without_compare_and_swap_is_not_linearizable, .limit_s = 60)
{
    find(&try_sems, "sn_sem_acquire");
}

TEST(a_rwlock_read_without_compare_and_swap_is_not_linearizable, .limit_s = 60)
{
    find(&try_rwlocks, "sn_rwlock_lock_shared");
}
