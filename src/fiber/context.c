/* SPDX-License-Identifier: MIT */
/* context.c - the part of contexts that is the same on every machine: whether they are
 * possible, and telling a sanitizer of new ones. See context.h and arch/. */
#include "fiber/context.h"

#include "base/assert.h"

#include <sinew/errno.h>
#include <stddef.h>

_Static_assert(offsetof(struct sni_context, sp) == 0, "the assembly takes sp from offset 0");

int sni_context_check(void)
{
    return sni_context_shadowed() ? -ENOTSUP : 0;
}

int sni_context_make(struct sni_context *ctx, void *stack_lo, void *stack_hi, sni_context_fn entry)
{
    int rc = sni_context_check();
    if (rc < 0)
        return rc;
    sni_assert_debug((char *)stack_hi - (char *)stack_lo >= 1024,
                     "a stack is too small for its first frame");
    sni_context_prepare(ctx, stack_lo, stack_hi, sni_note_make(ctx, stack_lo, stack_hi, entry));
    return 0;
}
