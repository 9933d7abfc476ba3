/* SPDX-License-Identifier: MIT */
/* Contexts and the switch between them (R50), and what sanitizers are told of it (R52).
 *
 * These tests also run on other processors, under an emulator: see tests/cross. */
#include "harness.h"
#include "unit/fiber/coroutine.h"
#include "unit/fiber/registers.h"

#include "plat/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

enum { STACK_BYTES = 64 * 1024 };

TEST(contexts_can_be_switched_on_this_machine)
{
    CHECK_EQ(sni_context_check(), 0);
}

/* ---- values and turns ---------------------------------------------------------------------- */

static void add_up(struct coroutine *co, void *value)
{
    uintptr_t sum = (uintptr_t)value;
    for (;;) {
        uintptr_t next = (uintptr_t)coroutine_yield(co, (void *)sum);
        if (next == 0)
            return;
        sum += next;
    }
}

TEST(a_switch_passes_a_value_each_way)
{
    struct coroutine co;
    coroutine_init(&co, add_up, STACK_BYTES);
    uintptr_t sum = 0;
    for (uintptr_t i = 1; i <= 1000; i++) {
        sum += i;
        CHECK_EQ((uintptr_t)coroutine_resume(&co, (void *)i), sum);
    }
    CHECK_PTR_EQ(coroutine_resume(&co, NULL), NULL);
    CHECK(co.done);
    coroutine_finish(&co);
}

TEST(a_context_may_switch_to_itself)
{
    struct sni_context here = {0};
    int mark = 0;
    CHECK_PTR_EQ(sni_context_switch(&here, &here, &mark), &mark);
}

TEST(a_thousand_fibers_take_turns)
{
    enum { FIBERS = 1000, ROUNDS = 50 };
    struct coroutine *all = calloc(FIBERS, sizeof *all);
    CHECK(all != NULL);
    for (int i = 0; i < FIBERS; i++)
        coroutine_init(&all[i], add_up, STACK_BYTES);
    for (uintptr_t round = 1; round <= ROUNDS; round++)
        for (uintptr_t i = 0; i < FIBERS; i++)
            CHECK_EQ((uintptr_t)coroutine_resume(&all[i], (void *)(i + 1)), (i + 1) * round);
    for (int i = 0; i < FIBERS; i++) {
        CHECK_PTR_EQ(coroutine_resume(&all[i], NULL), NULL);
        coroutine_finish(&all[i]);
    }
    free(all);
}

static void inner(struct coroutine *co, void *value)
{
    coroutine_yield(co, (char *)value + 1);
}

static void outer(struct coroutine *co, void *value)
{
    struct coroutine nested;
    coroutine_init(&nested, inner, STACK_BYTES);
    void *got = coroutine_resume(&nested, (char *)value + 10);
    coroutine_yield(co, got);
    coroutine_resume(&nested, NULL);
    coroutine_finish(&nested);
}

TEST(a_fiber_resumes_another)
{
    char base[32];
    struct coroutine co;
    coroutine_init(&co, outer, STACK_BYTES);
    CHECK_PTR_EQ(coroutine_resume(&co, base), base + 11);
    coroutine_resume(&co, NULL);
    CHECK(co.done);
    coroutine_finish(&co);
}

/* ---- the stack ----------------------------------------------------------------------------- */

static void look_at_stack(struct coroutine *co, void *value)
{
    _Alignas(16) char local[16];
    (void)value;
    memset(local, 1, sizeof local);
    CHECK_EQ((uintptr_t)local % 16, 0);
    CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
    /* Formatted floating point is where wrong alignment crashes on x86-64. */
    char text[32];
    snprintf(text, sizeof text, "%.3f", 1.5 * local[0]);
    CHECK_STR_EQ(text, "1.500");
    coroutine_yield(co, local);
}

TEST(a_fiber_begins_on_its_stack_aligned_as_the_abi_wants)
{
    for (size_t odd = 0; odd < 64; odd += 8) {
        char *memory = aligned_alloc(64, STACK_BYTES);
        CHECK(memory != NULL);
        struct coroutine co;
        coroutine_init_on(&co, look_at_stack, memory, memory + STACK_BYTES - odd);
        CHECK(coroutine_resume(&co, NULL) != NULL);
        CHECK((char *)co.self.sp >= memory && (char *)co.self.sp < memory + STACK_BYTES);
        coroutine_resume(&co, NULL);
        coroutine_finish(&co);
        free(memory);
    }
}

