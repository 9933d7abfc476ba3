/* SPDX-License-Identifier: MIT */
/* none.c - io_uring where liburing was not found when this was built: there is none.
 * Whoever asks takes the next driver, as on a kernel without io_uring. */
#include "io/uring/uring.h"

#include <sinew/errno.h>

int sni_uring_probe(struct sni_uring_features *out)
{
    *out = (struct sni_uring_features){.reason = "unbuilt"};
    return -ENOSYS;
}

void sni_uring_expect(void)
{
}

int sni_uring_create(const struct sni_uring_config *config, struct sni_driver **out)
{
    (void)config;
    (void)out;
    return -ENOSYS;
}
