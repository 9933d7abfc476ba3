/* SPDX-License-Identifier: MIT */
/* Of the tasks that nobody can wake any more it is told who waits for whom, and which of them wait
 * for each other in a cycle (R160): at channels, semaphores, locks, for tasks and for groups. */
#include "unit/observe/leaking.h"
#include "unit/observe/said.h"

enum { FOUND_MAX = 12, CROWD = 1000 };

struct found {
    int n;
    char text[256]; /* "a:1 b:1 c:0 ": names and cycles, as they are told */
    sn_stuck tasks[FOUND_MAX];
};

static void note(const sn_stuck *task, void *arg)
{
    struct found *found = arg;
    CHECK(found->n < FOUND_MAX);
    found->tasks[found->n++] = *task;
    size_t length = strlen(found->text);
    snprintf(found->text + length, sizeof(found->text) - length, "%s:%u ", task->name, task->cycle);
}

/* What `found` held before is forgotten first: it may be a handle that somebody waits at. */
static void find(struct found *found)
{
    *found = (struct found){.n = 0};
    CHECK_EQ(sn_sleep(SN_MS(20)), 0);
    int rc = sn_leaks(NULL, note, found);
    CHECK_EQ(rc, found->n);
}

/* These are leaked now, in these cycles. As in test_leaks.c one build answers for that they are
 * found: others keep words for too long. True if they were. */
static bool check_found(struct found *found, const char *text)
{
    enum { TRIES = 50 };
    for (int i = 0; i < TRIES; i++) {
        find(found);
        if (strcmp(found->text, text) == 0)
            return true;
        if (!LEAKS_ARE_EXACT)
            return false;
    }
    CHECK_STR_EQ(found->text, text);
    return false;
}

/* So many are leaked, in one cycle; in any order, as different tasks have spawned them. */
static bool check_all_in_one_cycle(struct found *found, int n)
{
    enum { TRIES = 50 };
    for (int i = 0; i < TRIES; i++) {
        find(found);
        if (found->n == n && found->tasks[0].cycle == 1 && found->tasks[n - 1].cycle == 1)
            return true;
        if (!LEAKS_ARE_EXACT)
            return false;
    }
    FAIL("found were: %s", found->text);
}

static const sn_stuck *named(const struct found *found, const char *name)
{
    for (int i = 0; i < found->n; i++)
        if (strcmp(found->tasks[i].name, name) == 0)
            return &found->tasks[i];
    FAIL("no task \"%s\" was found", name);
}

/* `who`, and nobody else, could have ended the wait. */
static void check_owner(const struct found *found, const char *name, const char *who)
{
    CHECK_EQ(named(found, name)->owner, named(found, who)->id);
    CHECK_EQ(named(found, name)->owners, 1);
}

/* --- leaving them behind --- */

static int begun;
static bool has_left;

static void has_begun(void)
{
    __atomic_fetch_add(&begun, 1, __ATOMIC_ACQ_REL);
}

/* So many have begun. Who leaves before gives its stack to one of them, with all that it knew. */
static void until_begun(int n)
{
    while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) < n)
        sn_yield();
}

static int leave_them(void *arg)
{
    int rc = (*(sn_task_fn **)arg)(NULL);
    __atomic_store_n(&has_left, true, __ATOMIC_RELEASE);
    return rc;
}

/* Run the function in a task of its own, and do not join it: that might run it on our stack. */
static void leave(sn_task_fn *fn)
{
    begun = 0;
    has_left = false;
    CHECK_EQ(sn_spawn_detached(leave_them, (void *)&fn, .copy_bytes = sizeof(sn_task_fn *)), 0);
    while (!__atomic_load_n(&has_left, __ATOMIC_ACQUIRE))
        CHECK_EQ(sn_sleep(SN_MS(1)), 0);
}

/* --- channels --- */

struct ends {
    sn_chan *mine, *other, *third;
};

