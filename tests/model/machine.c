/* SPDX-License-Identifier: MIT */
/* machine.c - one execution: virtual threads on stacks of their own, and who of them can run.
 *
 * Only one virtual thread runs at a time, on the one real thread. It runs until model_step, where
 * the actors that could make the next step are listed and the search picks one; so between two
 * steps nothing is interrupted. When nobody can go on and somebody is not done, that is a
 * deadlock, which is also how a lost wake-up shows.
 *
 * The system's park and unpark, and the mutex's rare half, are here too. A park with a deadline may
 * time out whenever the search likes: it is always able to go on. The executor of a thread is kept
 * here as well: the library's thread-local would be one for all virtual threads. */
#include "model/model_priv.h"

#include "base/atomic.h"
#include "harness.h"
#include "plat/clock.h"
#include "plat/thread.h"
#include "wait/current.h"

#include <sinew/assert.h>
#include <sinew/errno.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum {
    STACK_BYTES = 64 * 1024,
    CHECKER = MODEL_THREADS_MAX, /* runs check(), alone */
};

enum state { READY, PARKED, DONE };

struct thread {
    ucontext_t context;
    void (*body)(void);
    enum state state;
    const uint32_t *word; /* PARKED: on this */
    bool timed;           /* PARKED: may time out */
    bool unparked;
    bool yields;      /* others first, until one has written something */
    bool is_vain;     /* and it has looked at all that is written: let it look last of all */
    unsigned version; /* of the memory, when it yielded last */
    struct sni_exec *exec;
};

static struct {
    const struct model_options *options;
    struct model_result *result;
    struct thread threads[MODEL_THREADS_MAX + 1];
    int count;
    int current;
    unsigned steps;
    unsigned version; /* of the memory: each write makes a new one */
    bool failed;
    ucontext_t outside;
} machine;

static _Alignas(16) char stacks[MODEL_THREADS_MAX + 1][STACK_BYTES];

int model_running(void)
{
    return machine.current == CHECKER ? MODEL_NOBODY : machine.current;
}

bool model_owns(const void *at)
{
    uintptr_t from = (uintptr_t)stacks[machine.current];
    return (uintptr_t)at - from < STACK_BYTES;
}

unsigned model_self(void)
{
    return (unsigned)machine.current;
}

const struct model_options *model_options(void)
{
    return machine.options;
}

/* Leave the execution for good; the virtual threads stay as they are. */
static _Noreturn void leave(void)
{
    setcontext(&machine.outside);
    FAIL("setcontext failed");
}

_Noreturn void model_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(machine.result->message, MODEL_MESSAGE_BYTES, fmt, args);
    va_end(args);
    if (machine.current == MODEL_NOBODY)
        FAIL("in setup: %s", machine.result->message);
    machine.failed = true;
    leave();
}

/* The library's own assertions end the execution too. */
void sn_assert_failed(const char *sentence, const char *file, int line)
{
    model_fail("%s:%d: %s", file, line, sentence);
}

static bool can_run(const struct thread *thread)
{
    return thread->state == READY || (thread->state == PARKED && thread->timed);
}

static _Noreturn void fail_deadlock(void)
{
    char text[MODEL_MESSAGE_BYTES] = "deadlock, nobody can go on:";
    for (int i = 0; i < machine.count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, " thread %d is %s%s", i,
                 machine.threads[i].state == DONE ? "done" : "parked",
                 i + 1 < machine.count ? "," : "");
    }
    model_fail("%s", text);
}

