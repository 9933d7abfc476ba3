/* SPDX-License-Identifier: MIT */
/* The yardstick on Sinew, by coroutine tasks: no stack, a small record each.
 *
 *     yard_sinew_coro <workload> [key=value ...]
 *
 * WORKLOADS.md says what each workload is. The task that measures is a fiber; all that it spawns
 * are coroutines. W8 timer_cancel and W11 need no such form: they are in fiber.c. */
#include "sinew.h"

#include <stdatomic.h>

/* ---- W1 ------------------------------------------------------------------------------------- */

typedef struct empty {
    sn_coro coro;
} empty;

SN_CORO(empty, self)
{
    SN_BEGIN(self);
    SN_END();
}

static int spawn_join(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    int64_t batch = yard_arg("batch", 1000);
    sn_task **t = yard_alloc(batch, sizeof(sn_task *));
    int rc = 0;
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i += batch) {
        for (int64_t k = 0; k < batch; k++) {
            empty frame;
            t[k] = sn_spawn_coro(empty, &frame);
        }
        rc |= yard_join_all(t, batch);
    }
    yard_report(n, (double)(yard_now() - t0) / (double)n, ",\"batch\":%lld", (long long)batch);
    return rc;
}

/* ---- W2 ------------------------------------------------------------------------------------- */

typedef struct yielder {
    sn_coro coro;
    int64_t left;
} yielder;

SN_CORO(yielder, self)
{
    SN_BEGIN(self);
    for (; self->left > 0; self->left--)
        SN_YIELD();
    SN_END();
}

static int yields(void *arg)
{
    int64_t n = yard_arg("n", 4000000);
    int64_t tasks = yard_arg("tasks", 2);
    int64_t each = n / tasks;
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        t[i] = sn_spawn_coro(yielder, &(yielder){.left = each});
    int rc = yard_join_all(t, tasks);
    yard_report(n, (double)(yard_now() - t0) / (double)(each * tasks), ",\"tasks\":%lld",
                (long long)tasks);
    return rc;
}

/* ---- W3 ------------------------------------------------------------------------------------- */

typedef struct player {
    sn_coro coro;
    sn_chan *in;
    sn_chan *out;
    int64_t left;
    uint64_t v;
    uint64_t *result; /* where the one that serves leaves the last value; NULL: the other one */
    sn_chan_op op;
    int rc;
} player;

SN_CORO(player, self)
{
    SN_BEGIN(self);
    for (; self->left > 0 && self->rc == 0; self->left--) {
        if (self->result != NULL)
            SN_AWAIT_INTO(self->rc, sn_chan_send_op(&self->op, self->out, &self->v));
        SN_AWAIT(sn_chan_recv_op(&self->op, self->in, &self->v));
        if (self->result == NULL) {
            self->v++;
            SN_AWAIT_INTO(self->rc, sn_chan_send_op(&self->op, self->out, &self->v));
        }
    }
    if (self->result != NULL)
        *self->result = self->v;
    SN_RETURN(self->rc);
    SN_END();
}

static int pingpong(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    sn_chan *a = yard_chan(0);
    sn_chan *b = yard_chan(0);
    uint64_t v = 0;
    (void)arg;
    int64_t t0 = yard_now();
    player back = {.in = a, .out = b, .left = n};
    player serves = {.in = b, .out = a, .left = n, .result = &v};
    sn_task *t[2] = {sn_spawn_coro(player, &back), sn_spawn_coro(player, &serves)};
    yard_check(yard_join_all(t, 2) == 0 && v == (uint64_t)n, "pingpong");
    yard_report_result(n, t0, yard_now(), v);
    return 0;
}

/* ---- W4 ------------------------------------------------------------------------------------- */

typedef struct producer {
    sn_coro coro;
    sn_chan *ch;
    uint64_t next;
    uint64_t end;
    sn_chan_op op;
    int rc;
} producer;

SN_CORO(producer, self)
{
    SN_BEGIN(self);
    for (; self->next < self->end && self->rc == 0; self->next++)
        SN_AWAIT_INTO(self->rc, sn_chan_send_op(&self->op, self->ch, &self->next));
    SN_RETURN(self->rc);
    SN_END();
}

typedef struct consumer {
    sn_coro coro;
    sn_chan *ch;
    uint64_t v;
    uint64_t sum;
    uint64_t *result;
    sn_chan_op op;
    int rc;
} consumer;

SN_CORO(consumer, self)
{
    SN_BEGIN(self);
    for (;;) {
        SN_AWAIT_INTO(self->rc, sn_chan_recv_op(&self->op, self->ch, &self->v));
        if (self->rc != 0)
            break;
        self->sum += self->v;
    }
    *self->result = self->sum;
    SN_END();
}