/* Waits at its own channel, and would close the others. */
static int keep_others(void *arg)
{
    struct ends *ends = arg;
    has_begun();
    int rc = recv_from(ends->mine);
    if (rc == 0)
        rc = sn_chan_close(ends->other);
    return rc == 0 && ends->third != NULL ? sn_chan_close(ends->third) : rc;
}

static void spawn_ends(const char *name, sn_chan *mine, sn_chan *other, sn_chan *third)
{
    struct ends ends = {mine, other, third};
    CHECK_EQ(sn_spawn_detached(keep_others, &ends, .name = name, .copy_bytes = sizeof(struct ends)),
             0);
}

static sn_chan *volatile kept;

static int leave_a_ring(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel();
    kept = a;
    spawn_ends("one", a, b, NULL);
    spawn_ends("two", b, a, NULL);
    until_begun(2);
    return 0;
}

LEAK_TEST(two_that_each_wait_at_the_others_channel_are_a_cycle)
{
    struct found found;
    leave(leave_a_ring);
    kept = NULL;
    if (check_found(&found, "one:1 two:1 ")) {
        check_owner(&found, "one", "two");
        check_owner(&found, "two", "one");
        CHECK_STR_EQ(found.tasks[0].waits, "recv");
        CHECK_STR_HAS(found.tasks[0].at, "test_knots.c:");
    }
    return 0;
}

LEAK_TEST(nothing_is_said_of_a_ring_as_long_as_somebody_else_has_a_handle)
{
    struct found found;
    leave(leave_a_ring);
    find(&found);
    CHECK_EQ(found.n, 0);
    kept = NULL;
    (void)check_found(&found, "one:1 two:1 ");
    return 0;
}

static int leave_two_rings(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel(), *c = channel(), *d = channel();
    spawn_ends("one", a, b, NULL);
    spawn_ends("three", c, d, NULL);
    spawn_ends("two", b, a, NULL);
    spawn_ends("four", d, c, NULL);
    until_begun(4);
    return 0;
}

LEAK_TEST(two_cycles_have_two_numbers_and_are_told_one_after_the_other)
{
    struct found found;
    leave(leave_two_rings);
    if (check_found(&found, "one:1 two:1 three:2 four:2 ")) {
        check_owner(&found, "one", "two");
        check_owner(&found, "four", "three");
    }
    return 0;
}

/* "waiter" is spawned first, waits for "one", and told last. */
static int leave_a_ring_and_one_who_waits(void *arg)
{
    (void)arg;
    sn_chan *a = channel(), *b = channel(), *c = channel();
    spawn_ends("waiter", c, c, NULL);
    spawn_ends("one", a, b, c);
    spawn_ends("two", b, a, NULL);
    until_begun(3);
    return 0;
}

LEAK_TEST(who_waits_for_a_cycle_is_not_in_it)
{
    struct found found;
    leave(leave_a_ring_and_one_who_waits);
    if (check_found(&found, "one:1 two:1 waiter:0 "))
        check_owner(&found, "waiter", "one");
    return 0;
}

static int recv_from_own(void *arg)
{
    (void)arg;
    return recv_from(channel());
}

LEAK_TEST(who_waits_at_what_it_alone_has_is_a_cycle_of_its_own)
{
    struct found found;
    begin(recv_from_own, "alone");
    if (check_found(&found, "alone:1 "))
        check_owner(&found, "alone", "alone");
    return 0;
}

/* The two who receive have the channel, too; but it is the third that they wait for. */
static int leave_receivers(void *arg)
{
    (void)arg;
    sn_chan *jobs = channel(), *own = channel();
    spawn_ends("left", jobs, jobs, NULL);
    spawn_ends("right", jobs, jobs, NULL);
    spawn_ends("sender", own, jobs, NULL);
    until_begun(3);
    return 0;
}

