/* SPDX-License-Identifier: MIT */
/* Parking, and the mutex made of it (R43): no lost wake-up, no busy polling, exact deadlines, and
 * no signal that shows. */
#include "harness.h"
#include "plat/clock.h"
#include "plat/thread.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS(n) ((int64_t)(n) * 1000000)

struct word {
    SNI_ATOMIC(uint32_t) value;
};

static uint32_t word_get(struct word *w)
{
    /* acquire: pairs with the release in word_set */
    return sni_atomic_load(&w->value, acquire);
}

static void word_set(struct word *w, uint32_t value)
{
    /* release: pairs with the acquire in word_get */
    sni_atomic_store(&w->value, value, release);
}

static void word_wait_while(struct word *w, uint32_t value)
{
    while (word_get(w) == value)
        CHECK_EQ(sni_plat_park(&w->value.raw_, value, INT64_MAX), 0);
}

/* Wait until the kernel says that the thread sleeps. */
static void wait_until_asleep(struct word *tid)
{
    char path[64];
    char state = 0;
    word_wait_while(tid, 0);
    (void)snprintf(path, sizeof(path), "/proc/self/task/%u/stat", word_get(tid));
    while (state != 'S') {
        char *stat = read_file(path);
        state = strrchr(stat, ')')[2];
        free(stat);
        sni_plat_thread_yield();
    }
}

static void tell_tid(struct word *tid)
{
    word_set(tid, (uint32_t)sni_plat_thread_id());
    sni_plat_unpark(&tid->value.raw_, 1);
}

static int64_t thread_cpu_ns(void)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- values and deadlines -------------------------------------------------------------- */

TEST(parking_on_a_word_that_differs_returns_at_once_whatever_the_deadline)
{
    static const int64_t untils[] = {INT64_MIN, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    struct word w = {{7}};
    for (size_t i = 0; i < sizeof(untils) / sizeof(untils[0]); i++)
        CHECK_EQ(sni_plat_park(&w.value.raw_, 8, untils[i]), 0);
}

TEST(a_deadline_that_has_passed_does_not_sleep)
{
    int64_t begin = sni_plat_now_ns();
    const int64_t untils[] = {INT64_MIN, -1000000001, -1, 0, 1, 999999999, 1000000000, begin - 1};
    struct word w = {{7}};
    for (size_t i = 0; i < sizeof(untils) / sizeof(untils[0]); i++)
        CHECK_EQ(sni_plat_park(&w.value.raw_, 7, untils[i]), -ETIMEDOUT);
    CHECK_LT(sni_plat_now_ns() - begin, MS(10000));
}

TEST(a_deadline_is_absolute_and_never_early)
{
    struct word w = {{0}};
    for (int i = 0; i < 20; i++) {
        int64_t until = sni_plat_now_ns() + MS(i) / 4;
        CHECK_EQ(sni_plat_park(&w.value.raw_, 0, until), -ETIMEDOUT);
        CHECK_GE(sni_plat_now_ns(), until);
    }
    int64_t until = sni_plat_now_ns() + MS(30);
    CHECK_EQ(sni_plat_park(&w.value.raw_, 0, until), -ETIMEDOUT);
    CHECK_EQ(sni_plat_park(&w.value.raw_, 0, until), -ETIMEDOUT); /* the second is free */
    CHECK_LT(sni_plat_now_ns() - until, MS(10000));
}

TEST(a_parked_thread_uses_no_processor)
{
    struct word w = {{0}};
    struct rusage before;
    struct rusage after;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &before), 0);
    int64_t cpu = thread_cpu_ns();
    CHECK_EQ(sni_plat_park(&w.value.raw_, 0, sni_plat_now_ns() + MS(200)), -ETIMEDOUT);
    CHECK_LT(thread_cpu_ns() - cpu, MS(10));
    CHECK_EQ(getrusage(RUSAGE_THREAD, &after), 0);
    CHECK_LE(after.ru_nvcsw - before.ru_nvcsw, 3);
}

/* ---- between threads ------------------------------------------------------------------- */

struct sleeper {
    struct sni_thread thread;
    struct word *word;
    struct word tid;
    struct word woken;
    int64_t until_ns;
};

static void sleep_once(void *p)
{
    struct sleeper *s = p;
    tell_tid(&s->tid);
    CHECK_EQ(sni_plat_park(&s->word->value.raw_, 0, s->until_ns), 0);
    word_set(&s->woken, 1);
}

