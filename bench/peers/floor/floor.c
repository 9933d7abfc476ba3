/* SPDX-License-Identifier: MIT */
/* What the machine itself charges: the costs no runtime can go below.
 *
 *     yard_floor <workload> [n=..] [gap_us=..]
 *
 * One line of JSON per run; WORKLOADS.md says what each is. x86-64 Linux. */
#include "../yard.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

static uint64_t now_ns(void)
{
    return (uint64_t)yard_now();
}

/* Stay on the first or second of the processors that this process began with. */
static void pin(int which)
{
    static cpu_set_t given;
    static bool known;
    cpu_set_t one;
    size_t cpu = 0;
    if (!known)
        known = sched_getaffinity(0, sizeof(given), &given) == 0;
    for (int seen = -1; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &given) && ++seen == which)
            break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void relax(void)
{
    __asm__ __volatile__("pause");
}

static void spin_ns(uint64_t d)
{
    uint64_t t = now_ns() + d;
    while (now_ns() < t)
        relax();
}

static void report(int workers, uint64_t n, double ns)
{
    yard.workers = workers;
    yard_report((int64_t)n, ns, "%s", "");
}

static void report_latencies(int workers, uint32_t *v, uint64_t n, double caller_ns)
{
    const char *percentiles = yard_percentiles(v, n);
    yard.workers = workers;
    if (caller_ns >= 0)
        yard_report((int64_t)n, v[n / 2], "%s,\"caller_ns\":%.0f", percentiles, caller_ns);
    else
        yard_report((int64_t)n, v[n / 2], "%s", percentiles);
}

/* ---- context switch: six callee-saved registers, stack pointer, nothing else */
void floor_switch(void **save_sp, void *load_sp);
__asm__(".text\n.globl floor_switch\n.type floor_switch,@function\nfloor_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n"
        "  pushq %r15\n  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n  popq %r15\n"
        "  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n.size floor_switch,.-floor_switch\n");

/* the same, also saving the SSE and x87 control words */
void floor_switch_fp(void **save_sp, void *load_sp);
__asm__(".text\n.globl floor_switch_fp\n.type floor_switch_fp,@function\n"
        "floor_switch_fp:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n"
        "  pushq %r15\n  subq $8,%rsp\n  stmxcsr (%rsp)\n  fnstcw 4(%rsp)\n"
        "  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n"
        "  ldmxcsr (%rsp)\n  fldcw 4(%rsp)\n  addq $8,%rsp\n  popq %r15\n"
        "  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n.size floor_switch_fp,.-floor_switch_fp\n");

/* the same, leaving by pop+jmp instead of ret: the return predictor is
   always wrong on a switch, the indirect predictor may be right */
void floor_switch_jmp(void **save_sp, void *load_sp);
__asm__(".text\n.globl floor_switch_jmp\n.type floor_switch_jmp,@function\n"
        "floor_switch_jmp:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n"
        "  pushq %r15\n  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n  popq %r15\n"
        "  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  popq %rcx\n  jmp *%rcx\n.size floor_switch_jmp,.-floor_switch_jmp\n");

typedef void switch_fn(void **, void *);
static switch_fn *g_sw;
static void **g_sp; /* saved stack pointers; slot 0 is main */
static uint64_t g_co;
static uint64_t g_cur;

static void co_main(void)
{
    uint64_t me = g_cur;
    for (;;) {
        uint64_t next = me == g_co ? 0 : me + 1;
        g_cur = next;
        g_sw(&g_sp[me], g_sp[next]);
    }
}

/* a ring of `co` coroutines plus main: main -> 1 -> 2 ... -> co -> main */
static void bench_switch(uint64_t n, uint64_t co, int kind)
{
    size_t stk = 8192, fp = kind == 1;
    g_sw = kind == 1 ? floor_switch_fp : kind == 2 ? floor_switch_jmp : floor_switch;
    g_co = co;
    g_sp = calloc(co + 1, sizeof *g_sp);
    char *mem = mmap(NULL, stk * co, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t i = 1; i <= co; i++) {
        /* colour the tops so 1000 stacks do not all hit one cache set */
        uint64_t *top = (uint64_t *)(mem + stk * i - 64 * (i % 16));
        *--top = 0;
        *--top = (uint64_t)(uintptr_t)co_main;
        for (int k = 0; k < 6; k++)
            *--top = 0;
        if (fp)
            *--top = 0x0000037f00001f80ull;
        g_sp[i] = top;
    }
    uint64_t rounds = n / (co + 1);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t t0 = now_ns();
        uint64_t r = pass ? rounds : rounds / 10 + 1;
        for (uint64_t i = 0; i < r; i++) {
            g_cur = 1;
            g_sw(&g_sp[0], g_sp[1]);
        }
        uint64_t t1 = now_ns();
        if (pass) {
            report(1, r * (co + 1), (double)(t1 - t0) / (double)(r * (co + 1)));
        }
    }
}