/* Few and large frames: ThreadSanitizer follows no more than 65,536. */
static uint64_t dive(volatile const char *above, unsigned depth)
{
    volatile char frame[8192];
    frame[0] = (char)depth;
    frame[8191] = *above;
    return depth == 0 ? 0 : 1 + dive(frame, depth - 1) + (uint64_t)(frame[0] - (char)depth);
}

static void dive_deep(struct coroutine *co, void *value)
{
    volatile char top = 0;
    coroutine_yield(co, (void *)(uintptr_t)dive(&top, *(unsigned *)value));
}

TEST(a_fiber_recurses_through_a_big_stack)
{
    struct coroutine co;
    unsigned depth = 20 * 1000;
    coroutine_init(&co, dive_deep, (size_t)256 << 20);
    CHECK_EQ((uintptr_t)coroutine_resume(&co, &depth), depth);
    coroutine_resume(&co, NULL);
    coroutine_finish(&co);
}

static void leave_frames(struct coroutine *co, void *value)
{
    volatile char frame[2000];
    memset((char *)frame, (int)(uintptr_t)value, sizeof frame);
    co->done = true;
    sni_context_exit(&co->self, &co->back, NULL); /* with this frame still on the stack */
}

TEST(a_stack_is_clean_for_the_next_fiber_when_one_left_its_frames_behind)
{
    char *memory = aligned_alloc(64, STACK_BYTES);
    CHECK(memory != NULL);
    for (uintptr_t i = 0; i < 100; i++) {
        struct coroutine co;
        coroutine_init_on(&co, i % 2 ? leave_frames : look_at_stack, memory, memory + STACK_BYTES);
        coroutine_resume(&co, (void *)i);
        coroutine_finish(&co); /* half of them abandoned where they stand */
    }
    memset(memory, 0, STACK_BYTES);
    free(memory);
}

static void return_from_entry(void *pass)
{
    (void)pass;
}

TEST(an_entry_that_returns_stops_the_process)
{
    pid_t child = fork();
    if (child == 0) {
        static _Alignas(64) char memory[STACK_BYTES];
        struct sni_context main_context = {0}, made;
        signal(SIGTRAP, SIG_DFL);
        signal(SIGILL, SIG_DFL);
        if (sni_context_make(&made, memory, memory + sizeof memory, return_from_entry) == 0)
            sni_context_switch(&main_context, &made, NULL);
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP));
}

/* ---- registers ----------------------------------------------------------------------------- */

static void pattern(uint64_t *values, uint64_t seed)
{
    for (uint64_t i = 0; i < registers_count; i++)
        values[i] = (seed << 32) + i * 0x0101010101010101;
}

static void shuffle_registers(struct coroutine *co, void *value)
{
    uint64_t in[REGISTERS_MAX], out[REGISTERS_MAX];
    (void)value;
    for (uint64_t i = 0; i < 100; i++) {
        pattern(in, 1000 + i);
        registers_across(in, out, sni_context_switch, &co->self, &co->back, NULL);
        CHECK_MEM_EQ(in, out, registers_count * sizeof *in);
    }
}

TEST(a_switch_keeps_every_register_that_functions_must_preserve)
{
    uint64_t in[REGISTERS_MAX], out[REGISTERS_MAX];
    struct coroutine co;
    CHECK_LE(registers_count, REGISTERS_MAX);
    coroutine_init(&co, shuffle_registers, STACK_BYTES);
    coroutine_resume(&co, NULL);
    for (uint64_t i = 0; i < 100; i++) {
        pattern(in, i);
        memset(out, 0, sizeof out);
        registers_across(in, out, sni_context_switch, &co.back, &co.self, NULL);
        CHECK_MEM_EQ(in, out, registers_count * sizeof *in);
    }
    CHECK(co.done);
    coroutine_finish(&co);
}

/* ---- floating point control ---------------------------------------------------------------- */

/* The quotient tells the rounding mode; volatile, so that it is computed here and now. */
__attribute__((noinline)) static double third(void)
{
    volatile double one = 1.0, three = 3.0;
    volatile double quotient = one / three;
    return quotient;
}

/* The same by the x87 on x86-64, which has control words of its own. A seventh, because the
 * nearest to a third is the higher one here. */
__attribute__((noinline)) static long double seventh_long(void)
{
    volatile long double one = 1.0L, seven = 7.0L;
    volatile long double quotient = one / seven;
    return quotient;
}

