/* SPDX-License-Identifier: MIT */
/* Tasks that nobody can wake any more are found (R160): whatever could wake them is known to
 * themselves only, or to others of that kind. And as soon as anybody else knows of it, they are
 * not. */
#include "base/compiler.h"
#include "runtime/runtime.h"
#include "unit/observe/leaking.h"
#include "unit/observe/said.h"

#include <pthread.h>

struct found {
    int n;
    char names[256]; /* "a b c ", in the order of numbers */
    sn_stuck last;
};

static void note(const sn_stuck *task, void *arg)
{
    struct found *found = arg;
    found->n++;
    found->last = *task;
    strncat(found->names, task->name, sizeof(found->names) - strlen(found->names) - 2);
    strcat(found->names, " ");
}

/* Whoever was spawned waits by now, most likely: tell who is leaked. What `found` held before is
 * forgotten first: it may be a handle that somebody waits at. */
static void find_leaks(struct found *found)
{
    *found = (struct found){.n = 0};
    CHECK_EQ(sn_sleep(SN_MS(20)), 0);
    int rc = sn_leaks(NULL, note, found);
    CHECK_EQ(rc, found->n);
}

static struct found leaks_now(void)
{
    struct found found;
    find_leaks(&found);
    return found;
}

/* These and no others are leaked now. With sanitizers and without optimisation fewer may be: they
 * remember what a program did and where, and make frames so large that words survive in them. So
 * one build, the release, answers for that they are found, and all for that no others are. Who is
 * slow to begin, because a worker has it that does not run, is waited for. In any order: cycles
 * come first, and what a stack has that was another's before may make one more, or one less. */
static struct found check_leaks(const char *names)
{
    enum { TRIES = 50 };
    struct found found;
    for (int i = 0; i < TRIES; i++) {
        find_leaks(&found);
        char rest[256];
        snprintf(rest, sizeof(rest), "%s", found.names);
        for (char *name = strtok(rest, " "); name != NULL; name = strtok(NULL, " "))
            CHECK_STR_HAS(names, name);
        if (!LEAKS_ARE_EXACT || strlen(found.names) == strlen(names))
            return found;
    }
    CHECK_STR_EQ(found.names, names); /* some are missing */
    return found;
}

static void check_waits(const struct found *found, const char *waits)
{
    if (found->n > 0)
        CHECK_STR_EQ(found->last.waits, waits);
}

/* --- channels --- */

static int recv_from_own(void *arg)
{
    (void)arg;
    return recv_from(channel());
}

LEAK_TEST(who_waits_at_a_channel_that_it_alone_knows_is_leaked)
{
    begin(recv_from_own, "alone");
    struct found found = check_leaks("alone ");
    check_waits(&found, "recv");
    CHECK(found.n == 0 || found.last.object != NULL);
    CHECK(found.n == 0 || strstr(found.last.at, "observe/leaking.h:") != NULL);
    return 0;
}

static int recv_from_given(void *arg)
{
    return recv_from(*(sn_chan **)arg);
}

static int send_to_given(void *arg)
{
    sn_chan *ch = *(sn_chan **)arg;
    return sn_chan_send(ch, &ch, SN_FOREVER);
}

/* In a task of its own, whose stack goes away with all that it knew. */
static int leave_two_waiting(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel();
    size_t bytes = sizeof(a);
    CHECK_EQ(sn_spawn_detached(recv_from_given, &a, .name = "receiver", .copy_bytes = bytes), 0);
    CHECK_EQ(sn_spawn_detached(send_to_given, &b, .name = "sender", .copy_bytes = bytes), 0);
    return 0;
}

LEAK_TEST(who_is_left_at_a_channel_by_all_others_is_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_two_waiting, NULL), NULL), 0);
    (void)check_leaks("receiver sender ");
    return 0;
}

struct two {
    sn_chan *mine, *other;
};

/* Each could wake the other, and is not woken itself. */
static int keep_other(void *arg)
{
    struct two *two = arg;
    int rc = recv_from(two->mine);
    return rc == 0 ? sn_chan_close(two->other) : rc;
}

static int leave_a_ring(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel();
    struct two one = {a, b}, two = {b, a};
    CHECK_EQ(sn_spawn_detached(keep_other, &one, .name = "one", .copy_bytes = sizeof(one)), 0);
    CHECK_EQ(sn_spawn_detached(keep_other, &two, .name = "two", .copy_bytes = sizeof(two)), 0);
    return 0;
}