/* ---- allocator, atomics, clock, syscalls, pages */
static void bench_malloc(uint64_t n, uint64_t burst)
{
    void **p = malloc(burst * sizeof *p);
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n / burst; i++) {
        for (uint64_t j = 0; j < burst; j++) {
            p[j] = malloc(128);
            *(volatile char *)p[j] = 1;
        }
        for (uint64_t j = 0; j < burst; j++)
            free(p[j]);
    }
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

static void bench_cas(uint64_t n)
{
    static _Atomic uint64_t x;
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t e = i;
        atomic_compare_exchange_strong(&x, &e, i + 1);
    }
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

static void bench_fence(uint64_t n)
{
    static _Atomic uint64_t x;
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        atomic_store_explicit(&x, i, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
    }
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

static void bench_clock(uint64_t n)
{
    uint64_t s = 0, t0 = now_ns();
    for (uint64_t i = 0; i < n; i++)
        s += now_ns();
    uint64_t t1 = now_ns();
    if (s == 1)
        puts("");
    report(1, n, (double)(t1 - t0) / (double)n);
}

static void bench_tsc(uint64_t n)
{
    uint64_t s = 0, t0 = now_ns();
    for (uint64_t i = 0; i < n; i++)
        s += __builtin_ia32_rdtsc();
    uint64_t t1 = now_ns();
    if (s == 1)
        puts("");
    report(1, n, (double)(t1 - t0) / (double)n);
}

static void bench_syscall(uint64_t n)
{
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++)
        syscall(SYS_getppid);
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

/* map a 64 KiB stack, touch its top page, unmap it */
static void bench_stack_map(uint64_t n)
{
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        p[65535] = 1;
        munmap(p, 65536);
    }
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

/* first touch of a page inside one big mapping */
static void bench_page_fault(uint64_t n)
{
    char *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++)
        p[i * 4096] = 1;
    report(1, n, (double)(now_ns() - t0) / (double)n);
}

static void *thread_nop(void *a)
{
    return a;
}

static void bench_thread(uint64_t n)
{
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread_nop, NULL);
        pthread_join(t, NULL);
    }
    report(2, n, (double)(now_ns() - t0) / (double)n);
}

/* ---- two cores */
static struct {
    _Alignas(128) _Atomic uint32_t v;
} g_line, g_line2;
static _Alignas(128) _Atomic uint64_t g_t1;
static _Atomic int g_stop;
static uint64_t g_n;

static void *bounce_peer(void *a)
{
    (void)a;
    pin(1);
    for (uint64_t i = 0; i < g_n; i++) {
        while (atomic_load_explicit(&g_line.v, memory_order_relaxed) != 1)
            ;
        atomic_exchange(&g_line.v, 0);
    }
    return NULL;
}

/* round trip: 0 -> 1 by us, 1 -> 0 by the other core, one cache line */
static void bench_bounce(uint64_t n)
{
    pthread_t t;
    g_n = n;
    pin(0);
    pthread_create(&t, NULL, bounce_peer, NULL);
    usleep(1000);
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        atomic_exchange(&g_line.v, 1);
        while (atomic_load_explicit(&g_line.v, memory_order_relaxed) != 0)
            ;
    }
    uint64_t t1 = now_ns();
    pthread_join(t, NULL);
    report(2, n, (double)(t1 - t0) / (double)n);
}

static void *cas_peer(void *a)
{
    (void)a;
    pin(1);
    for (uint64_t i = 0; i < g_n; i++)
        atomic_fetch_add(&g_line2.v, 1);
    return NULL;
}

static void bench_contended_add(uint64_t n)
{
    pthread_t t;
    g_n = n;
    pin(0);
    pthread_create(&t, NULL, cas_peer, NULL);
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++)
        atomic_fetch_add(&g_line2.v, 1);
    pthread_join(t, NULL);
    report(2, 2 * n, (double)(now_ns() - t0) / (double)(2 * n));
}

