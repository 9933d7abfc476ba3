/* SPDX-License-Identifier: MIT */
/* sanitize_asan.c - contexts in builds with AddressSanitizer (and LeakSanitizer in it).
 *
 * The sanitizer knows where the current stack is, and may keep locals in a "fake stack" beside
 * it. A switch is announced before it with the bounds of the stack it goes to, and confirmed
 * after it, when the sanitizer tells in return which stack it came from: that is how we learn
 * the bounds of the threads' own stacks.
 *
 * A fiber that ends by a switch leaves red zones of its frames behind, and LeakSanitizer does
 * not look for pointers in stacks it does not know. So a context's stack is cleaned when it is
 * made and when it ends, and is a root of reachability in between.
 *
 * Nothing here may have frames of the sanitizer's own making: at an exit they would be gone
 * before the other side reads them. */
#include "fiber/context.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

#define BARE __attribute__((no_sanitize_address))

/* On the stack of `self`, which goes on: `came` is the context of which the switch came. */
static BARE void *arrive(struct sni_context *self, struct sni_context *came)
{
    const void *lo;
    size_t bytes;
    __sanitizer_finish_switch_fiber(self->note.handle, &lo, &bytes);
    self->note.handle = NULL;
    void *pass = came->note.pass;
    if (came->note.exiting) {
        sni_note_finish(came);
    } else if (!came->note.registered) {
        came->note.lo = lo;
        came->note.bytes = bytes;
    }
    return pass;
}

static BARE void start(void *value)
{
    struct sni_context *came = value;
    struct sni_context *self = came->note.to;
    void *pass = arrive(self, came);
    self->note.entry(pass);
    __builtin_trap();
}

sni_context_fn sni_note_make(struct sni_context *ctx, void *lo, void *hi, sni_context_fn entry)
{
    size_t bytes = (size_t)((char *)hi - (char *)lo);
    ctx->note = (struct sni_context_note){.lo = lo, .bytes = bytes, .entry = entry};
    ctx->note.registered = true;
    __asan_unpoison_memory_region(lo, bytes);
    __lsan_register_root_region(lo, bytes);
    return start;
}

void sni_note_finish(struct sni_context *ctx)
{
    if (!ctx->note.registered)
        return;
    ctx->note.registered = false;
    __lsan_unregister_root_region(ctx->note.lo, ctx->note.bytes);
    __asan_unpoison_memory_region(ctx->note.lo, ctx->note.bytes);
}

static BARE void *leave(struct sni_context *from, struct sni_context *to, void *pass, bool exiting)
{
    from->note.to = to;
    from->note.pass = pass;
    from->note.exiting = exiting;
    __sanitizer_start_switch_fiber(exiting ? NULL : &from->note.handle, to->note.lo,
                                   to->note.bytes);
    return sni_context_jump(from, to, from);
}

BARE void *sni_note_switch(struct sni_context *from, struct sni_context *to, void *pass)
{
    return arrive(from, leave(from, to, pass, false));
}

BARE void sni_note_exit(struct sni_context *from, struct sni_context *to, void *pass)
{
    (void)leave(from, to, pass, true);
}