LEAK_TEST(tasks_that_only_each_other_could_wake_are_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_a_ring, NULL), NULL), 0);
    (void)check_leaks("one two ");
    return 0;
}

static sn_chan *volatile kept;

static int leave_one_known(void *arg)
{
    sn_chan *a = channel();
    kept = a;
    (void)arg;
    CHECK_EQ(sn_spawn_detached(recv_from_given, &a, .name = "known", .copy_bytes = sizeof(a)), 0);
    return 0;
}

LEAK_TEST(as_long_as_a_static_variable_has_the_handle_nobody_is_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_one_known, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    kept = NULL;
    (void)check_leaks("known ");
    return 0;
}

static int move_to_heap(void *arg)
{
    (void)arg;
    sn_chan *volatile *block = malloc(64);
    block[3] = kept;
    kept = (sn_chan *)(void *)block;
    return 0;
}

static int clear_heap(void *arg)
{
    (void)arg;
    sn_chan *volatile *block = (sn_chan *volatile *)(void *)kept;
    block[3] = NULL;
    free((void *)block);
    kept = NULL;
    return 0;
}

LEAK_TEST(as_long_as_the_heap_has_the_handle_nobody_is_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_one_known, NULL), NULL), 0);
    CHECK_EQ(sn_join(sn_spawn(move_to_heap, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    CHECK_EQ(sn_join(sn_spawn(clear_heap, NULL), NULL), 0);
    (void)check_leaks("known ");
    return 0;
}

/* The handle is on the stack of a task that sleeps for a long time, or in a message that such a
 * task could receive. */
static int sleep_with(void *arg)
{
    sn_chan *volatile mine = *(sn_chan **)arg;
    int rc = sn_sleep(SN_S(1000));
    return mine != NULL ? rc : 1;
}

static int leave_with_sleeper(void *arg)
{
    (void)arg;
    sn_chan *a = channel();
    CHECK_EQ(sn_spawn_detached(recv_from_given, &a, .name = "waiter", .copy_bytes = sizeof(a)), 0);
    CHECK_EQ(sn_spawn_detached(sleep_with, &a, .name = "sleeper", .copy_bytes = sizeof(a)), 0);
    return 0;
}

LEAK_TEST(a_task_that_will_go_on_and_has_the_handle_keeps_others_from_being_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_with_sleeper, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    return 0;
}

static int send_handle(void *arg)
{
    struct two *two = arg;
    return sn_chan_send(two->mine, &two->other, SN_FOREVER);
}

/* "carrier" waits to send the handle of b on a; somebody could receive it and wake "waiter". */
static int leave_carrier(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel();
    struct two two = {a, b};
    kept = a;
    CHECK_EQ(sn_spawn_detached(send_handle, &two, .name = "carrier", .copy_bytes = sizeof(two)), 0);
    CHECK_EQ(sn_spawn_detached(recv_from_given, &b, .name = "waiter", .copy_bytes = sizeof(b)), 0);
    return 0;
}

LEAK_TEST(who_can_be_woken_makes_others_live_that_it_could_wake)
{
    CHECK_EQ(sn_join(sn_spawn(leave_carrier, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    kept = NULL;
    (void)check_leaks("carrier waiter ");
    return 0;
}

static int select_own(void *arg)
{
    sn_chan *value, *a = channel(), *b = *(sn_chan **)arg;
    sn_case cases[] = {sn_case_recv(a, &value), sn_case_send(b, &b)};
    return sn_select(cases, 2, 0, SN_FOREVER);
}

static int leave_select(void *arg)
{
    (void)arg;
    sn_chan *b = channel();
    kept = b;
    CHECK_EQ(sn_spawn_detached(select_own, &b, .name = "selects", .copy_bytes = sizeof(b)), 0);
    return 0;
}

LEAK_TEST(a_select_is_leaked_when_none_of_its_cases_can_take_place)
{
    CHECK_EQ(sn_join(sn_spawn(leave_select, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    kept = NULL;
    struct found found = check_leaks("selects ");
    check_waits(&found, "select");
    return 0;
}

typedef struct await_own {
    sn_coro coro;
    sn_chan_op op;
    sn_chan *ch, *value;
    int rc;
} await_own;

SN_CORO(await_own, self)
{
    SN_BEGIN(self);
    SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op, self->ch, (void *)&self->value));
    SN_RETURN(self->rc);
    SN_END();
}

static int leave_coro(void *arg)
{
    (void)arg;
    await_own frame = {.ch = channel()};
    kept = frame.ch;
    CHECK_EQ(sn_spawn_coro_detached(await_own, &frame, .name = "coro"), 0);
    return 0;
}

/* That it is leaked later cannot be promised: the stack on which it was polled keeps words. */
LEAK_TEST(a_coroutine_is_not_leaked_while_its_channel_is_known)
{
    CHECK_EQ(sn_join(sn_spawn(leave_coro, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    kept = NULL;
    return 0;
}

/* --- what ends by itself, or by others --- */

static int recv_with_deadline(void *arg)
{
    (void)arg;
    sn_chan *value, *ch = channel();
    return sn_chan_recv(ch, &value, sn_after(SN_S(1000)));
}

LEAK_TEST(a_wait_with_a_deadline_is_no_leak)
{
    begin(recv_with_deadline, "patient");
    CHECK_EQ(leaks_now().n, 0);
    return 0;
}

static sn_task *volatile cancellable;

static int leave_cancellable(void *arg)
{
    (void)arg;
    cancellable = sn_spawn(recv_from_own, NULL, .name = "cancellable");
    return 0;
}

static int let_it_go(void *arg)
{
    (void)arg;
    return sn_detach(cancellable);
}

LEAK_TEST(who_can_be_cancelled_is_not_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_cancellable, NULL), NULL), 0);
    CHECK_EQ(leaks_now().n, 0);
    CHECK_EQ(sn_join(sn_spawn(let_it_go, NULL), NULL), 0);
    (void)check_leaks("cancellable ");
    return 0;
}

/* --- locks, joins, and what lies on a stack --- */

static sn_mutex mutex;
static sn_event on_heap_or_not;

static int join_given(void *arg)
{
    return sn_join(*(sn_task **)arg, NULL);
}

static int leave_joiner(void *arg)
{
    (void)arg;
    sn_task *t = sn_spawn(recv_from_own, NULL, .name = "inner");
    CHECK_EQ(sn_spawn_detached(join_given, &t, .name = "outer", .copy_bytes = sizeof(t)), 0);
    return 0;
}

LEAK_TEST(who_joins_a_leaked_task_is_leaked)
{
    CHECK_EQ(sn_join(sn_spawn(leave_joiner, NULL), NULL), 0);
    (void)check_leaks("inner outer ");
    return 0;
}

static int lock_and_leak(void *arg)
{
    CHECK_EQ(sn_mutex_lock(&mutex, SN_FOREVER), 0);
    return recv_from_own(arg);
}

static int want_lock(void *arg)
{
    (void)arg;
    return sn_mutex_lock(&mutex, SN_FOREVER);
}

static int leave_locked(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_spawn_detached(lock_and_leak, NULL, .name = "holder"), 0);
    int rc;
    while ((rc = sn_mutex_lock(&mutex, SN_NOWAIT)) == 0) { /* until it has it */
        CHECK_EQ(sn_mutex_unlock(&mutex), 0);
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    }
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_EQ(sn_spawn_detached(want_lock, NULL, .name = "waiter"), 0);
    return 0;
}

static int lock_and_end(void *arg)
{
    (void)arg;
    return sn_mutex_lock(&mutex, SN_FOREVER);
}

/* Who waits is spawned first: else it may get the record of the one that has ended. */
static int want_lock_later(void *arg)
{
    CHECK_EQ(sn_event_wait(&on_heap_or_not, SN_FOREVER), 0);
    return want_lock(arg);
}

static int leave_ended_holder(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_spawn_detached(want_lock_later, NULL, .name = "waiter"), 0);
    CHECK_EQ(sn_join(sn_spawn(lock_and_end, NULL), NULL), 0);
    return sn_event_set(&on_heap_or_not);
}

LEAK_TEST(who_waits_for_a_lock_that_an_ended_task_has_kept_is_leaked)
{
    mutex = (sn_mutex)SN_MUTEX_INIT;
    on_heap_or_not = (sn_event)SN_EVENT_INIT;
    CHECK_EQ(sn_join(sn_spawn(leave_ended_holder, NULL), NULL), 0);
    struct found found = check_leaks("waiter ");
    check_waits(&found, "mutex");
    return 0;
}

LEAK_TEST(who_waits_for_a_lock_of_a_leaked_task_is_leaked)
{
    mutex = (sn_mutex)SN_MUTEX_INIT;
    CHECK_EQ(sn_join(sn_spawn(leave_locked, NULL), NULL), 0);
    (void)check_leaks("holder waiter ");
    return 0;
}

static int wait_at_own_event(void *arg)
{
    (void)arg;
    sn_event mine = SN_EVENT_INIT;
    return sn_event_wait(&mine, SN_FOREVER);
}

static sn_event *volatile shown;

static int wait_at_shown_event(void *arg)
{
    (void)arg;
    sn_event mine = SN_EVENT_INIT;
    shown = &mine;
    return sn_event_wait(&mine, SN_FOREVER);
}

static int wait_at_static_event(void *arg)
{
    (void)arg;
    return sn_event_wait(&on_heap_or_not, SN_FOREVER);
}

LEAK_TEST(an_event_on_its_own_stack_that_nobody_points_to_wakes_nobody)
{
    begin(wait_at_own_event, "own");
    struct found found = check_leaks("own ");
    check_waits(&found, "event");
    return 0;
}

LEAK_TEST(an_event_on_a_stack_that_somebody_points_to_may_wake)
{
    begin(wait_at_shown_event, "shown");
    CHECK_EQ(leaks_now().n, 0);
    shown = NULL;
    (void)check_leaks("shown ");
    return 0;
}

LEAK_TEST(an_event_in_a_static_variable_may_always_wake)
{
    on_heap_or_not = (sn_event)SN_EVENT_INIT;
    begin(wait_at_static_event, "static");
    CHECK_EQ(leaks_now().n, 0);
    return 0;
}

/* --- whenever one looks --- */

enum { HOPS = 200, WALKERS = 6 };

/* Channels that are handed on by messages, so that each handle is in one place at a time: a frame,
 * a register, a message. All of them are received from in the end. */
static int walk(void *arg)
{
    sn_chan *from = *(sn_chan **)arg;
    for (int i = 0; i < HOPS; i++) {
        sn_chan *next;
        CHECK_EQ(sn_chan_recv(from, &next, SN_FOREVER), 0);
        from = next;
    }
    return 0;
}

static int feed(void *arg)
{
    sn_chan *to = *(sn_chan **)arg;
    for (int i = 0; i < HOPS; i++) {
        sn_chan *next = i % 3 == 0 ? channel() : to;
        CHECK_EQ(sn_chan_send(to, &next, SN_FOREVER), 0);
        to = next;
        if (i % 5 == 0)
            sn_yield();
    }
    return 0;
}

static int walk_and_feed(void *arg)
{
    (void)arg;
    sn_task *tasks[2 * WALKERS];
    for (int i = 0; i < WALKERS; i++) {
        sn_chan *ch = channel();
        tasks[2 * i] = sn_spawn(walk, &ch, .name = "walker", .copy_bytes = sizeof(ch));
        tasks[2 * i + 1] = sn_spawn(feed, &ch, .name = "feeder", .copy_bytes = sizeof(ch));
    }
    for (int i = 0; i < 2 * WALKERS; i++)
        CHECK_EQ(sn_join(tasks[i], NULL), 0);
    __atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
    return 0;
}

static int look_all_the_time(void *arg)
{
    (void)arg;
    static bool is_over;
    __atomic_store_n(&is_over, false, __ATOMIC_RELEASE);
    sn_task *t = sn_spawn(walk_and_feed, &is_over, .name = "walkers");
    struct found found = {.n = 0};
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        CHECK_EQ(sn_leaks(NULL, note, &found), 0);
        CHECK_EQ(sn_sleep(SN_MS(2)), 0);
    }
    return sn_join(t, NULL);
}

LEAK_TEST(a_busy_program_leaks_nothing_whenever_one_looks)
{
    return look_all_the_time(NULL);
}

/* --- who may ask --- */

static int just_leak(void *arg)
{
    (void)arg;
    begin(recv_from_own, "alone");
    return 0;
}

static int ask_from_thread(void *arg)
{
    (void)arg;
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, just_leak, NULL), 0);
    int n = 0;
    for (int i = 0; i < 50 && n == 0; i++) { /* it may be slow to begin */
        CHECK_EQ(sn_sleep(SN_MS(10)), 0);
        n = sn_leaks(rt, NULL, NULL);
    }
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
    return n;
}

TEST(a_plain_thread_may_ask_and_leaks_are_printed)
{
    CHECK_EQ(sn_leaks(NULL, NULL, NULL), -EINVAL);
    struct said said = listen_to(ask_from_thread, NULL);
    if (!SNI_THREAD_SANITIZED || said.result != 0) {
        CHECK_EQ(said.result, 1);
        CHECK_STR_HAS(said.text, "sinew: leak: tasks that nobody can wake any more (1):\n");
        CHECK_STR_HAS(said.text, "\"alone\", spawned at ");
        CHECK_STR_HAS(said.text, ", waits to receive from channel 0x");
    }
    free(said.text);
}

TEST(between_the_turns_of_a_single_threaded_runtime_one_may_ask)
{
    sn_runtime *rt = NULL;
    struct found found = {.n = 0};
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK_EQ(sn_leaks(rt, note, &found), 0); /* before the first */
    CHECK_EQ(sn_runtime_block_on(rt, just_leak, NULL), 0);
    CHECK_EQ(sn_runtime_turn(rt, sn_after(SN_MS(20))), 1); /* by then it waits */
    int rc = sn_leaks(rt, note, &found);
    CHECK_EQ(rc, found.n);
    CHECK(rc == 1 || (rc == 0 && !LEAKS_ARE_EXACT));
    CHECK_EQ(sn_runtime_turn(rt, SN_NOWAIT), 1); /* it can be driven again */
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
}

static int recv_from_what_is_kept(void *arg)
{
    sn_chan *ch = channel();
    __atomic_store_n(&kept, ch, __ATOMIC_RELEASE);
    return recv_from(ch) + (arg != NULL);
}

static int leak_what_is_kept(void *arg)
{
    begin(recv_from_what_is_kept, arg);
    return 0;
}

static int ask(void *found)
{
    return sn_leaks(NULL, note, found);
}

static SNI_NEVER_INLINE void leave_far_below(void)
{
    volatile uintptr_t words[1024];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = (uintptr_t)kept;
    kept = NULL;
}

/* Leave the handle where no frame will be when tasks run. Those above have holes, which are not to
 * have it. */
static SNI_NEVER_INLINE void leave_below(void)
{
    volatile char frames[8 << 10];
    for (size_t i = 0; i < sizeof(frames); i++)
        frames[i] = 0;
    leave_far_below();
    frames[0] = 0; /* it was no tail call */
}

/* The thread that drives stands at the call of a runtime's function; what is below on its stack is
 * nobody's, be it full of handles. */
TEST(what_is_below_on_the_stack_of_who_drives_keeps_nobody_from_being_listed)
{
    sn_runtime *rt = NULL;
    struct found found = {.n = 0};
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leak_what_is_kept, (void *)(uintptr_t)"alone"), 0);
    CHECK_EQ(sn_runtime_turn(rt, sn_after(SN_MS(20))), 1);
    CHECK_EQ(sn_runtime_block_on(rt, ask, &found), 0); /* it is kept */
    leave_below();
    int rc = sn_runtime_block_on(rt, ask, &found);
    CHECK(rc == 1 || (rc == 0 && !LEAKS_ARE_EXACT));
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
}