static void sleeper_start(struct sleeper *s, struct word *word, int64_t until_ns)
{
    *s = (struct sleeper){.word = word, .until_ns = until_ns};
    CHECK_EQ(sni_plat_thread_start(&s->thread, sleep_once, s, "sleeper", 0), 0);
}

TEST(an_unpark_ends_a_sleep_that_has_no_end_or_a_far_one)
{
    static const int64_t untils[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2};
    for (size_t i = 0; i < sizeof(untils) / sizeof(untils[0]); i++) {
        struct word w = {{0}};
        struct sleeper s;
        sleeper_start(&s, &w, untils[i]);
        wait_until_asleep(&s.tid);
        CHECK_EQ(word_get(&s.woken), 0);
        word_set(&w, 1);
        sni_plat_unpark(&w.value.raw_, 1);
        CHECK_EQ(sni_plat_thread_join(&s.thread), 0);
    }
}

static int woken_of(struct sleeper *s, int n)
{
    int woken = 0;
    for (int i = 0; i < n; i++)
        woken += word_get(&s[i].woken) != 0;
    return woken;
}

/* Wait for `n` to wake, and a little longer for one too many. */
static void expect_woken(struct sleeper *s, int sleepers, int n)
{
    struct word w = {{0}};
    while (woken_of(s, sleepers) < n)
        sni_plat_thread_yield();
    CHECK_EQ(sni_plat_park(&w.value.raw_, 0, sni_plat_now_ns() + MS(20)), -ETIMEDOUT);
    CHECK_EQ(woken_of(s, sleepers), n);
}

TEST(an_unpark_wakes_as_many_as_it_was_told_and_no_others)
{
    enum { SLEEPERS = 6 };
    struct word w = {{0}};
    struct word other = {{0}};
    struct sleeper s[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++)
        sleeper_start(&s[i], &w, INT64_MAX);
    for (int i = 0; i < SLEEPERS; i++)
        wait_until_asleep(&s[i].tid);
    sni_plat_unpark(&other.value.raw_, INT_MAX);
    expect_woken(s, SLEEPERS, 0);
    sni_plat_unpark(&w.value.raw_, 1);
    expect_woken(s, SLEEPERS, 1);
    sni_plat_unpark(&w.value.raw_, 2);
    expect_woken(s, SLEEPERS, 3);
    sni_plat_unpark(&w.value.raw_, INT_MAX);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(sni_plat_thread_join(&s[i].thread), 0);
}

TEST(an_unpark_of_memory_that_is_gone_does_no_harm)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(word != MAP_FAILED);
    CHECK_EQ(munmap(word, page), 0);
    sni_plat_unpark(word, INT_MAX);
}

/* A token per round goes to and fro; a lost wake-up would stop both. */
enum { ROUNDS = 5000 };

static void ping_pong(void *p)
{
    struct word *ball = p;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        word_wait_while(ball, 2 * i);
        word_set(ball, 2 * i + 2);
        sni_plat_unpark(&ball->value.raw_, 1);
    }
}

TEST(a_word_goes_to_and_fro_between_two_threads_without_a_lost_wake_up)
{
    struct word ball = {{0}};
    struct sni_thread t;
    CHECK_EQ(sni_plat_thread_start(&t, ping_pong, &ball, "pong", 0), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        word_set(&ball, 2 * i + 1);
        sni_plat_unpark(&ball.value.raw_, 1);
        word_wait_while(&ball, 2 * i + 1);
    }
    CHECK_EQ(sni_plat_thread_join(&t), 0);
    CHECK_EQ(word_get(&ball), 2 * ROUNDS);
}

/* The thread parker's pattern: EMPTY, TOKEN or PARKED; the waker pays a system call only for
 * PARKED. Many wakers, one sleeper, each wake answered. */
enum { EMPTY, TOKEN, PARKED };
enum { WAKERS = 3, WAKES = 3000 };

struct parker {
    SNI_ATOMIC(uint32_t) state;
    SNI_ATOMIC(uint32_t) wanted; /* asked for, all wakers */
    SNI_ATOMIC(uint32_t) syscalls;
};

static void parker_wake(struct parker *p)
{
    /* release: pairs with the acquire in parker_wait */
    if (sni_atomic_exchange(&p->state, TOKEN, release) == PARKED) {
        sni_plat_unpark(&p->state.raw_, 1);
        sni_atomic_fetch_add(&p->syscalls, 1, relaxed); /* pairs with nothing: a number */
    }
}