static int channel(void *arg)
{
    int64_t n = yard_arg("n", 4000000);
    int64_t prod = yard_arg("prod", 1);
    int64_t cons = yard_arg("cons", 1);
    uint64_t each = (uint64_t)(n / prod);
    uint64_t *sums = yard_alloc(cons, sizeof(*sums));
    sn_task **t = yard_alloc(prod + cons, sizeof(sn_task *));
    sn_chan *ch = yard_chan((size_t)yard_arg("cap", 64));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < prod; i++) {
        producer frame = {.ch = ch, .next = (uint64_t)i * each, .end = (uint64_t)(i + 1) * each};
        t[i] = sn_spawn_coro(producer, &frame);
    }
    for (int64_t i = 0; i < cons; i++) {
        consumer frame = {.ch = ch, .result = &sums[i]};
        t[prod + i] = sn_spawn_coro(consumer, &frame);
    }
    int rc = yard_join_all(t, prod);
    rc |= sn_chan_close(ch);
    rc |= yard_join_all(t + prod, cons);
    int64_t t1 = yard_now();
    uint64_t sum = 0;
    for (int64_t i = 0; i < cons; i++)
        sum += sums[i];
    yard_check(rc == 0 && sum == yard_sum_below(each * (uint64_t)prod), "chan");
    yard_report_result(n, t0, t1, sum);
    return 0;
}

/* ---- W5 ------------------------------------------------------------------------------------- */

static atomic_llong blocked;

static bool all_blocked(int64_t n)
{
    return atomic_load(&blocked) >= n;
}

typedef struct dreamer {
    sn_coro coro;
    sn_sleep_state nap;
} dreamer;

SN_CORO(dreamer, self)
{
    SN_BEGIN(self);
    atomic_fetch_add(&blocked, 1);
    SN_AWAIT(sn_sleep_op(&self->nap, sn_after(SN_S(120))));
    SN_END();
}

typedef struct receiver {
    sn_coro coro;
    sn_chan *ch;
    uint64_t v;
    sn_chan_op op;
} receiver;

SN_CORO(receiver, self)
{
    SN_BEGIN(self);
    atomic_fetch_add(&blocked, 1);
    SN_AWAIT(sn_chan_recv_op(&self->op, self->ch, &self->v));
    SN_END();
}

static int mem(void *arg)
{
    int64_t n = yard_arg("n", 100000);
    const char *kind = yard_word("kind", "sleep");
    bool sleeps = strcmp(kind, "sleep") == 0;
    sn_chan *ch = yard_chan(0);
    int rc = 0;
    (void)arg;
    long before_kb = yard_status_kb("VmRSS");
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < n; i++) {
        dreamer dreams; /* what it needs it writes itself */
        receiver waits = {.ch = ch};
        rc |= sleeps ? sn_spawn_coro_detached(dreamer, &dreams)
                     : sn_spawn_coro_detached(receiver, &waits);
    }
    yard_check(rc == 0, "mem");
    yard_sinew_settle(n, t0, before_kb, kind, all_blocked);
    return 0;
}

/* ---- W6 ------------------------------------------------------------------------------------- */

typedef struct sky {
    sn_coro coro;
    uint64_t first;
    uint64_t leaves;
    uint64_t *result;
    uint64_t sums[10];
    sn_task *t[10];
    unsigned at;
    int rc;
    sn_join_state join;
} sky;

/* A leaf needs no room for children. */
typedef struct leaf {
    sn_coro coro;
    uint64_t first;
    uint64_t *result;
} leaf;

SN_CORO(leaf, self)
{
    SN_BEGIN(self);
    *self->result = self->first;
    SN_END();
}

static sn_task *spawn_sky(uint64_t first, uint64_t leaves, uint64_t *result);

SN_CORO(sky, self)
{
    SN_BEGIN(self);
    for (unsigned i = 0; i < 10; i++)
        self->t[i] =
            spawn_sky(self->first + i * (self->leaves / 10), self->leaves / 10, &self->sums[i]);
    for (self->at = 0; self->at < 10; self->at++)
        SN_AWAIT_INTO(self->rc, sn_join_op(&self->join, self->t[self->at], NULL));
    *self->result = 0;
    for (unsigned i = 0; i < 10; i++)
        *self->result += self->sums[i];
    SN_END();
}

static sn_task *spawn_sky(uint64_t first, uint64_t leaves, uint64_t *result)
{
    leaf small = {.first = first, .result = result};
    if (leaves == 1)
        return sn_spawn_coro(leaf, &small);
    sky frame; /* the rest of it is written before it is read */
    frame.first = first;
    frame.leaves = leaves;
    frame.result = result;
    return sn_spawn_coro(sky, &frame);
}

static int skynet(void *arg)
{
    int64_t n = yard_arg("n", 1000000);
    uint64_t sum = 0;
    (void)arg;
    int64_t t0 = yard_now();
    int rc = sn_join(spawn_sky(0, (uint64_t)n, &sum), NULL);
    int64_t t1 = yard_now();
    yard_check(rc == 0 && sum == yard_sum_below((uint64_t)n), "skynet");
    yard_report_result(n, t0, t1, sum);
    return 0;
}

/* ---- W7 ------------------------------------------------------------------------------------- */