/* List who can make the next step, the current thread first. */
static unsigned list_actors(int *actors, bool *current_goes_on)
{
    unsigned count = 0;
    int current = machine.current;
    *current_goes_on = current >= 0 && can_run(&machine.threads[current]) &&
                       machine.threads[current].state == READY && !machine.threads[current].yields;
    if (*current_goes_on)
        actors[count++] = current;
    for (int i = 0; i < machine.count; i++) {
        if (!(*current_goes_on && i == current) && can_run(&machine.threads[i]) &&
            !machine.threads[i].yields)
            actors[count++] = i;
    }
    bool anybody = count > 0;
    for (int i = 0; i < machine.count; i++) {
        anybody = anybody || can_run(&machine.threads[i]);
        if (model_buffer_used(i))
            actors[count++] = MODEL_BUFFER + i;
    }
    if (!anybody)
        return 0;
    if (count > 0) /* those that wait for others wait for stores too: they do become visible */
        return count;
    for (int vain = 0; vain < 2 && count == 0; vain++) { /* only those are left */
        for (int i = 0; i < machine.count; i++) {
            if (can_run(&machine.threads[i]) && machine.threads[i].is_vain == vain)
                actors[count++] = i;
        }
    }
    return count;
}

/* All threads are done, or stuck. */
static _Noreturn void finish(void)
{
    for (int i = 0; i < machine.count; i++) {
        if (machine.threads[i].state != DONE)
            fail_deadlock();
        model_buffer_flush(i);
    }
    leave();
}

/* Who runs next, by the search; stores that become visible on the way do so. */
static int pick(void)
{
    for (;;) {
        int actors[MODEL_ACTORS_MAX];
        bool current_goes_on;
        unsigned count = list_actors(actors, &current_goes_on);
        if (count == 0)
            finish();
        int actor = model_decide(actors, count, current_goes_on);
        if (actor < MODEL_BUFFER)
            return actor;
        model_buffer_flush_one(actor - MODEL_BUFFER);
        machine.current = MODEL_NOBODY; /* it has been preempted: any thread may be next */
    }
}

/* Give the processor to whom the search picks; comes back when that is us again. */
static void reschedule(void)
{
    int self = machine.current;
    if (++machine.steps > MODEL_STEPS_MAX)
        model_fail("more than %d steps: a livelock", MODEL_STEPS_MAX);
    int next = pick();
    machine.current = next;
    machine.threads[next].yields = false;
    if (next == self)
        return;
    if (self == MODEL_NOBODY)
        setcontext(&machine.threads[next].context);
    else
        swapcontext(&machine.threads[self].context, &machine.threads[next].context);
}

void model_step(void)
{
    if (model_running() != MODEL_NOBODY)
        reschedule();
}

void model_memory_changed(void)
{
    machine.version++;
    for (int i = 0; i < machine.count; i++) {
        machine.threads[i].yields = false;
        machine.threads[i].is_vain = false;
    }
}

void model_yield(void)
{
    struct thread *thread = &machine.threads[machine.current];
    thread->yields = true;
    thread->is_vain = thread->version == machine.version;
    thread->version = machine.version;
    model_step();
}

unsigned model_choose(unsigned count)
{
    return model_decide_value(count);
}

static void thread_main(void)
{
    int self = machine.current;
    machine.threads[self].body();
    machine.threads[self].state = DONE;
    if (self == CHECKER)
        leave();
    reschedule();
    FAIL("a virtual thread that has ended runs");
}

/* There in address sanitizer builds. A virtual thread is left where its last step was, so what the
 * sanitizer knows of its frames is never undone, and would be held against the next one. */
void __asan_unpoison_memory_region(const volatile void *from, size_t bytes) __attribute__((weak));

static void thread_start(int index, void (*body)(void))
{
    struct thread *thread = &machine.threads[index];
    if (__asan_unpoison_memory_region != NULL)
        __asan_unpoison_memory_region(stacks[index], STACK_BYTES);
    *thread = (struct thread){.body = body, .state = READY};
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stacks[index];
    thread->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&thread->context, thread_main, 0);
}

/* Run from the outside until leave(): the threads, or, as `first`, the one to begin with. */
static void enter(int first)
{
    volatile bool entered = false;
    getcontext(&machine.outside);
    if (entered)
        return;
    entered = true;
    machine.current = first;
    if (first == MODEL_NOBODY)
        reschedule();
    else
        setcontext(&machine.threads[first].context);
}