static sn_poll leave_below_in_a_poll(sn_future *self, sn_cx *cx)
{
    (void)self;
    (void)cx;
    leave_below();
    return SN_READY(0);
}

static int leave_below_on_a_worker(void *arg)
{
    (void)arg;
    static const sn_future_vtable vt = {.poll = leave_below_in_a_poll};
    sn_future fut = SN_FUTURE_INIT(&vt);
    while (__atomic_load_n(&kept, __ATOMIC_ACQUIRE) == NULL)
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(sn_sleep(SN_MS(20)), 0); /* who has kept it waits by now */
    return sn_join(sn_spawn_future(&fut, &fut), NULL);
}

/* The same for the thread of a worker, on whose stack it polls coroutines. */
TEST(what_is_below_on_the_stack_of_a_worker_keeps_nobody_from_being_listed)
{
    sn_runtime *rt = NULL;
    struct found found = {.n = 0};
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 1}), 0);
    kept = NULL;
    CHECK_EQ(sn_runtime_block_on(rt, leak_what_is_kept, (void *)(uintptr_t)"alone"), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leave_below_on_a_worker, NULL), 0);
    CHECK_EQ(usleep(20 * 1000), 0); /* the worker rests */
    int rc = sn_leaks(rt, note, &found);
    CHECK(rc == 1 || (rc == 0 && !LEAKS_ARE_EXACT));
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
}

