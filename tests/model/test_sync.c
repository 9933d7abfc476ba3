/* SPDX-License-Identifier: MIT */
/* test_sync.c - src/sync (R90): the mutex and the semaphore, with threads that lock, wait, are
 * handed over to, and whose time is up at any moment. One at a time is inside, what was written
 * inside is there for the next, nobody sleeps for ever, and nothing is left behind. And what ends
 * with the last wait, which may be an event, a rwlock, a semaphore or a condition, is not touched
 * after it, although more wait than are woken in one go. */
#include "model/model.h"

#include "harness.h"
#include "sync/gate.h"

#include <sinew/errno.h>

static sn_mutex mutex;
static sn_sem sem;
static sn_event event;
static struct model_data guarded;
static int inside;
static int got[3]; /* 1: was in; else an error */

static void forget(void)
{
    guarded = (struct model_data){0};
    inside = 0;
    for (int i = 0; i < 3; i++)
        got[i] = 0;
}

/* ---- the mutex ------------------------------------------------------------------------------ */

static void reset_mutex(void)
{
    forget();
    mutex = (sn_mutex)SN_MUTEX_INIT;
}

static void reset_fair_mutex(void)
{
    forget();
    mutex = (sn_mutex)SN_MUTEX_FAIR_INIT;
}

static void lock_until(sn_deadline until)
{
    int rc = sn_mutex_lock(&mutex, until);
    if (rc == 0) {
        MODEL_CHECK(inside++ == 0);
        model_write(&guarded);
        MODEL_CHECK(--inside == 0);
        MODEL_CHECK(sn_mutex_unlock(&mutex) == 0);
    }
    got[model_self()] = rc == 0 ? 1 : rc;
}

static void lock_patiently(void)
{
    lock_until(SN_FOREVER);
}

/* The explorer decides when it is over: at any time. */
static void lock_impatiently(void)
{
    lock_until(sn_deadline_at_(1));
}

static void lock_twice(void)
{
    lock_until(SN_FOREVER);
    lock_until(SN_FOREVER);
}

static void check_patient(void)
{
    for (int i = 0; i < 3; i++)
        MODEL_CHECK(got[i] == 1 || (i == 2 && got[i] == -ETIMEDOUT));
    MODEL_CHECK(mutex.gate_.word_.raw_ == 0 && mutex.gate_.first_ == NULL);
}

static const struct model three = {
    reset_mutex, {lock_patiently, lock_patiently, lock_impatiently}, check_patient};
static const struct model three_fair = {
    reset_fair_mutex, {lock_patiently, lock_patiently, lock_impatiently}, check_patient};

static void check_two(void)
{
    MODEL_CHECK(got[0] == 1 && got[1] == 1);
    MODEL_CHECK(mutex.gate_.word_.raw_ == 0 && mutex.gate_.first_ == NULL);
}

static const struct model two = {reset_mutex, {lock_twice, lock_twice}, check_two};

TEST(three_threads_one_of_them_impatient_share_a_mutex, .limit_s = 120)
{
    model_holds(&three, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&three, &(struct model_options){.store_buffers = true, .random = 2000});
}

TEST(three_threads_one_of_them_impatient_share_a_fair_mutex, .limit_s = 120)
{
    model_holds(&three_fair, &(struct model_options){.preemptions = 3, .random = 2000});
}

TEST(two_threads_overtake_each_other_at_a_mutex, .limit_s = 120)
{
    model_holds(&two, &(struct model_options){.preemptions = 3, .random = 2000});
}

/* ---- the semaphore --------------------------------------------------------------------------- */

static void reset_sem(void)
{
    forget();
    sem = (sn_sem)SN_SEM_INIT(2);
}

static void take(uint32_t units, sn_deadline until)
{
    int rc = sn_sem_acquire(&sem, units, until);
    if (rc == 0) {
        inside += (int)units;
        MODEL_CHECK(inside <= 2);
        if (units == 2)
            model_write(&guarded);
        else
            model_read(&guarded);
        inside -= (int)units;
        MODEL_CHECK(sn_sem_release(&sem, units) == 0);
    }
    got[model_self()] = rc == 0 ? 1 : rc;
}

static void take_one(void)
{
    take(1, SN_FOREVER);
}

static void take_both(void)
{
    take(2, SN_FOREVER);
}

static void take_both_impatiently(void)
{
    take(2, sn_deadline_at_(1));
}

static void check_sem(void)
{
    for (int i = 0; i < 3; i++)
        MODEL_CHECK(got[i] == 1 || (i == 2 && got[i] == -ETIMEDOUT));
    MODEL_CHECK(sem.gate_.word_.raw_ == 2 << 2 && sem.gate_.first_ == NULL);
}

