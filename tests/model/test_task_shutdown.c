/* SPDX-License-Identifier: MIT */
/* test_task_shutdown.c - src/task/task.c, all interleavings (R151): a runtime goes away while a
 * thread outside still uses a handle of its. After sni_task_hold and sni_task_abandon nobody calls
 * the home, which is then freed; the record is freed once; who joins learns how it ended. */
#include "model/model.h"
#include "model/task_home.h"

#include "harness.h"
#include "plat/thread.h"
#include "task/scope.h"
#include "task/state.h"

#include <setjmp.h>
#include <sinew/errno.h>

static struct sni_task *task;
static sn_task *handle;
static int result;

static int never(void *arg)
{
    (void)arg;
    model_fail("a fiber ran that nobody should have begun");
}

static void reset_alive(void)
{
    home_reset(NULL);
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
    result = 1;
}

static void reset_ended(void)
{
    reset_alive();
    sni_task_end(NULL, task, HOME_RESULT);
}

/* What a runtime does with each of its records, when its workers have stopped. */
static void stop_home(void)
{
    if (sni_atomic_load(&task->record.generation, acquire) == life_of(task)->born &&
        sni_task_hold(task, home_exec(NULL).home))
        sni_task_abandon(task);
    home_is_gone();
}

/* The task may end before the workers stop. */
static void end_and_stop(void)
{
    home_run_to_end(task, HOME_RESULT);
    stop_home();
}

static void joiner(void)
{
    result = sn_join(handle, NULL);
}

static void detacher(void)
{
    result = sn_detach(handle);
}

static void check_freed(void)
{
    MODEL_CHECK(task->record.generation.raw_ == life_of(task)->born + 1);
}

static void check_joined(void)
{
    check_freed();
    MODEL_CHECK(result == HOME_RESULT || result == -ECANCELED || result == -ESRCH);
}

static void check_detached(void)
{
    check_freed();
    MODEL_CHECK(result == 0 || result == -ESRCH);
}