static long futex(_Atomic uint32_t *u, int op, uint32_t v)
{
    return syscall(SYS_futex, u, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0);
}

static _Atomic uint32_t g_seq;
static int g_peer_cpu = 1;

static void *futex_peer(void *a)
{
    (void)a;
    pin(g_peer_cpu);
    uint32_t seen = 0;
    while (!atomic_load(&g_stop)) {
        while (atomic_load(&g_seq) == seen)
            futex(&g_seq, FUTEX_WAIT, seen);
        uint64_t t = now_ns();
        seen++;
        atomic_store(&g_t1, t);
    }
    return NULL;
}

/* A on cpu 0 spins gap_us (B goes to sleep on cpu 1), stamps, wakes, keeps
   spinning until B has published its own stamp */
static void bench_futex(uint64_t n, uint64_t gap_us)
{
    pthread_t t;
    uint32_t *v = calloc(n, sizeof *v);
    double call = 0;
    pin(0);
    pthread_create(&t, NULL, futex_peer, NULL);
    usleep(10000);
    for (uint64_t i = 0; i < n; i++) {
        spin_ns(gap_us * 1000);
        atomic_store(&g_t1, 0);
        if (i + 1 == n)
            atomic_store(&g_stop, 1);
        uint64_t t0 = now_ns();
        atomic_fetch_add(&g_seq, 1);
        futex(&g_seq, FUTEX_WAKE, 1);
        call += (double)(now_ns() - t0);
        uint64_t t1;
        while (!(t1 = atomic_load(&g_t1)))
            relax();
        v[i] = (uint32_t)(t1 > t0 ? t1 - t0 : 0);
    }
    pthread_join(t, NULL);
    report_latencies(2, v, n, call / (double)n);
}

static int g_efd, g_epfd;

static void *eventfd_peer(void *a)
{
    (void)a;
    pin(1);
    while (!atomic_load(&g_stop)) {
        struct epoll_event ev;
        if (epoll_wait(g_epfd, &ev, 1, -1) != 1)
            continue;
        uint64_t t = now_ns(), c;
        if (read(g_efd, &c, 8) != 8)
            continue;
        atomic_store(&g_t1, t);
    }
    return NULL;
}

static void bench_eventfd(uint64_t n, uint64_t gap_us)
{
    pthread_t t;
    uint32_t *v = calloc(n, sizeof *v);
    double call = 0;
    g_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    g_epfd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(g_epfd, EPOLL_CTL_ADD, g_efd, &ev);
    pin(0);
    pthread_create(&t, NULL, eventfd_peer, NULL);
    usleep(10000);
    for (uint64_t i = 0; i < n; i++) {
        spin_ns(gap_us * 1000);
        atomic_store(&g_t1, 0);
        if (i + 1 == n)
            atomic_store(&g_stop, 1);
        uint64_t one = 1, t0 = now_ns();
        if (write(g_efd, &one, 8) != 8)
            abort();
        call += (double)(now_ns() - t0);
        uint64_t t1;
        while (!(t1 = atomic_load(&g_t1)))
            relax();
        v[i] = (uint32_t)(t1 > t0 ? t1 - t0 : 0);
    }
    pthread_join(t, NULL);
    report_latencies(2, v, n, call / (double)n);
}

/* two threads on ONE cpu hand a futex back and forth: the kernel's own
   thread switch, round trip */
static _Atomic uint32_t g_a, g_b;

static void *samecore_peer(void *a)
{
    (void)a;
    pin(0);
    for (uint64_t i = 0; i < g_n; i++) {
        while (atomic_load(&g_a) != i + 1)
            futex(&g_a, FUTEX_WAIT, (uint32_t)i);
        atomic_store(&g_b, (uint32_t)(i + 1));
        futex(&g_b, FUTEX_WAKE, 1);
    }
    return NULL;
}

static void bench_samecore(uint64_t n)
{
    pthread_t t;
    g_n = n;
    pin(0);
    pthread_create(&t, NULL, samecore_peer, NULL);
    uint64_t t0 = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        atomic_store(&g_a, (uint32_t)(i + 1));
        futex(&g_a, FUTEX_WAKE, 1);
        while (atomic_load(&g_b) != i + 1)
            futex(&g_b, FUTEX_WAIT, (uint32_t)i);
    }
    uint64_t t1 = now_ns();
    pthread_join(t, NULL);
    report(1, n, (double)(t1 - t0) / (double)n);
}