static void parker_wait(struct parker *p)
{
    uint32_t found = EMPTY;
    /* acquire: pairs with the release in parker_wake, here and below */
    if (sni_atomic_cas(&p->state, &found, PARKED, acquire, acquire))
        while (sni_atomic_load(&p->state, acquire) == PARKED)
            CHECK_EQ(sni_plat_park(&p->state.raw_, PARKED, INT64_MAX), 0);
    sni_atomic_exchange(&p->state, EMPTY, acquire); /* pairs with parker_wake */
}

static void wake_often(void *arg)
{
    struct parker *p = arg;
    for (int i = 0; i < WAKES; i++) {
        sni_atomic_fetch_add(&p->wanted, 1, relaxed); /* published by the wake's release */
        parker_wake(p);
        if (i % 64 == 0)
            sni_plat_thread_yield();
    }
}

TEST(every_token_reaches_a_sleeper_that_many_threads_wake)
{
    struct parker p = {{EMPTY}, {0}, {0}};
    struct sni_thread threads[WAKERS];
    for (int i = 0; i < WAKERS; i++)
        CHECK_EQ(sni_plat_thread_start(&threads[i], wake_often, &p, "waker", 0), 0);
    uint32_t seen = 0;
    while (seen < WAKERS * WAKES) {
        parker_wait(&p);
        seen = sni_atomic_load(&p.wanted, relaxed); /* acquired by the wait */
    }
    for (int i = 0; i < WAKERS; i++)
        CHECK_EQ(sni_plat_thread_join(&threads[i]), 0);
    CHECK_LE(p.syscalls.raw_, WAKERS * WAKES);
}

/* ---- signals --------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
    (void)sig;
    signals = signals + 1;
}

struct storm {
    struct word stop;
    pid_t target;
};

static void make_storm(void *p)
{
    struct storm *s = p;
    while (word_get(&s->stop) == 0) {
        CHECK_EQ(syscall(SYS_tgkill, getpid(), s->target, SIGUSR1), 0);
        sni_plat_thread_yield();
    }
}

TEST(a_storm_of_signals_neither_ends_a_sleep_nor_moves_its_deadline)
{
    struct sigaction action = {.sa_handler = count_signal}; /* without SA_RESTART */
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    struct storm storm = {.target = (pid_t)sni_plat_thread_id()};
    struct sni_thread t;
    CHECK_EQ(sni_plat_thread_start(&t, make_storm, &storm, "storm", 0), 0);

    struct word w = {{0}};
    do { /* on a busy machine a storm is a breeze, or has not begun */
        int64_t begin = sni_plat_now_ns();
        CHECK_EQ(sni_plat_park(&w.value.raw_, 0, begin + MS(200)), -ETIMEDOUT);
        CHECK_GE(sni_plat_now_ns(), begin + MS(200));
        CHECK_LT(sni_plat_now_ns(), begin + MS(10000));
    } while (signals < 2);
    word_set(&storm.stop, 1);
    CHECK_EQ(sni_plat_thread_join(&t), 0);
}

static struct word from_handler;

static void set_in_handler(int sig)
{
    (void)sig;
    word_set(&from_handler, 1);
}

TEST(a_handler_that_changes_the_word_ends_the_sleep_without_an_unpark)
{
    struct sigaction action = {.sa_handler = set_in_handler};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(alarm(1), 0);
    CHECK_EQ(sni_plat_park(&from_handler.value.raw_, 0, INT64_MAX), 0);
    CHECK_EQ(word_get(&from_handler), 1);
}

/* ---- the mutex ------------------------------------------------------------------------- */

TEST(a_zeroed_mutex_is_free_and_a_held_one_is_not_to_be_had)
{
    struct sni_mutex m = {{0}};
    _Static_assert(sizeof(m) == 4, "a mutex is a word");
    CHECK(sni_mutex_trylock(&m));
    CHECK(!sni_mutex_trylock(&m));
    sni_mutex_unlock(&m);
    sni_mutex_lock(&m);
    CHECK(!sni_mutex_trylock(&m));
    sni_mutex_unlock(&m);
    struct sni_mutex n = SNI_MUTEX_INIT;
    CHECK(sni_mutex_trylock(&n));
    sni_mutex_unlock(&n);
}

enum { LOCKERS = 4 };