/* Toward plus infinity, on whichever processor this is. */
static void round_up(void)
{
    uint64_t words = sni_fp_control_get();
#if defined(__x86_64__)
    sni_fp_control_set((words & ~UINT64_C(0x0c0000006000)) | UINT64_C(0x080000004000));
#elif defined(__aarch64__)
    sni_fp_control_set((words & ~(UINT64_C(3) << 22)) | UINT64_C(1) << 22);
#elif defined(__riscv)
    sni_fp_control_set((words & 0) | 3);
#else
    (void)words;
#endif
}

/* The portable context keeps the words in every switch, and has nothing to get or set. */
static bool has_fp_words(void)
{
    double nearest = third();
    long double nearest_long = seventh_long();
    uint64_t words = sni_fp_control_get();
    round_up();
    bool has = sni_fp_control_get() != words;
    if (has)
        CHECK(third() > nearest && seventh_long() > nearest_long);
    sni_fp_control_set(words);
    CHECK(third() <= nearest && seventh_long() <= nearest_long);
    return has;
}

static double inside[3];

static void calculate_plainly(struct coroutine *co, void *value)
{
    (void)value;
    round_up();
    inside[0] = third();
    coroutine_yield(co, NULL);
    inside[1] = third();
}

static void calculate_with_fp(struct coroutine *co, void *value)
{
    uint64_t around = sni_fp_control_get();
    (void)value;
    round_up();
    inside[0] = third();
    sni_context_switch_fp(&co->self, &co->back, NULL, &around);
    inside[1] = third();
    sni_fp_control_set(around);
}

TEST(the_fp_form_of_a_switch_keeps_the_rounding_mode_on_both_sides)
{
    if (!has_fp_words())
        return;
    double nearest = third();
    struct coroutine co;
    coroutine_init(&co, calculate_with_fp, STACK_BYTES);
    coroutine_resume(&co, NULL);
    CHECK(inside[0] > nearest);
    CHECK(third() <= nearest); /* not ours */
    coroutine_resume(&co, NULL);
    CHECK(inside[1] > nearest); /* kept */
    CHECK(third() <= nearest);
    coroutine_finish(&co);
}

TEST(the_plain_form_of_a_switch_lets_the_rounding_mode_through)
{
    if (!has_fp_words())
        return;
    double nearest = third();
    uint64_t words = sni_fp_control_get();
    struct coroutine co;
    coroutine_init(&co, calculate_plainly, STACK_BYTES);
    coroutine_resume(&co, NULL);
    CHECK(third() > nearest); /* the fiber's mode is now everybody's */
    sni_fp_control_set(words);
    coroutine_resume(&co, NULL);
    CHECK(inside[0] > nearest && inside[1] <= nearest);
    coroutine_finish(&co);
}

/* ---- threads ------------------------------------------------------------------------------- */

struct journey {
    struct coroutine co;
    pthread_t seen[4];
    uint64_t unshared; /* written by the fiber, on whichever thread: a race if not handed over */
};

/* Never inlined: the compiler must not keep one thread's answer across a switch. */
__attribute__((noinline)) static pthread_t whose_thread(void)
{
    __asm__ volatile("" ::: "memory");
    return pthread_self();
}

static void travel(struct coroutine *co, void *value)
{
    struct journey *j = value;
    for (int i = 0; i < 4; i++) {
        j->seen[i] = whose_thread();
        j->unshared++;
        coroutine_yield(co, NULL);
    }
}

static void *carry(void *arg)
{
    struct journey *j = arg;
    coroutine_resume(&j->co, j);
    return (void *)(uintptr_t)j->unshared;
}

TEST(a_fiber_parked_on_one_thread_goes_on_on_another)
{
    struct journey j = {.unshared = 0};
    coroutine_init(&j.co, travel, STACK_BYTES);
    coroutine_resume(&j.co, &j);
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_t other;
        void *count;
        CHECK_EQ(pthread_create(&other, NULL, carry, &j), 0);
        CHECK_EQ(pthread_join(other, &count), 0);
        CHECK_EQ((uintptr_t)count, i + 2);
        CHECK(pthread_equal(j.seen[i + 1], other));
    }
    coroutine_resume(&j.co, &j);
    CHECK(pthread_equal(j.seen[0], pthread_self()) && pthread_equal(j.seen[3], pthread_self()));
    coroutine_resume(&j.co, &j);
    CHECK(j.co.done);
    coroutine_finish(&j.co);
}

/* ---- unwinding ----------------------------------------------------------------------------- */

enum { FRAMES_MAX = 64 };