/* One block of memory: at its beginning a handle, behind it the stack of the thread that asks. */
enum { ASKER_STACK_BYTES = 1 << 20 };

struct asker {
    sn_chan *known;
    sn_runtime *rt;
    int found;
    _Alignas(4096) char stack[ASKER_STACK_BYTES];
};

static void *ask_for_it(void *arg)
{
    struct asker *asker = arg;
    struct found found = {.n = 0};
    int n = sn_leaks(asker->rt, note, &found);
    __atomic_store_n(&asker->found, n, __ATOMIC_RELEASE);
    return NULL;
}

static int start_asker(void *arg)
{
    struct asker *asker = arg;
    pthread_t thread;
    pthread_attr_t attr;
    begin(recv_from_what_is_kept, "known");
    while (__atomic_load_n(&kept, __ATOMIC_ACQUIRE) == NULL)
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(sn_sleep(SN_MS(20)), 0); /* it waits by now */
    asker->known = kept;
    kept = NULL;
    CHECK_EQ(pthread_attr_init(&attr), 0);
    CHECK_EQ(pthread_attr_setstack(&attr, asker->stack, sizeof(asker->stack)), 0);
    asker->found = INT32_MAX;
    CHECK_EQ(pthread_create(&thread, &attr, ask_for_it, asker), 0);
    while (__atomic_load_n(&asker->found, __ATOMIC_ACQUIRE) == INT32_MAX)
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
    CHECK_EQ(pthread_attr_destroy(&attr) | pthread_join(thread, NULL), 0);
    return 0;
}

