/* SPDX-License-Identifier: MIT */
/* context.h - a place to go on from, and going there.
 *
 * Words: a *context* is where some code has stopped: its stack pointer, with everything that
 * the calling convention lets a function count on saved on its stack. A *switch* stops here
 * and goes on there. A thread's own stack has a context too; it comes to be by switching away
 * from it and needs no preparation but zeroing.
 *
 * A context that was switched away from may go on on any thread, but on one at a time, and
 * only after the switch is complete: who makes it known to others does so from the context
 * that the switch went to. The switch is a plain function to the compiler, which may therefore
 * keep the address of a thread-local variable across it; house code reaches those through
 * functions that are not inlined.
 *
 * What a switch keeps: the registers that functions must preserve. What it does not: the
 * rounding mode and other words that control floating point, unless both ends use the _fp form;
 * signal masks; errno.
 *
 * Shadow stacks (x86-64 CET, aarch64 GCS) would have to be switched too, which costs a mapping
 * for each fiber and cannot be tested on the machines we have. The assembly does not carry the
 * linker's mark for them, so that programs made with Sinew run without; where a process is
 * forced to use them all the same, sni_context_check says no instead of letting it crash.
 * Indirect branch tracking (IBT, BTI, Zicfilp) works. */
#ifndef SINEW_FIBER_CONTEXT_H
#define SINEW_FIBER_CONTEXT_H

#include "fiber/sanitize.h"

#include <stdint.h>

struct sni_context {
    void *sp;           /* at offset 0: the assembly knows. Valid while switched away     */
    SNI_CONTEXT_NOTE_() /* what a sanitizer wants to know; nothing in a plain build       */
};

/* Can contexts be switched on this thread at all?
 *
 * Returns  0          yes
 *          -ENOTSUP   the thread has a shadow stack */
int sni_context_check(void);

/* Prepare `ctx` so that the first switch to it calls entry(pass) on the stack [lo, hi), with
 * the `pass` of that switch. `entry` must not return: it ends by sni_context_exit.
 *
 * Returns  0          ready
 *          -ENOTSUP   see sni_context_check
 * Owns: the stack, until the context has exited or sni_context_finish. */
int sni_context_make(struct sni_context *ctx, void *stack_lo, void *stack_hi, sni_context_fn entry);

/* Undo sni_context_make for a context that is never to go on again: not started, or abandoned
 * where it stopped. Not needed, and harmless, after sni_context_exit. */
static inline void sni_context_finish(struct sni_context *ctx);

/* Stop here, filling `from`, and go on at `to`. Returns when somebody switches to `from`, with
 * the `pass` of that switch. */
static inline void *sni_context_switch(struct sni_context *from, struct sni_context *to,
                                       void *pass);

/* land(sni_context_switch(from, to, pass)), for the end of a function: then there is neither a
 * frame nor a wrongly predicted return between the switch and the caller of that function. */
static inline void sni_context_switch_last(struct sni_context *from, struct sni_context *to,
                                           void *pass, sni_context_fn land);

/* A switch that is the last one: `from` will never go on. Its stack may be used for something else
 * as soon as `to` goes on. */
_Noreturn static inline void sni_context_exit(struct sni_context *from, struct sni_context *to,
                                              void *pass);

/* fn(pass), here, but as if nobody had called it: who unwinds the stack comes no further. An
 * exception that `fn` lets out therefore terminates the program, as one that leaves a fiber does,
 * however much a caller of this one catches. (Where there is no assembly it is a plain call.) */
void sni_context_call(sni_context_fn fn, void *pass);

/* ---- floating point control -------------------------------------------------------- */

/* MXCSR and the x87 control word, FPCR, or fcsr, of the calling thread, in a form of its own. */
uint64_t sni_fp_control_get(void);
void sni_fp_control_set(uint64_t words);

/* sni_context_switch that keeps the words of the caller, and only its own. `outer` belongs to
 * the fiber: it holds what the words were around it, is set to sni_fp_control_get() when the
 * fiber starts, and what others run with is put back before they go on. */
static inline void *sni_context_switch_fp(struct sni_context *from, struct sni_context *to,
                                          void *pass, uint64_t *outer)
{
    uint64_t mine = sni_fp_control_get();
    if (mine != *outer) /* writing is what costs */
        sni_fp_control_set(*outer);
    void *got = sni_context_switch(from, to, pass);
    *outer = sni_fp_control_get(); /* perhaps another thread's */
    if (mine != *outer)
        sni_fp_control_set(mine);
    return got;
}

/* ---- the machine's part, src/fiber/arch -------------------------------------------- */

/* The bare switch. */
void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass);

/* The same, and then land(). */
void sni_context_leave(struct sni_context *from, struct sni_context *to, void *pass,
                       sni_context_fn land);

/* The bare make. */
void sni_context_prepare(struct sni_context *ctx, void *stack_lo, void *stack_hi,
                         sni_context_fn entry);

/* Nonzero if this thread's returns are checked against a shadow stack. */
int sni_context_shadowed(void);

/* ---- with and without a sanitizer -------------------------------------------------- */

static inline void sni_context_finish(struct sni_context *ctx)
{
    sni_note_finish(ctx);
}

static inline void *sni_context_switch(struct sni_context *from, struct sni_context *to, void *pass)
{
    return sni_note_switch(from, to, pass);
}

static inline void sni_context_switch_last(struct sni_context *from, struct sni_context *to,
                                           void *pass, sni_context_fn land)
{
#ifdef SINEW_FIBER_NOTES
    land(sni_note_switch(from, to, pass));
#else
    sni_context_leave(from, to, pass, land);
#endif
}

_Noreturn static inline void sni_context_exit(struct sni_context *from, struct sni_context *to,
                                              void *pass)
{
    sni_note_exit(from, to, pass);
    __builtin_trap(); /* somebody switched to a context that has exited */
}

#endif
