/* SPDX-License-Identifier: MIT */
/* The row of the io_uring driver; see conform.h. */
#include "conform/conform.h"
#include "io/uring/uring.h"

static int create(struct sni_driver **out)
{
    return sni_uring_create(NULL, out);
}

static const char *why_not(void)
{
    static struct sni_uring_features features;
    return sni_uring_probe(&features) == 0 ? NULL : features.reason;
}

const struct conform_driver conform_driver = {
    .name = "uring", .create = create, .why_not = why_not};