/* fib(n-1) is a task; fib(n-2) is computed "in the same task", which without a stack is a loop:
 * fib(n) = fib(n-1) + fib(n-3) + ... + fib(0 or 1), each a task, joined from the last to the first
 * as returning would. */
enum { FIB_DEPTH = 16 };

typedef struct fib {
    sn_coro coro;
    int n;
    int tasks;
    int sum;
    int one;
    sn_join_state join;
    sn_task *t[FIB_DEPTH];
} fib;

static sn_task *spawn_fib(int n);

SN_CORO(fib, self)
{
    SN_BEGIN(self);
    self->tasks = 0;
    for (; self->n >= 2; self->n -= 2)
        self->t[self->tasks++] = spawn_fib(self->n - 1);
    self->sum = self->n;
    while (self->tasks > 0) {
        self->tasks--;
        SN_AWAIT_INTO(self->one, sn_join_op(&self->join, self->t[self->tasks], NULL));
        self->sum += self->one;
    }
    SN_RETURN(self->sum);
    SN_END();
}

static sn_task *spawn_fib(int n)
{
    fib frame; /* the rest of it is written before it is read */
    frame.n = n;
    return sn_spawn_coro(fib, &frame);
}

static int fibonacci(void *arg)
{
    int64_t n = yard_arg("n", 30);
    (void)arg;
    yard_check(n / 2 <= FIB_DEPTH, "n");
    int64_t t0 = yard_now();
    int result = sn_join(spawn_fib((int)n), NULL);
    int64_t t1 = yard_now();
    yard_check((uint64_t)result == yard_fib(n), "fib");
    yard_report_result((int64_t)yard_fib(n + 1) - 1, t0, t1, (uint64_t)result);
    return 0;
}

/* ---- W8 ------------------------------------------------------------------------------------- */

typedef struct sleeper {
    sn_coro coro;
    uint32_t *late;
    int64_t left;
    int64_t ms;
    int64_t from;
    sn_deadline begin;
    sn_sleep_state nap;
} sleeper;

SN_CORO(sleeper, self)
{
    SN_BEGIN(self);
    SN_AWAIT(sn_sleep_op(&self->nap, self->begin));
    for (; self->left > 0; self->left--) {
        self->from = yard_now();
        SN_AWAIT(sn_sleep_op(&self->nap, sn_after(SN_MS(self->ms))));
        *self->late++ = yard_saturate(yard_now() - self->from - SN_MS(self->ms));
    }
    SN_END();
}

static int timer_sleep(void *arg)
{
    int64_t tasks = yard_arg("tasks", 100000);
    int64_t rounds = yard_arg("rounds", 100);
    int64_t ms = yard_arg("ms", 1);
    uint32_t *late = yard_alloc(tasks * rounds, sizeof(*late));
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    int64_t t0 = yard_now() + SN_MS(yard_arg("warm_ms", 2000));
    sn_deadline begin = sn_after(t0 - yard_now());
    (void)arg;
    for (int64_t i = 0; i < tasks; i++) {
        sleeper frame = {.late = late + i * rounds, .left = rounds, .ms = ms, .begin = begin};
        t[i] = sn_spawn_coro(sleeper, &frame);
    }
    yard_check(yard_join_all(t, tasks) == 0, "timer_sleep");
    yard_report_sleeps(late, tasks, rounds, t0, yard_now());
    return 0;
}

/* ---- W9 ------------------------------------------------------------------------------------- */

static sn_mutex mutex = SN_MUTEX_INIT;
static uint64_t counter; /* guarded by it */

typedef struct locker {
    sn_coro coro;
    int64_t left;
    sn_sync_state lock;
} locker;

SN_CORO(locker, self)
{
    SN_BEGIN(self);
    for (; self->left > 0; self->left--) {
        SN_AWAIT(sn_mutex_lock_op(&self->lock, &mutex));
        counter++;
        (void)sn_mutex_unlock(&mutex);
    }
    SN_END();
}

static int locks(void *arg)
{
    int64_t tasks = yard_arg("tasks", 1000);
    int64_t iters = yard_arg("iters", 1000);
    sn_task **t = yard_alloc(tasks, sizeof(sn_task *));
    (void)arg;
    int64_t t0 = yard_now();
    for (int64_t i = 0; i < tasks; i++)
        t[i] = sn_spawn_coro(locker, &(locker){.left = iters});
    int rc = yard_join_all(t, tasks);
    int64_t t1 = yard_now();
    yard_check(rc == 0 && counter == (uint64_t)(tasks * iters), "mutex");
    yard_report_result(tasks * iters, t0, t1, counter);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct yard_workload workloads[] = {
        {"spawn_join", spawn_join, false},
        {"yield", yields, false},
        {"pingpong", pingpong, false},
        {"chan", channel, false},
        {"mem", mem, false},
        {"skynet", skynet, true},
        {"fib", fibonacci, true},
        {"timer_sleep", timer_sleep, false},
        {"mutex", locks, false},
    };
    yard_begin(argc, argv, "sinew-coro", yard_sinew_version());
    return yard_sinew_main(workloads, sizeof(workloads) / sizeof(workloads[0]));
}
