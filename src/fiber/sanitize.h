/* SPDX-License-Identifier: MIT */
/* sanitize.h - what tools that watch memory must be told about stacks that come and go.
 *
 * AddressSanitizer and ThreadSanitizer keep records per stack and lose their way when the stack
 * pointer jumps. A build with one of them compiles sanitize_asan.c or sanitize_tsan.c and
 * defines SINEW_FIBER_NOTES for everything that includes this file; each context then carries
 * a note, and switches go through that file. A plain build has neither: what stands here for it
 * is the bare switch and nothing else.
 *
 * Valgrind needs no other build: it is told about each stack once, when the stack is made, by
 * valgrind.c (or valgrind_none.c where its header is missing). */
#ifndef SINEW_FIBER_SANITIZE_H
#define SINEW_FIBER_SANITIZE_H

#include <stdbool.h>
#include <stddef.h>

struct sni_context;

/* What a context begins with; the argument is the `pass` of the first switch to it. */
typedef void (*sni_context_fn)(void *first_pass);

/* ---- valgrind ---------------------------------------------------------------------- */

bool sni_valgrind_active(void); /* are we running under it? */
unsigned sni_valgrind_stack_register(void *lo, void *hi);
void sni_valgrind_stack_deregister(unsigned id);

/* ---- address and thread sanitizer -------------------------------------------------- */

#ifdef SINEW_FIBER_NOTES

/* Touched by whoever touches the context: there is always just one. */
struct sni_context_note {
    void *handle;   /* ASan: the fake stack saved; TSan: the fiber                  */
    const void *lo; /* the stack, and its bytes; a thread's is learned on arrival   */
    size_t bytes;
    sni_context_fn entry;   /* what the first switch is to call                             */
    struct sni_context *to; /* of the switch away from here: where it went,                */
    void *pass;             /* what it passed,                                              */
    bool exiting;           /* and whether it was the last                                  */
    bool registered;        /* made and not finished                                        */
};

#define SNI_CONTEXT_NOTE_() struct sni_context_note note;

/* Puts the note in order and gives the function that the first switch must call instead. */
sni_context_fn sni_note_make(struct sni_context *ctx, void *lo, void *hi, sni_context_fn entry);
void sni_note_finish(struct sni_context *ctx);
void *sni_note_switch(struct sni_context *from, struct sni_context *to, void *pass);
void sni_note_exit(struct sni_context *from, struct sni_context *to, void *pass);

#else

#define SNI_CONTEXT_NOTE_()

void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass);

static inline sni_context_fn sni_note_make(struct sni_context *ctx, void *lo, void *hi,
                                           sni_context_fn entry)
{
    (void)ctx;
    (void)lo;
    (void)hi;
    return entry;
}

static inline void sni_note_finish(struct sni_context *ctx)
{
    (void)ctx;
}

static inline void *sni_note_switch(struct sni_context *from, struct sni_context *to, void *pass)
{
    return sni_context_jump(from, to, pass);
}

static inline void sni_note_exit(struct sni_context *from, struct sni_context *to, void *pass)
{
    (void)sni_context_jump(from, to, pass);
}

#endif

#endif