struct trace {
    void *pc[FRAMES_MAX];
    int depth;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
    struct trace *trace = arg;
    if (trace->depth < FRAMES_MAX)
        trace->pc[trace->depth++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

__attribute__((noinline)) static int count_frames(struct trace *trace, int more)
{
    if (more > 0) {
        int result = count_frames(trace, more - 1);
        __asm__ volatile("" ::: "memory"); /* no tail call */
        return result;
    }
    trace->depth = 0;
    int end = (int)_Unwind_Backtrace(note_frame, trace);
    __asm__ volatile("" ::: "memory");
    return end;
}

static void trace_self(struct coroutine *co, void *value)
{
    int end = count_frames(value, 10);
    coroutine_yield(co, NULL);
    CHECK_EQ(end, _URC_END_OF_STACK);
    CHECK_EQ(count_frames(value, 10), _URC_END_OF_STACK);
}

/* count_frames eleven times, trace_self, begin, the start; a sanitizer's own frame perhaps. */
static void check_trace(const struct trace *trace)
{
    CHECK_GE(trace->depth, 11 + 2);
    CHECK_LE(trace->depth, 11 + 5);
}

TEST(a_backtrace_in_a_fiber_ends_at_its_entry)
{
    static struct trace trace;
    struct coroutine co;
    coroutine_init(&co, trace_self, STACK_BYTES);
    memset(co.memory, 0xa5, co.bytes - 4096); /* nothing below helps a lost unwinder */
    coroutine_resume(&co, &trace);
    check_trace(&trace);
    coroutine_resume(&co, NULL); /* also after it was parked */
    check_trace(&trace);
    coroutine_finish(&co);
}

static void trace_here(void *trace)
{
    CHECK_EQ(count_frames(trace, 10), _URC_END_OF_STACK);
}

/* count_frames eleven times, trace_here, the call; and not the harness, which has called it. */
TEST(a_backtrace_ends_at_a_call_that_is_told_to_be_the_outermost)
{
    static struct trace trace;
    sni_context_call(trace_here, &trace);
    CHECK_GE(trace.depth, 11 + 1);
    CHECK_LE(trace.depth, 11 + 3);
    CHECK_EQ(count_frames(&trace, 10), _URC_END_OF_STACK);
    CHECK_GE(trace.depth, 11 + 4);
}

/* ---- leaks --------------------------------------------------------------------------------- */

extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void hold_memory(struct coroutine *co, void *value)
{
    (void)value;
    void *volatile mine = malloc(100);
    coroutine_yield(co, NULL);
    free(mine);
}

TEST(memory_that_only_a_parked_fiber_knows_is_not_a_leak)
{
    if (__lsan_do_recoverable_leak_check == NULL)
        return; /* only LeakSanitizer has to be told */
    struct coroutine co;
    coroutine_init(&co, hold_memory, STACK_BYTES);
    coroutine_resume(&co, NULL);
    CHECK_EQ(__lsan_do_recoverable_leak_check(), 0);
    coroutine_resume(&co, NULL);
    coroutine_finish(&co);
}

/* ---- planted defects ----------------------------------------------------------------------- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FINDS_OVERRUNS
#elif __has_feature(thread_sanitizer)
#define FINDS_RACES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FINDS_OVERRUNS
#elif defined(__SANITIZE_THREAD__)
#define FINDS_RACES
#endif

#ifdef FINDS_OVERRUNS
static void overrun(struct coroutine *co, void *value)
{
    volatile char local[16];
    volatile size_t end = sizeof local;
    (void)value;
    coroutine_yield(co, NULL);
    local[end] = 1;
}

FAIL_TEST(an_overrun_on_a_fiber_is_found, "stack-buffer-overflow")
{
    struct coroutine co;
    coroutine_init(&co, overrun, STACK_BYTES);
    coroutine_resume(&co, NULL);
    coroutine_resume(&co, NULL);
}
#endif

#ifdef FINDS_RACES
static void count_up(struct coroutine *co, void *value)
{
    volatile int *shared = value;
    coroutine_yield(co, NULL);
    for (int i = 0; i < 1000; i++)
        *shared = *shared + 1;
}

static void *count_on_fiber(void *shared)
{
    struct coroutine co;
    coroutine_init(&co, count_up, STACK_BYTES);
    coroutine_resume(&co, shared);
    coroutine_resume(&co, NULL);
    coroutine_finish(&co);
    return NULL;
}

FAIL_TEST(a_race_between_fibers_on_two_threads_is_found, "data race")
{
    static volatile int shared;
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, count_on_fiber, (void *)(uintptr_t)&shared), 0);
    count_on_fiber((void *)(uintptr_t)&shared);
    pthread_join(other, NULL);
    exit(0); /* the sanitizer makes another status of it */
}
#endif