static const struct model units = {
    reset_sem, {take_one, take_both, take_both_impatiently}, check_sem};

TEST(three_threads_one_of_them_impatient_share_a_semaphore, .limit_s = 120)
{
    model_holds(&units, &(struct model_options){.preemptions = 3, .random = 2000});
    model_holds(&units, &(struct model_options){.store_buffers = true, .random = 2000});
}

/* ---- what ends with the wait ---------------------------------------------------------------- */

#define SOON sn_deadline_at_(1) /* a deadline; the search decides when it has come */

static sn_rwlock rwlock;
static sn_cond cond;
static bool is_written;
static SNI_ATOMIC(int) gone; /* of two who wait */

static void reset_all(void)
{
    forget();
    event = (sn_event)SN_EVENT_INIT;
    rwlock = (sn_rwlock)SN_RWLOCK_INIT;
    sem = (sn_sem)SN_SEM_INIT(0);
    cond = (sn_cond)SN_COND_INIT;
    mutex = (sn_mutex)SN_MUTEX_INIT;
    is_written = false;
    gone.raw_ = 0;
}

/* Afterwards the memory is used otherwise: who comes late finds the gate locked for ever, or is
 * found out because it has unlocked it. */
static void use_otherwise(sn_gate_ *gate)
{
    sni_atomic_store(&gate->word_, UINT64_MAX, relaxed); /* relaxed: ours */
}

static bool is_used_otherwise(const sn_gate_ *gate)
{
    return gate->word_.raw_ == UINT64_MAX;
}

/* The second one to go is the last to use it. */
static bool is_last_to_go(void)
{
    return sni_atomic_fetch_add(&gone, 1, acq_rel) == 1; /* acq_rel: one after the other */
}

static void leave(sn_gate_ *gate)
{
    if (is_last_to_go())
        use_otherwise(gate);
}

static void set_event(void)
{
    model_write(&guarded);
    (void)sn_event_set(&event);
}

static void wait_for_event(void)
{
    MODEL_CHECK(sn_event_wait(&event, SN_FOREVER) == 0);
    model_read(&guarded);
    use_otherwise(&event.gate_);
}

static void check_event(void)
{
    MODEL_CHECK(is_used_otherwise(&event.gate_));
}

static const struct model ending = {reset_all, {wait_for_event, set_event}, check_event};

TEST(an_event_is_not_touched_after_the_wait_in_any_interleaving, .limit_s = 120)
{
    model_holds(&ending, &(struct model_options){.preemptions = 4, .random = 2000});
    model_holds(&ending, &(struct model_options){.store_buffers = true, .random = 2000});
}

/* Two wait, which is more than are woken in one go. */
static void wait_for_event_with_another(void)
{
    MODEL_CHECK(sn_event_wait(&event, SN_FOREVER) == 0);
    model_read(&guarded);
    leave(&event.gate_);
}

static void wait_for_event_soon(void)
{
    int rc = sn_event_wait(&event, SOON);
    MODEL_CHECK(rc == 0 || rc == -ETIMEDOUT);
    leave(&event.gate_);
}

static const struct model two_at_event = {
    reset_all, {wait_for_event_with_another, wait_for_event_soon, set_event}, check_event};

TEST(an_event_is_not_touched_after_the_last_wait_of_many, .limit_s = 120)
{
    model_holds(&two_at_event, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&two_at_event,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 2000});
}

static void write_once(void)
{
    MODEL_CHECK(sn_rwlock_lock(&rwlock, SN_FOREVER) == 0);
    model_write(&guarded);
    is_written = true;
    MODEL_CHECK(sn_rwlock_unlock(&rwlock) == 0);
}

/* Who reads what was written knows that nobody else will come. */
static void read_once(void)
{
    MODEL_CHECK(sn_rwlock_lock_shared(&rwlock, SN_FOREVER) == 0);
    model_read(&guarded);
    bool is_last = is_written;
    MODEL_CHECK(sn_rwlock_unlock_shared(&rwlock) == 0);
    if (is_last)
        leave(&rwlock.gate_);
}

static void check_rwlock(void)
{
    MODEL_CHECK(is_used_otherwise(&rwlock.gate_) == (gone.raw_ == 2));
}

static const struct model two_readers = {
    reset_all, {write_once, read_once, read_once}, check_rwlock};

TEST(a_rwlock_is_not_touched_after_the_last_has_read, .limit_s = 120)
{
    model_holds(&two_readers, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&two_readers,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 2000});
}

static void give_two(void)
{
    MODEL_CHECK(sn_sem_release(&sem, 2) == 0);
}

