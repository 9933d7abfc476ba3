/* SPDX-License-Identifier: MIT */
/* Fibers: the switch, beside the least that any switch must do; starting one; getting a stack.
 *
 * The floor is a switch of the same kind written down here once more without anything around
 * it, over stacks of the same spacing without colour. A figure is one switch, one way. */
#include "bench.h"

#include "fiber/context.h"
#include "fiber/highwater.h"
#include "fiber/stack.h"

#include <stdio.h>
#include <stdlib.h>

enum { RING = 1000 };

static struct sni_context back, contexts[RING];
static struct sni_stack *stacks[RING];
static struct sni_stack_pool pool;
static struct sni_stack_cache cache;

static void open_pool(struct bench *b)
{
    if (sni_stack_pool_init(&pool, NULL) < 0)
        bench_fail(b, "no pool of stacks");
    else
        sni_stack_cache_init(&cache, &pool);
}

static void close_pool(struct bench *b)
{
    (void)b;
    for (int i = 0; i < RING; i++) {
        if (stacks[i] != NULL) {
            sni_context_finish(&contexts[i]);
            sni_stack_put(&cache, stacks[i]);
        }
        stacks[i] = NULL;
    }
    sni_stack_cache_finish(&cache);
    sni_stack_pool_finish(&pool);
}

static void make_fiber(struct bench *b, int i, sni_context_fn entry)
{
    if (sni_stack_get(&cache, 0, &stacks[i]) < 0 ||
        sni_context_make(&contexts[i], stacks[i]->lo, stacks[i]->hi, entry) < 0)
        bench_fail(b, "no stack");
}

/* ---- two contexts ------------------------------------------------------------------ */

static void echo(void *pass)
{
    for (;;)
        pass = sni_context_switch(&contexts[0], &back, pass);
}

static void setup_pair(struct bench *b)
{
    open_pool(b);
    make_fiber(b, 0, echo);
}

BENCH(fiber_switch_2, .ops = 2, .setup = setup_pair, .teardown = close_pool,
      .note = "between two contexts, one way")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        void *got = sni_context_switch(&back, &contexts[0], b);
        bench_keep(got);
    }
}

static void echo_fp(void *pass)
{
    uint64_t around = sni_fp_control_get();
    for (;;)
        pass = sni_context_switch_fp(&contexts[0], &back, pass, &around);
}

static void setup_pair_fp(struct bench *b)
{
    open_pool(b);
    make_fiber(b, 0, echo_fp);
}

BENCH(fiber_switch_2_fp, .ops = 2, .setup = setup_pair_fp, .teardown = close_pool,
      .note = "one side keeps its floating point control words, unchanged")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        void *got = sni_context_switch(&back, &contexts[0], b);
        bench_keep(got);
    }
}

/* ---- a ring of a thousand ---------------------------------------------------------- */

/* `pass` is the number of the context; the last one goes back. */
static void turn_ring(void *pass)
{
    uintptr_t self = (uintptr_t)pass;
    struct sni_context *next = self + 1 < RING ? &contexts[self + 1] : &back;
    for (;;)
        sni_context_switch(&contexts[self], next, (void *)(self + 1));
}

static void setup_ring(struct bench *b)
{
    open_pool(b);
    for (int i = 0; i < RING; i++)
        make_fiber(b, i, turn_ring);
    sni_context_switch(&back, &contexts[0], NULL);
}

BENCH(fiber_switch_1000, .ops = RING + 1, .setup = setup_ring, .teardown = close_pool,
      .note = "round a ring of 1000, stacks from the pool")
{
    for (uint64_t i = 0; i < b->iterations; i++)
        sni_context_switch(&back, &contexts[0], NULL);
}

/* ---- the floor --------------------------------------------------------------------- */

#if defined(__x86_64__)

void *floor_jump(void **from, void *const *to, void *pass);
__asm__(".text\n.p2align 4\n"
        ".type floor_jump, @function\n"
        "floor_jump:\n"
        "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq (%rsi), %rsp\n"
        "movq %rdx, %rax\n"
        "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; popq %rcx\n"
        "jmp *%rcx\n"
        ".size floor_jump, . - floor_jump\n");

static void *floor_back, *floor_sp[RING];
static char *floor_memory;

static void floor_make(int i, void (*entry)(void))
{
    void **top = (void **)(void *)(floor_memory + ((size_t)i + 1) * 65536 - 64);
    *--top = NULL;
    *--top = (void *)(uintptr_t)entry;
    floor_sp[i] = top - 6;
}

/* A first switch leaves its `pass` in rax, which C cannot see: these start from globals. */
static uintptr_t floor_starting;

static void floor_echo(void)
{
    void *pass = NULL;
    for (;;)
        pass = floor_jump(&floor_sp[0], &floor_back, pass);
}

static void floor_ring(void)
{
    uintptr_t self = floor_starting++;
    void **next = self + 1 < RING ? &floor_sp[self + 1] : &floor_back;
    for (;;)
        floor_jump(&floor_sp[self], next, NULL);
}