LEAK_TEST(those_who_receive_wait_for_who_would_send_and_not_for_each_other)
{
    struct found found;
    leave(leave_receivers);
    if (check_found(&found, "sender:1 left:0 right:0 ")) {
        check_owner(&found, "left", "sender");
        check_owner(&found, "right", "sender");
    }
    return 0;
}

static int leave_receivers_alone(void *arg)
{
    (void)arg;
    sn_chan *jobs = channel();
    spawn_ends("left", jobs, jobs, NULL);
    spawn_ends("right", jobs, jobs, NULL);
    until_begun(2);
    return 0;
}

LEAK_TEST(if_only_those_who_receive_are_left_they_are_a_cycle)
{
    struct found found;
    leave(leave_receivers_alone);
    if (check_found(&found, "left:1 right:1 ")) {
        CHECK_EQ(found.tasks[0].owner, 0);
        CHECK_EQ(found.tasks[0].owners, 2);
    }
    return 0;
}

static int select_two(void *arg)
{
    struct ends *ends = arg;
    has_begun();
    sn_chan *value;
    sn_case cases[] = {sn_case_recv(ends->mine, &value), sn_case_recv(ends->other, &value)};
    return sn_select(cases, 2, 0, SN_FOREVER);
}

/* One case only it has itself, the other somebody who waits for ever: it is no cycle. */
static int leave_select(void *arg)
{
    (void)arg;
    struct ends ends = {channel(), channel(), NULL};
    CHECK_EQ(sn_spawn_detached(select_two, &ends, .name = "selects", .copy_bytes = sizeof(ends)),
             0);
    spawn_ends("other", channel(), ends.other, NULL);
    until_begun(2);
    return 0;
}

LEAK_TEST(a_select_waits_for_all_who_have_one_of_its_cases)
{
    struct found found;
    leave(leave_select);
    if (check_found(&found, "other:1 selects:0 ")) {
        CHECK_EQ(named(&found, "selects")->owner, 0);
        CHECK(named(&found, "selects")->owners > 1);
        CHECK_STR_EQ(named(&found, "selects")->waits, "select");
    }
    return 0;
}

/* Who selects may be woken elsewhere, and then send: it is one who can help. */
static int leave_one_who_waits_for_a_select(void *arg)
{
    (void)arg;
    struct ends ends = {channel(), channel(), NULL};
    spawn_ends("other", channel(), ends.mine, NULL);
    spawn_ends("waiter", ends.other, ends.other, NULL);
    CHECK_EQ(sn_spawn_detached(select_two, &ends, .name = "selects", .copy_bytes = sizeof(ends)),
             0);
    until_begun(3);
    return 0;
}

LEAK_TEST(who_waits_where_another_selects_waits_for_that_one)
{
    struct found found;
    leave(leave_one_who_waits_for_a_select);
    if (check_found(&found, "other:1 waiter:0 selects:0 "))
        check_owner(&found, "waiter", "selects");
    return 0;
}

/* --- what lies on stacks --- */

static struct {
    sn_sem *volatile of[3];
    int shown, taken;
} sems;

/* All three are there. They do not wait for it: that would leave pointers to each other behind. */
static void meet(int *count)
{
    __atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < 3)
        sn_yield();
}

static int acquire_next(void *arg)
{
    int me = *(int *)arg;
    sn_sem mine = SN_SEM_INIT(0);
    has_begun();
    sems.of[me] = &mine;
    meet(&sems.shown);
    sn_sem *next = sems.of[(me + 1) % 3];
    meet(&sems.taken);
    sems.of[me] = NULL;
    int rc = sn_sem_acquire(next, 1, SN_FOREVER);
    return rc == 0 ? sn_sem_release(&mine, 1) : rc;
}

static int leave_semaphores(void *arg)
{
    static const char *const names[] = {"one", "two", "three"};
    (void)arg;
    sems.shown = sems.taken = 0;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_spawn_detached(acquire_next, &i, .name = names[i], .copy_bytes = sizeof(i)), 0);
    until_begun(3);
    return 0;
}