bool model_run(const struct model *model, const struct model_options *options,
               struct model_result *result)
{
    machine.options = options;
    machine.result = result;
    machine.current = MODEL_NOBODY;
    machine.count = 0;
    machine.steps = 0;
    machine.version = 1;
    machine.failed = false;
    model_memory_reset();
    model->setup();
    while (machine.count < MODEL_THREADS_MAX && model->threads[machine.count] != NULL) {
        thread_start(machine.count, model->threads[machine.count]);
        machine.count++;
    }
    enter(MODEL_NOBODY);
    if (!machine.failed && model->check != NULL) {
        thread_start(CHECKER, model->check);
        enter(CHECKER);
    }
    machine.current = MODEL_NOBODY;
    result->executions++;
    result->steps += machine.steps;
    result->failed = machine.failed;
    return !machine.failed;
}

/* ---- what src/plat/thread.h promises ----------------------------------------------------- */

int sni_plat_park(uint32_t *word, uint32_t expected, int64_t until_ns)
{
    model_step();
    int self = model_running();
    if (self == MODEL_NOBODY)
        model_fail("a park outside of the threads");
    struct thread *thread = &machine.threads[self];
    model_buffer_flush(self);
    if (*word != expected)
        return 0;
    thread->state = PARKED;
    thread->word = word;
    thread->timed = until_ns != INT64_MAX;
    thread->unparked = false;
    reschedule();
    thread->state = READY;
    return thread->unparked ? 0 : -ETIMEDOUT;
}

void sni_plat_unpark(uint32_t *word, int n)
{
    model_step();
    if (model_running() != MODEL_NOBODY)
        model_buffer_flush(model_running());
    for (int i = 0; i < machine.count && n > 0; i++) {
        struct thread *thread = &machine.threads[i];
        if (thread->state == PARKED && thread->word == word) {
            thread->state = READY;
            thread->unparked = true;
            n--;
        }
    }
}

int sni_plat_fence_all(void)
{
    model_step();
    if (model_is_planted(MODEL_PLANT_NO_FENCE, __func__))
        return 0;
    for (int i = 0; i < machine.count; i++)
        model_buffer_flush(i);
    return 0;
}

void sni_plat_back_off(unsigned round)
{
    (void)round;
    model_yield();
}

void sni_mutex_lock_slow(struct sni_mutex *m)
{
    while (sni_atomic_exchange(&m->word_, SNI_MUTEX_WANTED, acquire) != SNI_MUTEX_FREE)
        (void)sni_plat_park(&m->word_.raw_, SNI_MUTEX_WANTED, INT64_MAX);
}

void sni_mutex_unlock_slow(struct sni_mutex *m)
{
    sni_plat_unpark(&m->word_.raw_, 1);
}

/* ---- what src/wait/current.h promises ------------------------------------------------------ */

struct sni_exec *sni_exec_current(void)
{
    return machine.current == MODEL_NOBODY ? NULL : machine.threads[machine.current].exec;
}

uintptr_t sni_exec_thread(void)
{
    return (uintptr_t)(machine.current + 2) * 8; /* all but 0 and SNI_SELF_CORO */
}

void sni_exec_set(struct sni_exec *exec)
{
    if (machine.current == MODEL_NOBODY)
        model_fail("an executor outside of the threads");
    machine.threads[machine.current].exec = exec;
    if (exec != NULL)
        exec->budget = INT_MAX; /* giving way would be one more thing to explore */
}

void sni_exec_rest(struct sni_exec *exec, int64_t until_ns)
{
    (void)until_ns;
    exec->budget = SNI_BUDGET;
}

uintptr_t sni_exec_spent(int64_t until_ns)
{
    sni_exec_rest(sni_exec_current(), until_ns);
    return sni_exec_self();
}

const char *sni_exec_place(uintptr_t who)
{
    (void)who;
    return NULL;
}

void sni_exec_set_place(const char *(*place)(uintptr_t who))
{
    (void)place;
}

int64_t sni_now_ns(void)
{
    return 1; /* time does not pass while interleavings are explored */
}

int64_t sni_plat_now_ns(void)
{
    return 1;
}
