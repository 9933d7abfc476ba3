/* SPDX-License-Identifier: MIT */
/* Threads of the platform (R42, R46): orders, names, signals, stacks, refusal, pinning. */
#include "harness.h"
#include "plat/clock.h"
#include "plat/cpu.h"
#include "plat/thread.h"
#include "refuse_call.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Run fn(arg) on a thread of its own, from start to end. */
static void on_thread(void (*fn)(void *), void *arg, const char *name, size_t stack_bytes)
{
    struct sni_thread t;
    CHECK_EQ(sni_plat_thread_start(&t, fn, arg, name, stack_bytes), 0);
    CHECK_EQ(sni_plat_thread_join(&t), 0);
}

/* ---- a crowd ----------------------------------------------------------------------------- */

static void burn(void *stop)
{
    CHECK_EQ(sni_plat_thread_pin(sni_plat_cpu_nth(0)), 0);
    SNI_ATOMIC(uint32_t) *word = stop;
    while (sni_atomic_load(word, relaxed) == 0) /* relaxed: a flag */
        continue;
}

/* Until a tenth of a second is missing: awake, and not on a processor. */
static void burn_until_robbed(void *stop)
{
    SNI_ATOMIC(uint32_t) *word = stop;
    CHECK_EQ(sni_plat_thread_pin(sni_plat_cpu_nth(0)), 0);
    int64_t cpu_ns = sni_plat_thread_cpu_ns();
    int64_t since_ns = sni_plat_now_ns();
    CHECK_GE(cpu_ns, 0);
    while (sni_plat_now_ns() - since_ns < sni_plat_thread_cpu_ns() - cpu_ns + 100000000)
        continue;
    sni_atomic_store(word, 1, relaxed); /* relaxed: as above */
}

TEST(two_threads_that_want_one_processor_have_less_than_all_of_its_time, .limit_s = 30)
{
    struct sni_thread threads[2];
    static SNI_ATOMIC(uint32_t) stop;
    CHECK_EQ(sni_plat_thread_start(&threads[0], burn, &stop, NULL, 0), 0);
    CHECK_EQ(sni_plat_thread_start(&threads[1], burn_until_robbed, &stop, NULL, 0), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sni_plat_thread_join(&threads[i]), 0);
}

/* ---- a fence in all threads ------------------------------------------------------------ */

TEST(a_fence_in_all_threads_must_be_asked_for_before)
{
    CHECK_EQ(sni_plat_fence_all(), -EPERM);
    CHECK_EQ(sni_plat_fence_all_prepare(false), 0);
    CHECK_EQ(sni_plat_fence_all(), 0);
    CHECK_EQ(sni_plat_fence_all_prepare(false), 0);
}

static void want_a_fence(void *p)
{
    int *results = p;
    results[0] = sni_plat_fence_all_prepare(false);
    results[1] = sni_plat_fence_all_prepare(true);
    results[2] = sni_plat_fence_all_prepare(false); /* it was granted by now */
    results[3] = sni_plat_fence_all();
}

TEST(a_fence_in_all_threads_is_granted_to_one_of_several_if_it_is_patient)
{
    int results[4];
    on_thread(want_a_fence, results, NULL, 0);
    CHECK_EQ(results[0], -EBUSY);
    CHECK_EQ(results[1], 0);
    CHECK_EQ(results[2], 0);
    CHECK_EQ(results[3], 0);
}

TEST(a_fence_in_all_threads_may_be_refused)
{
    refuse_call(SYS_membarrier, ENOSYS);
    CHECK_EQ(sni_plat_fence_all_prepare(true), -ENOSYS);
    CHECK_EQ(sni_plat_fence_all(), -ENOSYS);
}

/* Each stores and then looks at what the other stored, one without a fence: one sees the other. */
static struct {
    SNI_ATOMIC(uint32_t) round; /* which both are in */
    SNI_ATOMIC(uint32_t) mine;
    SNI_ATOMIC(uint32_t) theirs;
    SNI_ATOMIC(uint32_t) seen; /* by the other thread: the round, and whether it saw `mine` */
} meeting;

enum { MEETINGS = 20000 };