static void take_one_for_good(void)
{
    MODEL_CHECK(sn_sem_acquire(&sem, 1, SN_FOREVER) == 0);
    leave(&sem.gate_);
}

static void take_one_soon(void)
{
    int rc = sn_sem_acquire(&sem, 1, SOON);
    MODEL_CHECK(rc == 0 || rc == -ETIMEDOUT);
    leave(&sem.gate_);
}

static void check_sem_is_gone(void)
{
    MODEL_CHECK(is_used_otherwise(&sem.gate_));
}

static const struct model two_at_sem = {
    reset_all, {give_two, take_one_for_good, take_one_soon}, check_sem_is_gone};

TEST(a_semaphore_is_not_touched_after_the_last_wait, .limit_s = 120)
{
    model_holds(&two_at_sem, &(struct model_options){.preemptions = 2, .random = 5000});
}

/* ---- the condition --------------------------------------------------------------------------- */

/* Who was signalled knows that whoever did it has come: nobody else uses the condition. */
static void wait_for_signal(void)
{
    MODEL_CHECK(sn_mutex_lock(&mutex, SN_FOREVER) == 0);
    int rc = sn_cond_wait(&cond, &mutex, SOON);
    MODEL_CHECK(rc == 0 || rc == -ETIMEDOUT);
    if (rc == 0)
        use_otherwise(&cond.gate_);
    got[model_self()] = rc;
    MODEL_CHECK(sn_mutex_unlock(&mutex) == 0);
}

static void signal(void)
{
    MODEL_CHECK(sn_cond_signal(&cond) == 0);
}

static void broadcast(void)
{
    MODEL_CHECK(sn_cond_broadcast(&cond) == 0);
}

static void check_cond(void)
{
    MODEL_CHECK(is_used_otherwise(&cond.gate_) == (got[0] == 0));
    MODEL_CHECK(mutex.gate_.word_.raw_ == 0 && mutex.gate_.first_ == NULL);
}

static const struct model late_signal = {reset_all, {wait_for_signal, signal}, check_cond};
static const struct model late_broadcast = {reset_all, {wait_for_signal, broadcast}, check_cond};

TEST(a_condition_is_not_touched_after_the_wait_however_late_it_was_signalled, .limit_s = 120)
{
    model_holds(&late_signal, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&late_broadcast, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&late_signal, &(struct model_options){.store_buffers = true, .random = 2000});
}

/* Both wait at once, and one of them was signalled. */
static void wait_for_broadcast(void)
{
    MODEL_CHECK(sn_mutex_lock(&mutex, SN_FOREVER) == 0);
    int rc = sn_cond_wait(&cond, &mutex, SOON);
    MODEL_CHECK(rc == 0 || rc == -ETIMEDOUT);
    is_written |= rc == 0;
    MODEL_CHECK(sn_mutex_unlock(&mutex) == 0);
    if (is_last_to_go() && is_written)
        use_otherwise(&cond.gate_);
}

static void check_cond_of_two(void)
{
    MODEL_CHECK(is_used_otherwise(&cond.gate_) == is_written);
    MODEL_CHECK(mutex.gate_.word_.raw_ == 0 && mutex.gate_.first_ == NULL);
}

static const struct model two_at_cond = {
    reset_all, {broadcast, wait_for_broadcast, wait_for_broadcast}, check_cond_of_two};

TEST(a_condition_is_not_touched_after_the_last_wait_of_many, .limit_s = 120)
{
    model_holds(&two_at_cond, &(struct model_options){.preemptions = 2, .random = 5000});
}

/* ---- planted ------------------------------------------------------------------------------- */

TEST(a_mutex_taken_without_compare_and_swap_is_found, .limit_s = 60)
{
    model_finds(&three,
                &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "take_free"},
                "");
}

TEST(a_mutex_that_acquires_nothing_is_found, .limit_s = 60)
{
    model_finds(&two,
                &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "take_free"},
                "race");
}

TEST(a_mutex_that_releases_nothing_is_found, .limit_s = 60)
{
    model_finds(
        &two,
        &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "sni_mutex_unlock_as"},
        "race");
}

TEST(a_gate_locked_without_compare_and_swap_is_found, .limit_s = 60)
{
    model_finds(
        &three,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_gate_lock"}, "");
}

TEST(units_taken_without_compare_and_swap_are_found, .limit_s = 60)
{
    model_finds(
        &units,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sn_sem_acquire"}, "");
}

TEST(units_that_release_nothing_are_found, .limit_s = 60)
{
    model_finds(&units,
                &(struct model_options){.plant = MODEL_PLANT_RELAXED, .function = "sn_sem_release"},
                "race");
}
