/* SPDX-License-Identifier: MIT */
/* region.c (linux) - see region.h.
 *
 * A process with limited address space (RLIMIT_AS, 32 bits) gets less: the sizes below are
 * tried from the top. The smallest still holds some ten thousand tasks. */
#include "plat/region.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "plat/memory.h"
#include "plat/thread.h"

#include <sinew/errno.h>
#include <stdint.h>

static struct sni_mutex lock; /* held while reserving */
struct sni_region sni_region;

static int reserve_what_fits(void)
{
    static const unsigned char shifts[] = {36, 34, 32, 30, 28, 26, 24};
    for (size_t i = 0; i < sizeof(shifts); i++) {
        if (shifts[i] >= sizeof(size_t) * 8 - 1)
            continue;
        void *base;
        size_t bytes = (size_t)1 << shifts[i];
        if (sni_plat_reserve(&base, bytes) < 0)
            continue;
        sni_region.bytes = bytes;
        /* release: sni_region.bytes, to the acquire in sni_plat_region */
        sni_atomic_store(&sni_region.base, base, release);
        return 0;
    }
    return -ENOMEM;
}

static SNI_COLD int reserve_once(void)
{
    sni_mutex_lock(&lock);
    /* relaxed: it is written under this lock only */
    int rc = sni_atomic_load(&sni_region.base, relaxed) != NULL ? 0 : reserve_what_fits();
    sni_mutex_unlock(&lock);
    return rc;
}

int sni_plat_region(void **base, size_t *bytes)
{
    /* acquire: pairs with the release in reserve_what_fits */
    *base = sni_atomic_load(&sni_region.base, acquire);
    if (sni_unlikely(*base == NULL)) {
        int rc = reserve_once();
        if (rc < 0)
            return rc;
        *base = sni_atomic_load(&sni_region.base, acquire); /* acquire: as above */
    }
    *bytes = sni_region.bytes;
    return 0;
}