static void meet_without_a_fence(void *p)
{
    (void)p;
    for (uint32_t round = 1; round <= MEETINGS; round++) {
        while (sni_atomic_load(&meeting.round, acquire) != round)
            sni_cpu_pause();
        sni_atomic_store(&meeting.theirs, round, relaxed);
        sni_atomic_half_fence();
        bool saw = sni_atomic_load(&meeting.mine, relaxed) == round;
        sni_atomic_store(&meeting.seen, 2 * round + saw, release);
    }
}

TEST(a_fence_in_all_threads_is_one_in_each_of_them)
{
    struct sni_thread other;
    CHECK_EQ(sni_plat_fence_all_prepare(false), 0);
    CHECK_EQ(sni_plat_thread_start(&other, meet_without_a_fence, NULL, NULL, 0), 0);
    for (uint32_t round = 1; round <= MEETINGS; round++) {
        sni_atomic_store(&meeting.round, round, release);
        sni_atomic_store(&meeting.mine, round, relaxed);
        CHECK_EQ(sni_plat_fence_all(), 0);
        bool saw = sni_atomic_load(&meeting.theirs, relaxed) == round;
        uint32_t seen;
        while ((seen = sni_atomic_load(&meeting.seen, acquire)) / 2 != round)
            sni_cpu_pause();
        CHECK(saw || seen % 2 != 0);
    }
    CHECK_EQ(sni_plat_thread_join(&other), 0);
}

/* ---- orders and identity -------------------------------------------------------------- */

static void see_that_it_is_not_alone(void *p)
{
    *(bool *)p = sni_plat_thread_is_alone();
}

TEST(a_thread_that_another_started_is_not_alone)
{
    bool alone = true;
    on_thread(see_that_it_is_not_alone, &alone, NULL, 0);
    CHECK(!alone);
}

static void add_one(void *p)
{
    int *n = p;
    *n += 1;
}

TEST(a_thread_runs_its_function_and_the_join_shows_what_it_wrote)
{
    int n = 41;
    on_thread(add_one, &n, NULL, 0);
    CHECK_EQ(n, 42);
}

