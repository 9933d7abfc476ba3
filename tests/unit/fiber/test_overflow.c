/* SPDX-License-Identifier: MIT */
/* Stack overflow (R51: guard): caught on the alternate stack, with the exact address, and told
 * from the faults of others. */
#include "harness.h"
#include "unit/fiber/coroutine.h"

#include "fiber/stack.h"
#include "plat/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    struct sni_stack *stack;
    int faults;
    void *addr;
    void *sp;
    void *handler_at;
    bool ours;
    struct sni_stack_overflow what;
} seen;

/* Take the guard away, so that the instruction succeeds when it is tried again. */
static void take_guard_away(void)
{
    size_t page = sni_plat_page_bytes();
    void *guard = seen.stack->lo - page;
    if (seen.stack->guard == SNI_GUARD_MADVISE)
        madvise(guard, page, 103); /* MADV_GUARD_REMOVE */
    else
        mprotect(guard, page, PROT_READ | PROT_WRITE);
}

static int judge(void *addr, void *frame)
{
    char local;
    seen.faults++;
    seen.addr = addr;
    seen.sp = sni_plat_fault_sp(frame);
    seen.handler_at = &local;
    seen.ours = sni_stack_is_guard_hit(seen.stack, addr, &seen.what);
    if (!seen.ours)
        return 0;
    take_guard_away();
    return 1;
}

static void touch(struct coroutine *co, void *value)
{
    *(volatile char *)value = 1;
    coroutine_yield(co, NULL);
}

static void check_exact_address(enum sni_guard_kind kind, size_t below)
{
    struct sni_stack_pool pool;
    struct sni_stack_cache cache;
    struct sni_fault_thread alternate;
    struct coroutine co;
    CHECK_EQ(sni_stack_pool_init(&pool, &(struct sni_stack_config){.guard = kind}), 0);
    sni_stack_cache_init(&cache, &pool);
    CHECK_EQ(sni_plat_fault_thread_init(&alternate), 0);
    CHECK_EQ(sni_plat_fault_install(judge), 0);
    CHECK_EQ(sni_stack_get(&cache, 0, &seen.stack), 0);
    CHECK_EQ(seen.stack->guard, kind);
    coroutine_init_on(&co, touch, seen.stack->lo, seen.stack->hi);
    seen.faults = 0;
    coroutine_resume(&co, seen.stack->lo - below);
    CHECK_EQ(seen.faults, 1);
    CHECK(seen.ours);
    CHECK_PTR_EQ(seen.addr, seen.stack->lo - below);
    CHECK_EQ(seen.what.below_bytes, below);
    CHECK_EQ(seen.what.had_bytes, 64 * 1024);
    CHECK_EQ(seen.what.next_bytes, 128 * 1024);
    CHECK((char *)seen.sp > seen.stack->lo && (char *)seen.sp < seen.stack->hi);
    CHECK((char *)seen.handler_at < seen.stack->lo || (char *)seen.handler_at > seen.stack->hi);
    coroutine_resume(&co, NULL);
    coroutine_finish(&co);
    sni_plat_fault_remove();
    sni_plat_fault_thread_finish(&alternate);
    sni_stack_put(&cache, seen.stack);
    sni_stack_cache_finish(&cache);
    sni_stack_pool_finish(&pool);
}

TEST(a_touch_of_the_guard_is_caught_with_its_exact_address_madvise)
{
    if (sni_plat_guard_kind() != SNI_GUARD_MADVISE)
        SKIP("needs a kernel with MADV_GUARD_INSTALL (6.13)");
    check_exact_address(SNI_GUARD_MADVISE, 1);
    check_exact_address(SNI_GUARD_MADVISE, 100);
    check_exact_address(SNI_GUARD_MADVISE, sni_plat_page_bytes());
}

TEST(a_touch_of_the_guard_is_caught_with_its_exact_address_mprotect)
{
    check_exact_address(SNI_GUARD_MPROTECT, 1);
    check_exact_address(SNI_GUARD_MPROTECT, 100);
    check_exact_address(SNI_GUARD_MPROTECT, sni_plat_page_bytes());
}

/* ---- a real overflow ------------------------------------------------------------------------ */

static int report_and_end(void *addr, void *frame)
{
    struct sni_stack_overflow what;
    char text[128];
    (void)frame;
    if (!sni_stack_is_guard_hit(seen.stack, addr, &what))
        return 0;
    int n = snprintf(text, sizeof text, "overflow of %zu bytes, try %zu\n", what.had_bytes,
                     what.next_bytes);
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(4);
    _exit(3);
}

static int fall(volatile char *above, int depth)
{
    volatile char frame[128];
    frame[0] = *above;
    int deeper = depth < 0 ? depth : fall(frame, depth + 1);
    return deeper + frame[0];
}

static void fall_for_ever(struct coroutine *co, void *value)
{
    volatile char top = 0;
    (void)value;
    coroutine_yield(co, (void *)(uintptr_t)fall(&top, 1));
}

static void *overflow_here(void *arg)
{
    struct sni_stack_cache cache;
    struct sni_fault_thread alternate;
    struct coroutine co;
    sni_stack_cache_init(&cache, arg);
    CHECK_EQ(sni_plat_fault_thread_init(&alternate), 0);
    CHECK_EQ(sni_plat_fault_install(report_and_end), 0);
    CHECK_EQ(sni_stack_get(&cache, 32 * 1024, &seen.stack), 0);
    coroutine_init_on(&co, fall_for_ever, seen.stack->lo, seen.stack->hi);
    coroutine_resume(&co, NULL);
    return NULL;
}