static void setup_floor_pair(struct bench *b)
{
    floor_memory = aligned_alloc(65536, 65536);
    if (floor_memory == NULL)
        bench_fail(b, "no memory");
    else
        floor_make(0, floor_echo);
}

static void setup_floor_ring(struct bench *b)
{
    floor_memory = aligned_alloc(65536, (size_t)RING * 65536);
    if (floor_memory == NULL) {
        bench_fail(b, "no memory");
        return;
    }
    for (int i = 0; i < RING; i++)
        floor_make(i, floor_ring);
    floor_starting = 0;
    floor_jump(&floor_back, &floor_sp[0], NULL);
}

static void teardown_floor(struct bench *b)
{
    (void)b;
    free(floor_memory);
}

BENCH(floor_switch_2, .ops = 2, .setup = setup_floor_pair, .teardown = teardown_floor,
      .note = "the bare minimum between two")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        void *got = floor_jump(&floor_back, &floor_sp[0], b);
        bench_keep(got);
    }
}

BENCH(floor_switch_1000, .ops = RING + 1, .setup = setup_floor_ring, .teardown = teardown_floor,
      .note = "the bare minimum round a ring of 1000")
{
    for (uint64_t i = 0; i < b->iterations; i++)
        floor_jump(&floor_back, &floor_sp[0], NULL);
}

#endif

/* ---- start and stacks -------------------------------------------------------------- */

static void end_at_once(void *pass)
{
    sni_context_exit(&contexts[0], &back, pass);
}

BENCH(fiber_start_end, .setup = open_pool, .teardown = close_pool,
      .note = "stack from the cache, make, switch in, exit, stack back")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        struct sni_stack *stack = NULL;
        int rc = sni_stack_get(&cache, 0, &stack);
        if (rc == 0)
            rc = sni_context_make(&contexts[0], stack->lo, stack->hi, end_at_once);
        if (rc < 0) {
            bench_fail(b, "no stack");
            return;
        }
        sni_context_switch(&back, &contexts[0], b);
        sni_stack_put(&cache, stack);
    }
}

BENCH(stack_get_put, .setup = open_pool, .teardown = close_pool, .note = "warm, the same one")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        struct sni_stack *stack = NULL;
        int rc = sni_stack_get(&cache, 0, &stack);
        bench_keep(rc);
        sni_stack_put(&cache, stack);
    }
}

static struct sni_highwater marks;

static void open_measured(struct bench *b)
{
    open_pool(b);
    sni_highwater_init(&marks);
}

static void measure_each(struct bench *b, size_t depth)
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        struct sni_stack *stack = NULL;
        int rc = sni_stack_get(&cache, 0, &stack);
        bench_keep(rc);
        stack->hi[-(ptrdiff_t)depth] = 1;
        sni_highwater_measure(&marks, "bench", stack);
        sni_stack_put(&cache, stack);
    }
}

BENCH(stack_high_water, .setup = open_measured, .teardown = close_pool,
      .note = "get, measured at the put; one page was used")
{
    measure_each(b, 100);
}

BENCH(stack_high_water_deep, .setup = open_measured, .teardown = close_pool,
      .note = "the same, a second page was used: discarded, touched again")
{
    measure_each(b, 4096);
}

BENCH(stack_get_put_1000, .ops = RING, .setup = open_pool, .teardown = close_pool,
      .note = "warm, 1000 out and 1000 back")
{
    for (uint64_t i = 0; i < b->iterations; i++) {
        for (int k = 0; k < RING; k++) {
            int rc = sni_stack_get(&cache, 0, &stacks[k]);
            bench_keep(rc);
        }
        for (int k = 0; k < RING; k++) {
            sni_stack_put(&cache, stacks[k]);
            stacks[k] = NULL;
        }
    }
}

/* Resident bytes of the process. */
static double resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sni_plat_page_bytes();
}

static double mappings(void)
{
    double lines = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    if (file == NULL)
        return 0;
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    fclose(file);
    return lines;
}

BENCH(stack_fresh, .setup = open_pool, .teardown = close_pool, .fixed_iterations = 20000,
      .note = "guarded, never used before, all kept; try --fixed 1000000 (4 GB)")
{
    double resident = resident_bytes();
    bench_pause(b);
    bench_resume(b);
    for (uint64_t i = 0; i < b->iterations; i++) {
        struct sni_stack *stack = NULL;
        if (sni_stack_get(&cache, 0, &stack) < 0) {
            bench_fail(b, "no stack");
            return;
        }
    }
    bench_pause(b);
    struct sni_stack_stats stats;
    sni_stack_pool_stats(&pool, &stats);
    bench_counter(b, "bytes_each", (resident_bytes() - resident) / (double)b->iterations);
    bench_counter(b, "mappings", mappings());
    bench_counter(b, "unguarded", (double)stats.guards[SNI_GUARD_NONE]);
}