LEAK_TEST(semaphores_on_stacks_of_tasks_that_wait_for_each_other_make_a_cycle)
{
    struct found found;
    leave(leave_semaphores);
    if (check_found(&found, "one:1 two:1 three:1 ")) {
        CHECK_STR_EQ(found.tasks[0].waits, "semaphore");
        check_owner(&found, "one", "two");
        check_owner(&found, "two", "three");
        check_owner(&found, "three", "one");
    }
    return 0;
}

static int wait_at_copied_event(void *arg)
{
    has_begun();
    return sn_event_wait(arg, SN_FOREVER);
}

static int leave_copied_event(void *arg)
{
    (void)arg;
    sn_event event = SN_EVENT_INIT;
    CHECK_EQ(sn_spawn_detached(wait_at_copied_event, &event, .name = "copied",
                               .copy_bytes = sizeof(event)),
             0);
    until_begun(1);
    return 0;
}

LEAK_TEST(what_was_copied_for_a_task_is_its_own)
{
    struct found found;
    leave(leave_copied_event);
    if (check_found(&found, "copied:1 "))
        check_owner(&found, "copied", "copied");
    return 0;
}

/* --- all of these --- */

static struct {
    sn_mutex mutex;
    bool is_locked, has_parent;
} mixed;

static bool is_so(bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void make_so(bool *flag)
{
    __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* Has the mutex, and waits at a semaphore on the stack of the next. */
static int lock_and_acquire(void *arg)
{
    sn_sem *sem = *(sn_sem **)arg;
    CHECK_EQ(sn_mutex_lock(&mixed.mutex, SN_FOREVER), 0);
    make_so(&mixed.is_locked);
    int rc = sn_sem_acquire(sem, 1, SN_FOREVER);
    CHECK_EQ(sn_mutex_unlock(&mixed.mutex), 0);
    return rc;
}

/* Has the semaphore, and waits at a channel that the next has. */
static int begin_and_recv(void *arg)
{
    sn_chan *ch = *(sn_chan **)arg;
    sn_sem sem = SN_SEM_INIT(0), *at = &sem;
    size_t bytes = sizeof(at);
    CHECK_EQ(sn_spawn_detached(lock_and_acquire, (void *)&at, .name = "locks", .copy_bytes = bytes),
             0);
    int rc = recv_from(ch);
    return rc == 0 ? sn_sem_release(&sem, 1) : rc;
}

static int want_the_mutex(void *arg)
{
    (void)arg;
    has_begun();
    int rc = sn_mutex_lock(&mixed.mutex, SN_FOREVER);
    return rc == 0 ? sn_mutex_unlock(&mixed.mutex) : rc;
}

/* Has a child, which wants the mutex. */
static int have_a_child(void *arg)
{
    (void)arg;
    int rc = 0;
    make_so(&mixed.has_parent);
    SN_SCOPE(g, .result = &rc) {
        CHECK_EQ(sn_group_spawn(g, want_the_mutex, NULL, .name = "child"), 0);
    }
    return rc;
}

/* Has the channel, and joins that one: not before it has begun, or it would do its work. */
static int join_a_parent(void *arg)
{
    sn_chan *ch = *(sn_chan **)arg;
    sn_task *t = sn_spawn(have_a_child, NULL, .name = "parent");
    while (!is_so(&mixed.has_parent))
        sn_yield();
    int rc = sn_join(t, NULL);
    return rc == 0 ? sn_chan_close(ch) : rc;
}

static int leave_mixed(void *arg)
{
    (void)arg;
    sn_chan *ch = channel();
    size_t bytes = sizeof(ch);
    mixed.mutex = (sn_mutex)SN_MUTEX_INIT;
    mixed.is_locked = mixed.has_parent = false;
    CHECK_EQ(sn_spawn_detached(begin_and_recv, &ch, .name = "receives", .copy_bytes = bytes), 0);
    while (!is_so(&mixed.is_locked))
        sn_yield();
    CHECK_EQ(sn_spawn_detached(join_a_parent, &ch, .name = "joins", .copy_bytes = bytes), 0);
    until_begun(1);
    return 0;
}

LEAK_TEST(a_cycle_may_be_of_semaphore_channel_join_group_and_mutex)
{
    struct found found;
    leave(leave_mixed);
    if (check_all_in_one_cycle(&found, 5)) {
        CHECK_STR_EQ(named(&found, "locks")->waits, "semaphore");
        CHECK_STR_EQ(named(&found, "receives")->waits, "recv");
        CHECK_STR_EQ(named(&found, "joins")->waits, "join");
        CHECK_STR_EQ(named(&found, "parent")->waits, "group");
        CHECK_STR_EQ(named(&found, "child")->waits, "mutex");
        check_owner(&found, "locks", "receives");
        check_owner(&found, "receives", "joins");
        check_owner(&found, "joins", "parent");
        check_owner(&found, "parent", "child");
        check_owner(&found, "child", "locks");
    }
    return 0;
}

/* --- in words --- */

static int print_until_found(void *arg)
{
    sn_task_fn *fn = (sn_task_fn *)(uintptr_t)arg;
    leave(fn);
    kept = NULL;
    int n = 0;
    for (int i = 0; i < (LEAKS_ARE_EXACT ? 50 : 1) && n == 0; i++) {
        CHECK_EQ(sn_sleep(SN_MS(20)), 0);
        n = sn_leaks(NULL, NULL, NULL);
    }
    return n;
}

static int print_it(void *arg)
{
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true}), 0);
    int n = sn_runtime_block_on(rt, print_until_found, arg);
    (void)sn_runtime_shutdown(rt, SN_NOWAIT);
    sn_runtime_destroy(rt);
    return n;
}