/* Not all of the memory below is the stack of who asks. */
TEST(who_is_known_below_the_stack_of_the_thread_that_asks_is_not_leaked)
{
    struct asker *asker = aligned_alloc(4096, sizeof(struct asker));
    CHECK(asker != NULL);
    CHECK_EQ(sn_runtime_create(&asker->rt, &(sn_runtime_options){.workers = 2}), 0);
    kept = NULL;
    CHECK_EQ(sn_runtime_block_on(asker->rt, start_asker, asker), 0);
    CHECK_EQ(asker->found, 0);
    (void)sn_runtime_shutdown(asker->rt, SN_NOWAIT);
    sn_runtime_destroy(asker->rt);
    free(asker);
}

static int ask_at_once(void *arg)
{
    (void)arg;
    struct found found = {.n = 0};
    return sn_leaks(NULL, note, &found);
}

/* sn_runtime_block_on asks for a task and joins it, but its thread may have to wait for a processor
 * in between. Here it takes its time. */
TEST(a_thread_that_has_yet_to_come_to_its_join_is_waited_for)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    struct sni_sched *sched = sni_runtime_sched(rt);
    sni_atomic_fetch_add(&sched->callers, 1, relaxed);
    sn_task *task = sn_runtime_spawn(rt, ask_at_once, NULL);
    CHECK_EQ(usleep(50 * 1000), 0);
    CHECK_EQ(sn_join(task, NULL), 0);
    sni_atomic_fetch_sub(&sched->callers, 1, release);
    CHECK_EQ(sn_runtime_shutdown(rt, SN_FOREVER), 0);
    sn_runtime_destroy(rt);
}

static void *wait_for_end(void *arg)
{
    CHECK_EQ(sn_event_wait(arg, SN_FOREVER), 0);
    return NULL;
}

static int ask_beside_a_thread(void *arg)
{
    (void)arg;
    static sn_event end;
    end = (sn_event)SN_EVENT_INIT;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wait_for_end, &end), 0);
    CHECK_EQ(sn_leaks(NULL, NULL, NULL), -EBUSY);
    CHECK_EQ(sn_event_set(&end), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

TEST(there_is_no_answer_while_another_thread_may_have_a_handle_in_a_register)
{
    run_and_leave(&(sn_runtime_options){.workers = 2}, ask_beside_a_thread);
}
