/* SPDX-License-Identifier: MIT */
/* The two rings that are shared with the kernel (R80), without a driver around them. Only built
 * where liburing is. */
#include "uring_ring.h"

#include "io/uring/ring.h"

/* Newer versions of liburing set what a request needs, and leave the rest of an entry as it was. */
TEST(an_entry_is_empty_whatever_was_in_it)
{
    static const struct io_uring_sqe empty;
    require_uring();
    struct sni_ring ring;
    struct sni_uring_features features;
    CHECK_EQ(sni_ring_init(&ring, &(struct sni_uring_config){.entries = 2}, &features), 0);
    for (int i = 0; i < 4; i++) {
        struct io_uring_sqe *sqe = sni_ring_put(&ring);
        CHECK(sqe != NULL);
        CHECK_EQ(memcmp(sqe, &empty, sizeof(empty)), 0);
        memset(sqe, 0xff, sizeof(*sqe));
        if (i == 1)
            ring.tail = 0; /* as if the kernel had taken both */
    }
    CHECK(sni_ring_put(&ring) == NULL);
    sni_ring_finish(&ring);
}