static struct said words_about(sn_task_fn *fn)
{
    return listen_to(print_it, (void *)(uintptr_t)fn);
}

TEST(it_is_printed_who_has_the_other_end_and_which_are_a_cycle)
{
    struct said said = words_about(leave_a_ring_and_one_who_waits);
    if (LEAKS_ARE_EXACT) {
        CHECK_EQ(said.result, 3);
        CHECK_STR_HAS(said.text, "sinew: leak: tasks that nobody can wake any more (3):\n"
                                 "sinew:  cycle 1:\n");
        CHECK_STR_HAS(said.text, "\"one\", spawned at ");
        CHECK_STR_HAS(said.text, ", which task 4 \"one\" has\nsinew:  in no cycle:\n");
        CHECK_STR_HAS(said.text, ", which task 5 \"two\" has\n");
        CHECK_EQ(times(said.text, "waits to receive from channel 0x"), 3);
    }
    free(said.text);
    said = words_about(leave_receivers_alone);
    if (LEAKS_ARE_EXACT)
        CHECK_EQ(times(said.text, "\"left\" and task 4 \"right\" have\n"), 2);
    free(said.text);
}

static int leave_a_crowd(void *arg)
{
    (void)arg;
    sn_chan *jobs = channel();
    for (int i = 0; i < CROWD; i++)
        spawn_ends("one of many", jobs, jobs, NULL);
    until_begun(CROWD);
    return 0;
}

TEST(of_many_who_have_something_some_are_named_and_the_others_counted)
{
    struct said said = words_about(leave_a_crowd);
    if (LEAKS_ARE_EXACT) {
        CHECK_EQ(said.result, CROWD);
        CHECK_EQ(times(said.text, "\"one of many\" and 996 more have\n"), CROWD);
        CHECK_EQ(times(said.text, "cycle 1:\n"), 1);
        CHECK_EQ(times(said.text, "cycle 2:\n"), 0);
    }
    free(said.text);
}