FAIL_TEST(endless_recursion_is_reported_from_the_alternate_stack,
          "overflow of 32768 bytes, try 65536")
{
    struct sni_stack_pool pool;
    CHECK_EQ(sni_stack_pool_init(&pool, NULL), 0);
    overflow_here(&pool);
}

FAIL_TEST(endless_recursion_is_reported_with_mprotect_and_on_any_thread,
          "overflow of 32768 bytes, try 65536")
{
    struct sni_stack_pool pool;
    pthread_t thread;
    CHECK_EQ(sni_stack_pool_init(&pool, &(struct sni_stack_config){.guard = SNI_GUARD_MPROTECT}),
             0);
    CHECK_EQ(pthread_create(&thread, NULL, overflow_here, &pool), 0);
    pthread_join(thread, NULL);
}

TEST(the_largest_stack_has_no_next_size)
{
    struct sni_stack_pool pool;
    struct sni_stack_cache cache;
    struct sni_stack_overflow what;
    struct sni_stack *s = NULL;
    CHECK_EQ(sni_stack_pool_init(&pool, NULL), 0);
    sni_stack_cache_init(&cache, &pool);
    CHECK_EQ(sni_stack_get(&cache, (size_t)1 << 30, &s), 0);
    CHECK(sni_stack_is_guard_hit(s, s->lo - 7, &what));
    CHECK_EQ(what.below_bytes, 7);
    CHECK_EQ(what.next_bytes, 0);
    CHECK(!sni_stack_is_guard_hit(s, s->lo, NULL));
    CHECK(!sni_stack_is_guard_hit(s, s->lo - sni_plat_page_bytes() - 1, NULL));
    CHECK(!sni_stack_is_guard_hit(s, s->hi, NULL));
    CHECK(!sni_stack_is_guard_hit(s, NULL, NULL));
    sni_stack_put(&cache, s);
    sni_stack_cache_finish(&cache);
    sni_stack_pool_finish(&pool);
}

/* ---- the faults of others -------------------------------------------------------------------- */

static int refuse(void *addr, void *frame)
{
    (void)addr;
    (void)frame;
    seen.faults++;
    return 0;
}

static int refuse_too(void *addr, void *frame)
{
    return refuse(addr, frame);
}

static void *volatile forbidden;
static volatile int chained;

static void older_handler(int sig, siginfo_t *info, void *frame)
{
    (void)frame;
    if (sig == SIGSEGV && info->si_addr == forbidden)
        chained++;
    mprotect(forbidden, sni_plat_page_bytes(), PROT_READ | PROT_WRITE);
}

TEST(a_fault_that_is_not_ours_goes_to_the_handler_before)
{
    struct sigaction older, now;
    memset(&older, 0, sizeof older);
    older.sa_sigaction = older_handler;
    older.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGSEGV, &older, NULL), 0);
    void *page = NULL;
    CHECK_EQ(sni_plat_reserve(&page, sni_plat_page_bytes()), 0);
    forbidden = page;
    CHECK_EQ(sni_plat_guard(page, sni_plat_page_bytes(), SNI_GUARD_MPROTECT), 0);

    CHECK_EQ(sni_plat_fault_install(refuse), 0);
    CHECK_EQ(sni_plat_fault_install(refuse), 0); /* calls nest */
    CHECK_EQ(sni_plat_fault_install(refuse_too), -EBUSY);
    sni_plat_fault_remove();
    *(volatile char *)page = 1;
    CHECK_EQ(chained, 1);
    CHECK_EQ(seen.faults, 1);
    sni_plat_fault_remove();

    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    CHECK(now.sa_sigaction == older_handler);
    sni_plat_release(page, sni_plat_page_bytes());
}

/* How a child ends that is killed by `kill_it` with our handler before the default one. */
static int end_of_child(void (*kill_it)(void))
{
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        if (sni_plat_fault_install(refuse) == 0)
            kill_it();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void write_to_nowhere(void)
{
    char *volatile nowhere = (char *)16;
    *nowhere = 1;
}

static void send_segv(void)
{
    raise(SIGSEGV);
}

static void send_bus(void)
{
    kill(getpid(), SIGBUS);
    pause();
}

TEST(a_fault_that_nobody_handles_ends_the_process_as_ever)
{
    CHECK_EQ(end_of_child(write_to_nowhere), SIGSEGV);
    CHECK_EQ(end_of_child(send_segv), SIGSEGV);
    CHECK_EQ(end_of_child(send_bus), SIGBUS);
}

/* ---- alternate stacks ------------------------------------------------------------------------ */

static void *own_alternate(void *arg)
{
    struct sni_fault_thread t = {0};
    stack_t now, mine = {.ss_sp = arg, .ss_size = 32 * 1024}, off = {.ss_flags = SS_DISABLE};
    CHECK_EQ(sigaltstack(&mine, NULL), 0);
    CHECK_EQ(sni_plat_fault_thread_init(&t), 0);
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK_PTR_EQ(now.ss_sp, arg);
    sni_plat_fault_thread_finish(&t);
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK_PTR_EQ(now.ss_sp, arg);

    CHECK_EQ(sigaltstack(&off, NULL), 0);
    CHECK_EQ(sni_plat_fault_thread_init(&t), 0);
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK_EQ(now.ss_flags & SS_DISABLE, 0);
    CHECK_GE(now.ss_size, 64 * 1024);
    sni_plat_fault_thread_finish(&t);
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK(now.ss_flags & SS_DISABLE);
    sni_plat_fault_thread_finish(&t); /* twice is harmless */
    return NULL;
}

TEST(an_alternate_stack_is_made_and_taken_away_but_not_that_of_others)
{
    pthread_t thread;
    void *memory = malloc(32 * 1024);
    CHECK(memory != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, own_alternate, memory), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    free(memory);
}
