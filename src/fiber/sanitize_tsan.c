/* SPDX-License-Identifier: MIT */
/* sanitize_tsan.c - contexts in builds with ThreadSanitizer.
 *
 * To the sanitizer each fiber is a thread of its own, which some real thread lends its
 * processor to. A switch is announced just before it happens, from the function that makes it:
 * the sanitizer counts function entries and exits for each fiber, and between the announcement
 * and the switch none may occur. An announced switch orders memory as a hand-over does, which
 * it is.
 *
 * gcc's sanitizer has room for about 8,000 fibers, clang's for more than 70,000. */
#include "fiber/context.h"

/* <sanitizer/tsan_interface.h>, which not every compiler brings. */
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

static void *arrive(struct sni_context *came)
{
    void *pass = came->note.pass;
    if (came->note.exiting)
        sni_note_finish(came);
    return pass;
}

static void start(void *value)
{
    struct sni_context *came = value;
    struct sni_context *self = came->note.to;
    sni_context_fn entry = self->note.entry;
    entry(arrive(came));
    __builtin_trap();
}

sni_context_fn sni_note_make(struct sni_context *ctx, void *lo, void *hi, sni_context_fn entry)
{
    (void)lo;
    (void)hi;
    ctx->note = (struct sni_context_note){.entry = entry, .handle = __tsan_create_fiber(0)};
    ctx->note.registered = true;
    return start;
}

void sni_note_finish(struct sni_context *ctx)
{
    if (!ctx->note.registered)
        return;
    ctx->note.registered = false;
    __tsan_destroy_fiber(ctx->note.handle);
}

static void depart(struct sni_context *from, struct sni_context *to, void *pass, bool exiting)
{
    from->note.handle = __tsan_get_current_fiber();
    from->note.to = to;
    from->note.pass = pass;
    from->note.exiting = exiting;
}

void *sni_note_switch(struct sni_context *from, struct sni_context *to, void *pass)
{
    depart(from, to, pass, false);
    __tsan_switch_to_fiber(to->note.handle, 0);
    return arrive(sni_context_jump(from, to, from));
}

void sni_note_exit(struct sni_context *from, struct sni_context *to, void *pass)
{
    depart(from, to, pass, true);
    __tsan_switch_to_fiber(to->note.handle, 0);
    (void)sni_context_jump(from, to, from);
}
