/* SPDX-License-Identifier: MIT */
/* ucontext.c - contexts for processors without assembly here, by the C library's ucontext.
 *
 * A stopped context's sp points to a struct parked. For one that has switched away it is a
 * local of that switch; for one that has not started it stands at the top of its stack. So
 * nothing is allocated, and any context can stop anywhere.
 *
 * Slow: each switch makes a system call to set the signal mask, which therefore travels with
 * the context here, as do the words that control floating point. The latter are kept whichever
 * form of the switch is used, so asking for them has nothing to do. */
#define _XOPEN_SOURCE 700
#include "fiber/context.h"

#include "base/assert.h"

#include <stdint.h>
#include <ucontext.h>

struct parked {
    ucontext_t at;
    void *pass;           /* set by who switches here */
    sni_context_fn entry; /* of a new context         */
};

void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass)
{
    struct parked here;
    from->sp = &here;
    struct parked *there = to->sp; /* perhaps the same */
    there->pass = pass;
    int rc = swapcontext(&here.at, &there->at);
    sni_assert(rc == 0, "the C library cannot switch contexts");
    from->sp = NULL; /* it runs: there is no place to go on from */
    return here.pass;
}

/* makecontext passes integers: the pointer goes in two halves. */
static void start(unsigned high, unsigned low)
{
    struct parked *self = (struct parked *)((uintptr_t)high << 16 << 16 | low); // NOLINT
    self->entry(self->pass);
    __builtin_trap();
}

void sni_context_prepare(struct sni_context *ctx, void *stack_lo, void *stack_hi,
                         sni_context_fn entry)
{
    uintptr_t top = ((uintptr_t)stack_hi - sizeof(struct parked)) & ~(uintptr_t)63;
    struct parked *self = (struct parked *)top; // NOLINT
    int rc = getcontext(&self->at);
    sni_assert(rc == 0, "the C library cannot make contexts");
    self->at.uc_stack.ss_sp = stack_lo;
    self->at.uc_stack.ss_size = top - (uintptr_t)stack_lo;
    self->at.uc_link = NULL;
    self->entry = entry;
    makecontext(&self->at, (void (*)(void))start, 2, (unsigned)(top >> 16 >> 16), (unsigned)top);
    ctx->sp = self;
}

void sni_context_call(sni_context_fn fn, void *pass)
{
    fn(pass); /* C cannot say that it is the outermost: unwinding goes on in the caller */
}

int sni_context_shadowed(void)
{
    return 0; /* the C library knows */
}

uint64_t sni_fp_control_get(void)
{
    return 0;
}

void sni_fp_control_set(uint64_t words)
{
    (void)words;
}
