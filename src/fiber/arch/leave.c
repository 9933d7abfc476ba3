/* SPDX-License-Identifier: MIT */
/* leave.c - sni_context_leave for processors whose assembly has none of its own.
 *
 * A function that ends by it has a frame here, and that is all the difference. */
#include "fiber/context.h"

void sni_context_leave(struct sni_context *from, struct sni_context *to, void *pass,
                       sni_context_fn land)
{
    land(sni_context_jump(from, to, pass));
}