TEST(many_threads_run_at_once_and_each_gets_its_own_argument)
{
    enum { THREADS = 16 };
    struct sni_thread threads[THREADS];
    int n[THREADS];
    for (int i = 0; i < THREADS; i++) {
        n[i] = i;
        CHECK_EQ(sni_plat_thread_start(&threads[i], add_one, &n[i], "one of many", 0), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(sni_plat_thread_join(&threads[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(n[i], i + 1);
}

static void note_id(void *p)
{
    *(uint64_t *)p = sni_plat_thread_id();
    sni_plat_thread_yield();
}

TEST(a_thread_has_the_number_that_the_system_knows_it_by)
{
    uint64_t other = 0;
    on_thread(note_id, &other, NULL, 0);
    CHECK_EQ(sni_plat_thread_id(), syscall(SYS_gettid));
    CHECK_NE(other, 0);
    CHECK_NE(other, sni_plat_thread_id());
}

static void note_name(void *p)
{
    CHECK_EQ(prctl(PR_GET_NAME, p), 0);
}

TEST(a_thread_has_the_name_it_was_given_from_its_first_instruction)
{
    char name[SNI_THREAD_NAME_BYTES];
    on_thread(note_name, name, "sinew-worker-12", 0);
    CHECK_STR_EQ(name, "sinew-worker-12");
    on_thread(note_name, name, "s", 0);
    CHECK_STR_EQ(name, "s");
}

TEST(a_name_that_is_too_long_is_cut_to_fifteen_characters)
{
    char name[SNI_THREAD_NAME_BYTES];
    on_thread(note_name, name, "sinew-worker-123456", 0);
    CHECK_STR_EQ(name, "sinew-worker-12");
}

TEST(a_thread_without_a_name_is_called_like_the_one_that_started_it)
{
    char name[SNI_THREAD_NAME_BYTES];
    CHECK_EQ(prctl(PR_SET_NAME, "starter"), 0);
    on_thread(note_name, name, NULL, 0);
    CHECK_STR_EQ(name, "starter");
    on_thread(note_name, name, "", 0);
    CHECK_STR_EQ(name, "starter");
}

#ifdef SINEW_HARNESS_WRAP /* the thread sanitizer forgets a thread before its join is refused */
struct self_join {
    struct sni_thread thread;
    SNI_ATOMIC(int) started;
    int rc;
};

static void join_oneself(void *p)
{
    struct self_join *s = p;
    /* acquire: pairs with the release of the starter, after which the struct is complete */
    while (sni_atomic_load(&s->started, acquire) == 0)
        sni_plat_thread_yield();
    s->rc = sni_plat_thread_join(&s->thread);
}

TEST(a_thread_that_joins_itself_is_told_so)
{
    struct self_join s = {.rc = 0};
    CHECK_EQ(sni_plat_thread_start(&s.thread, join_oneself, &s, NULL, 0), 0);
    /* release: pairs with the acquire in join_oneself */
    sni_atomic_store(&s.started, 1, release);
    CHECK_EQ(sni_plat_thread_join(&s.thread), 0);
    CHECK_EQ(s.rc, -EDEADLK);
}
#endif

/* ---- signals -------------------------------------------------------------------------- */

static void note_mask(void *p)
{
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, p), 0);
}

static bool must_be_open(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP ||
           sig == SIGABRT || sig == SIGSYS || sig == SIGPROF;
}

TEST(a_thread_blocks_all_signals_but_its_own_faults_and_the_profilers)
{
    sigset_t mask;
    on_thread(note_mask, &mask, NULL, 0);
    for (int sig = 1; sig < 32; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP && sigismember(&mask, sig) == must_be_open(sig))
            FAIL("signal %d (%s) is %s", sig, strsignal(sig),
                 must_be_open(sig) ? "blocked" : "open");
    }
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
        CHECK_EQ(sigismember(&mask, sig), 1);
}

TEST(starting_a_thread_leaves_the_signal_mask_of_the_starter_alone)
{
    sigset_t mask;
    sigset_t after;
    CHECK_EQ(sigemptyset(&mask), 0);
    CHECK_EQ(sigaddset(&mask, SIGUSR2), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
    int n = 0;
    on_thread(add_one, &n, NULL, 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int sig = 1; sig < 32; sig++)
        CHECK_EQ(sigismember(&after, sig), sig == SIGUSR2);

    struct sni_thread t; /* nor does one that is refused */
    CHECK_LT(sni_plat_thread_start(&t, add_one, &n, NULL, SIZE_MAX / 4), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int sig = 1; sig < 32; sig++)
        CHECK_EQ(sigismember(&after, sig), sig == SIGUSR2);
}

static volatile sig_atomic_t handled_by;

static void handler(int sig)
{
    (void)sig;
    handled_by = (sig_atomic_t)sni_plat_thread_id();
}

static void signal_the_process(void *p)
{
    (void)p;
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
}

TEST(a_signal_for_the_process_is_handled_by_a_thread_of_the_application)
{
    struct sigaction action = {.sa_handler = handler};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (int i = 0; i < 50; i++) {
        handled_by = 0;
        on_thread(signal_the_process, NULL, NULL, 0);
        while (handled_by == 0)
            sni_plat_thread_yield();
        CHECK_EQ(handled_by, sni_plat_thread_id());
    }
}

/* ---- stacks, and when there are no more ------------------------------------------------ */

static void note_stack(void *p)
{
    pthread_attr_t attr;
    CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
    CHECK_EQ(pthread_attr_getstacksize(&attr, p), 0);
    CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

TEST(a_thread_gets_at_least_the_stack_it_asked_for)
{
    static const size_t sizes[] = {1, 4096, 65536, 100001, 1 << 20, (32 << 20) + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t got = 0;
        on_thread(note_stack, &got, NULL, sizes[i]);
        CHECK_GE(got, sizes[i]);
    }
}

struct stander {
    SNI_ATOMIC(uintptr_t) sp;
    SNI_ATOMIC(uint32_t) may_go;
    uintptr_t own_low;
};

static void stand(void *arg)
{
    struct stander *s = arg;
    CHECK_EQ(sni_plat_thread_stack(NULL, &s->own_low), 0);
    sni_atomic_store(&s->sp, (uintptr_t)__builtin_frame_address(0), release); /* to the other */
    while (sni_atomic_load(&s->may_go, acquire) == 0)
        sni_plat_thread_yield();
}

TEST(where_the_stack_of_a_thread_begins_it_knows_itself_and_others_do)
{
    enum { STACK_BYTES = 256 << 10 };
    struct stander s = {.own_low = 0};
    struct sni_thread t;
    uintptr_t low = 0, mine = 0, sp;
    CHECK_EQ(sni_plat_thread_start(&t, stand, &s, NULL, STACK_BYTES), 0);
    while ((sp = sni_atomic_load(&s.sp, acquire)) == 0)
        sni_plat_thread_yield();
    CHECK_EQ(sni_plat_thread_stack(&t, &low), 0);
    CHECK_EQ(sni_plat_thread_stack(NULL, &mine), 0);
    sni_atomic_store(&s.may_go, 1, release);
    CHECK_EQ(sni_plat_thread_join(&t), 0);
    CHECK_EQ(low, s.own_low);
    CHECK(low < sp && sp - low < 2 * STACK_BYTES);
    CHECK(mine < (uintptr_t)__builtin_frame_address(0) && mine != low);
}

TEST(a_thread_whose_stack_cannot_be_had_is_refused_and_nothing_stays)
{
    static const size_t sizes[] = {SIZE_MAX / 4, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX};
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct sni_thread t;
            int n = 0;
            int rc = sni_plat_thread_start(&t, add_one, &n, "never", sizes[i]);
            CHECK(rc == -EAGAIN || rc == -ENOMEM);
            CHECK_EQ(n, 0);
        }
    }
}

#ifdef SINEW_HARNESS_WRAP /* sanitizers need all of the address space */
struct crowd {
    SNI_ATOMIC(uint32_t) open;
};

static void wait_until_open(void *p)
{
    struct crowd *c = p;
    /* acquire: pairs with the release of whoever opens */
    while (sni_atomic_load(&c->open, acquire) == 0)
        (void)sni_plat_park(&c->open.raw_, 0, INT64_MAX);
}

static long address_space_pages(void)
{
    char *statm = read_file("/proc/self/statm");
    long pages = strtol(statm, NULL, 10);
    free(statm);
    return pages;
}

/* As many threads as the address space allows, and then their end. How many. */
static int fill_with_threads(struct crowd *c, struct sni_thread *threads, int threads_max)
{
    int started = 0;
    int rc = 0;
    while (rc == 0 && started < threads_max) {
        rc = sni_plat_thread_start(&threads[started], wait_until_open, c, "crowd", 8 << 20);
        started += rc == 0;
    }
    CHECK(rc == -EAGAIN || rc == -ENOMEM);
    /* release: pairs with the acquire in wait_until_open */
    sni_atomic_store(&c->open, 1, release);
    sni_plat_unpark(&c->open.raw_, INT32_MAX);
    for (int i = 0; i < started; i++)
        CHECK_EQ(sni_plat_thread_join(&threads[i]), 0);
    return started;
}

TEST(when_the_system_has_no_room_for_a_thread_the_others_go_on_and_room_comes_back)
{
    enum { THREADS_MAX = 200 };
    static struct sni_thread threads[THREADS_MAX];
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = (rlim_t)address_space_pages() * (rlim_t)sysconf(_SC_PAGESIZE) + (128 << 20);
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    int first = fill_with_threads(&(struct crowd){{0}}, threads, THREADS_MAX);
    int second = fill_with_threads(&(struct crowd){{0}}, threads, THREADS_MAX);
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_GT(first, 2);
    CHECK_EQ(second, first);
}
#endif

/* ---- pinning (R46) -------------------------------------------------------------------- */

static void pin_and_look(void *p)
{
    int cpu = *(int *)p;
    CHECK_EQ(sni_plat_thread_pin(cpu), 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(sched_getcpu(), cpu);
        sni_plat_thread_yield();
    }
    CHECK_EQ(sni_plat_cpu_nth(0), cpu);
    CHECK_EQ(sni_plat_cpu_nth(1), -ENOENT);
}

TEST(a_pinned_thread_stays_on_its_processor_and_the_others_do_not_care)
{
    for (int i = 0, cpu = sni_plat_cpu_nth(0); cpu >= 0; cpu = sni_plat_cpu_nth(++i))
        on_thread(pin_and_look, &cpu, NULL, 0);
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    CHECK_EQ(sni_plat_cpu_nth(CPU_COUNT(&set)), -ENOENT);
    CHECK_GE(sni_plat_cpu_nth(CPU_COUNT(&set) - 1), 0);
}

TEST(pinning_to_a_processor_that_is_not_there_is_refused)
{
    static const int cpus[] = {-1, INT32_MIN, 8191, 8192, INT32_MAX};
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
        CHECK_EQ(sni_plat_thread_pin(cpus[i]), -EINVAL);
}