static void explore(const struct model *model)
{
    model_holds(model, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(model, &(struct model_options){.preemptions = 3, .store_buffers = true});
}

TEST(task_is_joined_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model alive = {reset_alive, {stop_home, joiner}, check_joined};
    static const struct model ended = {reset_ended, {stop_home, joiner}, check_joined};
    static const struct model ending = {reset_alive, {end_and_stop, joiner}, check_joined};
    explore(&alive);
    explore(&ended);
    explore(&ending);
}

TEST(task_is_detached_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model alive = {reset_alive, {stop_home, detacher}, check_detached};
    static const struct model ended = {reset_ended, {stop_home, detacher}, check_detached};
    explore(&alive);
    explore(&ended);
}

/* ---- a cancel in the middle of it ------------------------------------------------------------ */

/* Who cancels may find the fiber parked, and then it is to be resumed; or it works in the frame of
 * who waits. It has done so when the runtime takes the frame away, or it lets it be. */
static struct sni_stack stack;
static struct model_data frame; /* of the fiber that waits */
static struct sni_waiter waiter;
static SNI_ATOMIC(uint32_t) resumes;

static void note_resume(struct sni_task *t)
{
    MODEL_CHECK(t == task);
    sni_atomic_fetch_add(&resumes, 1, relaxed); /* relaxed: a step, as a queue would take some */
}

static const struct home_hooks resuming = {.ready = note_resume};

static void take_back(struct sni_lent *lent)
{
    (void)lent;
    model_write(&frame);
}

static void interrupt(struct sni_waiter *w, int why)
{
    MODEL_CHECK(w == &waiter);
    model_write(&frame);
    /* relaxed: nobody else claims it */
    sni_atomic_store(&task->wait, sni_wait_claimed_with_(SNI_WAIT_PINNED, why), relaxed);
    sni_task_home(task)->ops->ready(task);
}

static struct sni_lent lent = {take_back, &waiter};

static void reset_parked(void)
{
    home_reset(&resuming);
    task = home_fiber(never, true);
    handle = sni_task_handle(task);
    frame = (struct model_data){.written = {0}};
    waiter.interrupt = interrupt;
    result = 1;
    sni_atomic_store(&resumes, 0, relaxed); /* relaxed: in setup */
    task->acting = NULL;                    /* it has begun */
    task->stack = &stack;
    task->lent = &lent;
    sni_atomic_store(&task->wait, SNI_WAIT_PARKED, relaxed); /* relaxed: in setup */
}

static void reset_hooked(void)
{
    reset_parked();
    sni_atomic_store(&task->wait, SNI_WAIT_PARKED | SNI_WAIT_HELD, relaxed); /* as above */
}

typedef struct waiting {
    sn_future future;
} waiting;

static sn_poll poll_never(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    (void)cx;
    model_fail("a coroutine was polled that nobody should have begun");
}

static void reset_coroutine(void)
{
    static const sn_future_vtable vtable = {.poll = poll_never, .name = "never"};
    waiting w;
    home_reset(&resuming);
    task = home_coroutine(sn_future_init(&w.future, &vtable), sizeof(w), true);
    handle = sni_task_handle(task);
    result = 1;
    sni_atomic_store(&resumes, 0, relaxed);               /* relaxed: in setup */
    sni_atomic_fetch_and(&task->state, ~ACTIVE, relaxed); /* relaxed: in setup */
}

static void stop_home_with_its_stacks(void)
{
    stop_home();
    model_write(&frame);
}

static void canceller(void)
{
    result = sn_cancel(handle, NULL);
}

static void check_cancelled(void)
{
    check_freed();
    MODEL_CHECK(resumes.raw_ <= 1);
    MODEL_CHECK(result == -ECANCELED || result == -ESRCH);
}

TEST(task_is_cancelled_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model parked = {
        reset_parked, {stop_home_with_its_stacks, canceller}, check_cancelled};
    static const struct model hooked = {
        reset_hooked, {stop_home_with_its_stacks, canceller}, check_cancelled};
    static const struct model coroutine = {
        reset_coroutine, {stop_home, canceller}, check_cancelled};
    const struct model *models[] = {&parked, &hooked, &coroutine};
    for (int i = 0; i < 3; i++) {
        model_holds(models[i], &(struct model_options){.preemptions = 3, .random = 5000});
        model_holds(models[i], &(struct model_options){.store_buffers = true});
    }
}

/* ---- a wake in the middle of it -------------------------------------------------------------- */

/* Who wakes a coroutine has a waker, which keeps the record. The home is there until it has queued
 * the task, or it leaves the home alone. */
static sn_waker waker;

static sn_poll leave_waker(sn_future *fut, sn_cx *cx)
{
    (void)fut;
    waker = sn_waker_clone(cx->waker);
    return SN_PENDING;
}

static void reset_waked(void)
{
    static const sn_future_vtable vtable = {.poll = leave_waker, .name = "leaves"};
    waiting w;
    home_reset(&resuming);
    task = home_coroutine(sn_future_init(&w.future, &vtable), sizeof(w), true);
    handle = sni_task_handle(task);
    result = 1;
    sni_atomic_store(&resumes, 0, relaxed); /* relaxed: in setup */
    struct sni_task_exec me = home_exec(NULL);
    MODEL_CHECK(!sni_task_poll(&me, task));
}

static void wake(void)
{
    result = sn_waker_wake(&waker);
}

static void check_waked(void)
{
    check_freed();
    MODEL_CHECK(resumes.raw_ <= 1);
    MODEL_CHECK(result == 0 || result == -ESRCH);
}

TEST(task_is_woken_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model woken = {reset_waked, {stop_home, wake}, check_waked};
    explore(&woken);
}

TEST(task_is_woken_and_cancelled_while_its_runtime_gives_it_up, .limit_s = 60)
{
    static const struct model both = {reset_waked, {stop_home, wake, detacher}, check_detached};
    static const struct model cancelled = {reset_waked, {stop_home, canceller, wake}, check_freed};
    model_holds(&both, &(struct model_options){.random = 5000});
    model_holds(&cancelled, &(struct model_options){.random = 5000});
}

/* ---- who waits for an end elsewhere is given up ---------------------------------------------- */

/* A fiber of a runtime that stops waits for a task of another, which just ends: that one claims the
 * wait, in a frame and a record that are to be there until then. */
enum { RUNS, SLEEPS, GOES_ON, GIVEN_UP, GONE, DONE };

static struct sni_task fiber;
static SNI_ATOMIC(uint32_t) place; /* where the fiber is */
static jmp_buf out;
static const struct sni_home stopped = {NULL};

static bool moves(uint32_t from, uint32_t to)
{
    bool did = sni_atomic_cas(&place, &from, to, acq_rel, relaxed); /* acq_rel: as a queue would */
    if (did)
        sni_plat_unpark(&place.raw_, MODEL_THREADS_MAX);
    return did;
}

static void suspend(struct sni_exec *exec, struct sni_waiter *w)
{
    (void)exec;
    (void)w;
    if (sni_task_parked(&fiber))
        return;
    (void)moves(RUNS, SLEEPS);
    while (!moves(GOES_ON, RUNS)) {
        uint32_t now = sni_atomic_load(&place, acquire); /* acquire: pairs with moves */
        if (now == GONE)
            _longjmp(out, 1);
        if (now != GOES_ON)
            (void)sni_plat_park(&place.raw_, now, INT64_MAX);
    }
}

/* One that is on its way when the fiber is given up comes to nothing; its runtime is there until
 * that is over. */
static void resume(void *who)
{
    MODEL_CHECK(who == &fiber);
    MODEL_CHECK(sni_atomic_load(&place, acquire) != GONE); /* acquire: pairs with moves */
    if (!moves(RUNS, GOES_ON))
        (void)moves(SLEEPS, GOES_ON);
    MODEL_CHECK(sni_atomic_load(&place, acquire) != GONE); /* acquire: as above */
}

static const struct sni_exec_ops exec_ops = {
    .suspend = suspend,
    .resume = resume,
    .resume_last = resume,
    .lent_at = offsetof(struct sni_task, lent),
    .wait_at = offsetof(struct sni_task, wait),
};

static void reset_elsewhere(void)
{
    reset_alive();
    fiber = (struct sni_task){.kind = SNI_TASK_FIBER, .stack = &stack};
    /* relaxed, all: in setup */
    sni_atomic_store(&fiber.home_, (struct sni_home *)(uintptr_t)&stopped, relaxed);
    sni_atomic_store(&fiber.wait, SNI_WAIT_CLAIMED, relaxed);
    sni_atomic_store(&fiber.state, 3 * REF, relaxed); /* its own, who gives it up, and one for us */
    sni_atomic_store(&place, RUNS, relaxed);
}

static void ender(void)
{
    home_run_to_end(task, HOME_RESULT);
}

static void fiber_elsewhere(void)
{
    struct sni_task_exec me = {.exec = {&exec_ops, &fiber},
                               .home = (struct sni_home *)(uintptr_t)&stopped};
    sni_exec_set(&me.exec);
    if (_setjmp(out) == 0) {
        result = sn_join(handle, NULL);
        (void)moves(RUNS, DONE);
    }
    sni_exec_set(NULL);
}

static void stop_elsewhere(void)
{
    while (!moves(SLEEPS, GIVEN_UP) && !moves(GOES_ON, GIVEN_UP)) {
        uint32_t now = sni_atomic_load(&place, acquire); /* acquire: pairs with moves */
        if (now == DONE)
            return;
        if (now == RUNS)
            (void)sni_plat_park(&place.raw_, RUNS, INT64_MAX);
    }
    sni_task_abandon(&fiber);
    /* Its record is another's, which waits. relaxed: nobody else has it */
    sni_atomic_store(&fiber.wait, SNI_WAIT_OPEN, relaxed);
    (void)moves(GIVEN_UP, GONE);
}

static void check_elsewhere(void)
{
    bool is_gone = place.raw_ == GONE;
    int rc = sn_detach(handle); /* it may be left, with nobody to use it */
    MODEL_CHECK(rc == -ESRCH || (rc == 0 && is_gone));
    home_check_over(life_of(task));
    MODEL_CHECK(result == (is_gone ? 1 : HOME_RESULT));
    MODEL_CHECK(fiber.wait.raw_ == SNI_WAIT_OPEN || !is_gone);
}

TEST(task_ends_while_who_joins_it_is_given_up, .limit_s = 60)
{
    static const struct model elsewhere = {
        reset_elsewhere, {ender, fiber_elsewhere, stop_elsewhere}, check_elsewhere};
    model_holds(&elsewhere, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&elsewhere, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

/* The task never ends, but is given up, too. */
static void check_both_given_up(void)
{
    bool is_gone = place.raw_ == GONE;
    int rc = sn_detach(handle);
    MODEL_CHECK(rc == -ESRCH || (rc == 0 && is_gone));
    check_freed();
    MODEL_CHECK(is_gone ? result == 1 : result == -ECANCELED || result == -ESRCH);
}

TEST(task_is_given_up_while_who_joins_it_is_given_up, .limit_s = 60)
{
    static const struct model both = {
        reset_elsewhere, {stop_home, fiber_elsewhere, stop_elsewhere}, check_both_given_up};
    model_holds(&both, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&both, &(struct model_options){.preemptions = 1, .store_buffers = true});
}

/* Who joins is cancelled as well: who cancels it pins its wait, while the end claims it. */
static void canceller_elsewhere(void)
{
    sni_scope_cancel_task(&fiber, -ECANCELED);
}

static void check_cancelled_elsewhere(void)
{
    bool is_gone = place.raw_ == GONE;
    int rc = sn_detach(handle);
    MODEL_CHECK(rc == -ESRCH || (rc == 0 && (is_gone || result == -ECANCELED)));
    home_check_over(life_of(task));
    MODEL_CHECK(is_gone ? result == 1 : result == HOME_RESULT || result == -ECANCELED);
}

TEST(task_ends_while_who_joins_it_is_cancelled_and_given_up, .limit_s = 60)
{
    static const struct model cancelled = {
        reset_elsewhere, {ender, fiber_elsewhere, canceller_elsewhere}, check_cancelled_elsewhere};
    static const struct model both = {reset_elsewhere,
                                      {ender, fiber_elsewhere, canceller_elsewhere, stop_elsewhere},
                                      check_cancelled_elsewhere};
    model_holds(&cancelled, &(struct model_options){.preemptions = 2, .random = 5000});
    model_holds(&both, &(struct model_options){.preemptions = 1, .random = 20000});
}

/* ---- records that had another home before ---------------------------------------------------- */

/* A runtime that has stopped walks over all records, while another makes tasks of those that were
 * once its own: until then they say that they still are. */
static struct sni_record *record;
static bool is_held;

static void reset_reused(void)
{
    home_reset(NULL);
    record = &home_fiber(never, false)->record;
    sni_task_end(NULL, (struct sni_task *)(void *)record, HOME_RESULT);
    sni_atomic_store(&((struct sni_task *)(void *)record)->home_,
                     (struct sni_home *)(uintptr_t)&stopped, relaxed); /* relaxed: in setup */
    is_held = false;
}

static void spawner(void)
{
    task = home_fiber(never, true);
    MODEL_CHECK(&task->record == record);
    home_run_to_end(task, HOME_RESULT);
    result = sn_join(sni_task_handle(task), NULL);
}

static void walker(void)
{
    /* acquire: as the walk has it */
    is_held = sni_atomic_load(&record->generation, acquire) % 2 != 0 &&
              sni_task_hold((struct sni_task *)(void *)record, &stopped);
    if (is_held)
        sni_task_abandon((struct sni_task *)(void *)record);
}

static void check_left_alone(void)
{
    check_freed();
    MODEL_CHECK(!is_held);
    MODEL_CHECK(result == HOME_RESULT);
}

TEST(task_of_another_runtime_is_left_alone, .limit_s = 60)
{
    static const struct model reused = {reset_reused, {spawner, walker}, check_left_alone};
    explore(&reused);
}