struct contested {
    struct sni_mutex mutex;
    int inside;     /* these: guarded by mutex */
    uint64_t count; /* plain, so that the thread sanitizer judges too */
    int rounds;
    int64_t hold_ns;
    bool by_trylock;
};

static void take(struct contested *c)
{
    if (!c->by_trylock) {
        sni_mutex_lock(&c->mutex);
        return;
    }
    while (!sni_mutex_trylock(&c->mutex))
        sni_plat_thread_yield();
}

static void contend(void *p)
{
    struct contested *c = p;
    for (int i = 0; i < c->rounds; i++) {
        take(c);
        CHECK_EQ(c->inside++, 0);
        c->count++;
        if (c->hold_ns > 0) {
            uint32_t never = 0;
            CHECK_EQ(sni_plat_park(&never, 0, sni_plat_now_ns() + c->hold_ns), -ETIMEDOUT);
        }
        c->inside--;
        sni_mutex_unlock(&c->mutex);
    }
}

static void contend_all(struct contested *c)
{
    struct sni_thread threads[LOCKERS];
    sni_mutex_lock(&c->mutex); /* so that they begin together */
    for (int i = 0; i < LOCKERS; i++)
        CHECK_EQ(sni_plat_thread_start(&threads[i], contend, c, "locker", 0), 0);
    sni_mutex_unlock(&c->mutex);
    for (int i = 0; i < LOCKERS; i++)
        CHECK_EQ(sni_plat_thread_join(&threads[i]), 0);
    CHECK_EQ(c->count, (uint64_t)LOCKERS * (uint64_t)c->rounds);
    CHECK(sni_mutex_trylock(&c->mutex));
}

TEST(a_mutex_lets_one_thread_in_at_a_time)
{
    contend_all(&(struct contested){.rounds = 200000});
}

TEST(a_mutex_taken_by_trylock_excludes_as_well)
{
    contend_all(&(struct contested){.rounds = 20000, .by_trylock = true});
}

TEST(a_mutex_held_for_long_parks_the_others_and_forgets_none)
{
    contend_all(&(struct contested){.rounds = 100, .hold_ns = 200000});
}

struct waiter {
    struct sni_mutex *mutex;
    struct word tid;
    int64_t cpu_ns;
};

static void lock_once(void *p)
{
    struct waiter *w = p;
    tell_tid(&w->tid);
    int64_t before = thread_cpu_ns();
    sni_mutex_lock(w->mutex);
    sni_mutex_unlock(w->mutex);
    w->cpu_ns = thread_cpu_ns() - before;
}

TEST(waiting_for_a_mutex_that_is_held_for_long_uses_no_processor)
{
    struct sni_mutex m = SNI_MUTEX_INIT;
    struct waiter w = {.mutex = &m};
    struct sni_thread t;
    sni_mutex_lock(&m);
    CHECK_EQ(sni_plat_thread_start(&t, lock_once, &w, "waiter", 0), 0);
    wait_until_asleep(&w.tid);
    uint32_t never = 0;
    CHECK_EQ(sni_plat_park(&never, 0, sni_plat_now_ns() + MS(200)), -ETIMEDOUT);
    sni_mutex_unlock(&m);
    CHECK_EQ(sni_plat_thread_join(&t), 0);
    CHECK_LT(w.cpu_ns, MS(20));
}

/* The last of two threads to leave frees the mutex, while the other may still be in its unlock. */
struct shared {
    struct sni_mutex mutex;
    int users;
};

static void leave(void *p)
{
    struct shared *s = p;
    sni_mutex_lock(&s->mutex);
    bool last = --s->users == 0;
    sni_mutex_unlock(&s->mutex);
    if (last)
        free(s);
}

TEST(a_mutex_may_be_freed_by_who_takes_it_last)
{
    for (int i = 0; i < 1000; i++) {
        struct shared *s = calloc(1, sizeof(*s));
        CHECK(s != NULL);
        s->users = 2;
        struct sni_thread t;
        CHECK_EQ(sni_plat_thread_start(&t, leave, s, "leaver", 0), 0);
        leave(s);
        CHECK_EQ(sni_plat_thread_join(&t), 0);
    }
}

#ifdef SINEW_DEBUG
FAIL_TEST(unlocking_a_mutex_that_nobody_holds_is_reported, "unlocked that nobody had locked")
{
    struct sni_mutex m = SNI_MUTEX_INIT;
    sni_mutex_lock(&m);
    sni_mutex_unlock(&m);
    sni_mutex_unlock(&m);
}
#endif