/* how late does the kernel itself come back from a sleep of 1 ms?
   kind 0: clock_nanosleep with the default 50 us timer slack; kind 1:
   epoll_pwait2, same slack; kind 2: timerfd in epoll (has no slack); kind 3:
   clock_nanosleep with the slack set to 1 ns; kind 4: epoll_pwait2, likewise */
static void bench_ksleep(uint64_t n, int kind)
{
    uint32_t *v = calloc(n, sizeof *v);
    int ep = epoll_create1(EPOLL_CLOEXEC), tf = -1;
    if (kind >= 3)
        prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    if (kind == 2) {
        tf = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        struct epoll_event ev = {.events = EPOLLIN};
        epoll_ctl(ep, EPOLL_CTL_ADD, tf, &ev);
    }
    for (uint64_t i = 0; i < n; i++) {
        struct timespec d = {0, 1000000};
        uint64_t t0 = now_ns();
        if (kind == 0 || kind == 3) {
            clock_nanosleep(CLOCK_MONOTONIC, 0, &d, NULL);
        } else if (kind == 1 || kind == 4) {
            struct epoll_event ev;
            syscall(SYS_epoll_pwait2, ep, &ev, 1, &d, NULL, 0);
        } else {
            struct itimerspec it = {.it_value = d};
            struct epoll_event ev;
            uint64_t c;
            timerfd_settime(tf, 0, &it, NULL);
            epoll_wait(ep, &ev, 1, -1);
            if (read(tf, &c, 8) != 8)
                abort();
        }
        uint64_t e = now_ns() - t0;
        v[i] = (uint32_t)(e > 1000000 ? e - 1000000 : 0);
    }
    report_latencies(1, v, n, -1);
}

static uint64_t count(uint64_t otherwise)
{
    return (uint64_t)yard_arg("n", (int64_t)otherwise);
}

static bool is(const char *name)
{
    return strcmp(yard.workload, name) == 0;
}

static bool run_one_core(void)
{
    if (is("switch2"))
        bench_switch(count(40000000), 1, 0);
    else if (is("switch2_jmp"))
        bench_switch(count(40000000), 1, 2);
    else if (is("switch2_fp"))
        bench_switch(count(40000000), 1, 1);
    else if (is("switch1000"))
        bench_switch(count(20000000), 999, 0);
    else if (is("switch1000_jmp"))
        bench_switch(count(20000000), 999, 2);
    else if (is("malloc128"))
        bench_malloc(count(20000000), 1);
    else if (is("malloc128_burst1000"))
        bench_malloc(count(20000000), 1000);
    else if (is("cas"))
        bench_cas(count(50000000));
    else if (is("store_fence"))
        bench_fence(count(50000000));
    else if (is("clock_gettime"))
        bench_clock(count(10000000));
    else if (is("rdtsc"))
        bench_tsc(count(20000000));
    else if (is("syscall"))
        bench_syscall(count(5000000));
    else if (is("stack_mmap"))
        bench_stack_map(count(200000));
    else if (is("page_fault"))
        bench_page_fault(count(200000));
    else
        return false;
    return true;
}

static bool run_kernel(void)
{
    uint64_t gap_us = (uint64_t)yard_arg("gap_us", 200);
    if (is("pthread"))
        bench_thread(count(20000));
    else if (is("line_bounce"))
        bench_bounce(count(5000000));
    else if (is("contended_add"))
        bench_contended_add(count(10000000));
    else if (is("futex_wake"))
        bench_futex(count(5000), gap_us);
    else if (is("eventfd_wake"))
        bench_eventfd(count(5000), gap_us);
    else if (is("futex_samecore"))
        bench_samecore(count(300000));
    else if (is("ksleep_nanosleep"))
        bench_ksleep(count(1000), 0);
    else if (is("ksleep_epoll_pwait2"))
        bench_ksleep(count(1000), 1);
    else if (is("ksleep_timerfd"))
        bench_ksleep(count(1000), 2);
    else if (is("ksleep_nanosleep_slack1"))
        bench_ksleep(count(1000), 3);
    else if (is("ksleep_epoll_pwait2_slack1"))
        bench_ksleep(count(1000), 4);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    yard_begin(argc, argv, "floor", "gcc " __VERSION__);
    return run_one_core() || run_kernel() ? 0 : yard_no_workload();
}
