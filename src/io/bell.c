/* SPDX-License-Identifier: MIT */
/* bell.c - the token, and the two ways to sleep.
 *
 *     QUIET      the owner is awake, and nobody has rung
 *     RUNG       somebody has
 *     IN_KERNEL  the owner sleeps, or is about to, where bell->fd wakes it
 *     ON_WORD    the owner sleeps, or is about to, on the word
 *
 *     ring     exchange RUNG in; if that took IN_KERNEL or ON_WORD out, wake in that way
 *     begin    QUIET -> IN_KERNEL by compare and swap, which RUNG makes fail
 *     end      exchange QUIET in
 *
 * No ring is lost: it either stands before the compare and swap, which then fails, or takes out
 * the value that says how to wake. The word tells the way, not the presence of a descriptor: a
 * bell may get one while its owner sleeps on the word.
 *
 * A ringer wakes after its exchange, so the descriptor may become readable when the sleep has
 * ended for another reason, even in the next one. That one then ends early, once. It is cleared
 * whenever the kernel told of it, and only then. Clearing may swallow two rings: both exchanged
 * before that sleep ends, so the end of it answers both. */
#include "io/bell.h"

#include "base/assert.h"
#include "plat/event.h"
#include "plat/thread.h"

#include <sinew/errno.h>

enum {
    QUIET,
    RUNG,
    IN_KERNEL,
    ON_WORD,
};

void sni_bell_init(struct sni_bell *bell)
{
    *bell = (struct sni_bell){.word = {QUIET}, .fd = -1};
}

int sni_bell_open(struct sni_bell *bell)
{
    if (bell->fd >= 0)
        return 0;
    int fd = sni_plat_event_open();
    if (fd < 0)
        return fd;
    bell->fd = fd;
    return 0;
}

void sni_bell_finish(struct sni_bell *bell)
{
    if (bell->fd >= 0)
        sni_plat_event_close(bell->fd);
    bell->fd = -1;
}

void sni_bell_pass(struct sni_bell *bell)
{
    /* acquire: pairs with the release in ring. An RMW, so that no token is overwritten */
    (void)sni_atomic_exchange(&bell->word, QUIET, acquire);
}

static bool begin(struct sni_bell *bell, uint32_t way)
{
    uint32_t found = QUIET;
    /* release: shows bell->fd to the ringer that takes `way` out; relaxed: pass acquires */
    if (sni_atomic_cas(&bell->word, &found, way, release, relaxed))
        return true;
    sni_assert(found == RUNG, "two threads sleep in one driver");
    sni_bell_pass(bell);
    return false;
}

bool sni_bell_begin(struct sni_bell *bell)
{
    sni_assert_debug(bell->fd >= 0, "a sleep that nobody could end");
    return begin(bell, IN_KERNEL);
}

void sni_bell_end(struct sni_bell *bell, bool told)
{
    if (told)
        sni_plat_event_clear(bell->fd);
    sni_bell_pass(bell);
}

void sni_bell_sleep(struct sni_bell *bell, int64_t until_ns)
{
    if (!begin(bell, ON_WORD))
        return;
    while (sni_plat_park(&bell->word.raw_, ON_WORD, until_ns) != -ETIMEDOUT) {
        /* relaxed: pass acquires */
        if (sni_atomic_load(&bell->word, relaxed) != ON_WORD)
            break;
    }
    sni_bell_pass(bell);
}

void sni_bell_ring(struct sni_bell *bell)
{
    /* acq_rel: releases what the ringer wrote, to pass; acquires bell->fd from begin. An RMW
     * even if there is a token already, so that what this caller wrote is seen too */
    uint32_t found = sni_atomic_exchange(&bell->word, RUNG, acq_rel);
    if (found == IN_KERNEL)
        sni_plat_event_set(bell->fd);
    else if (found == ON_WORD)
        sni_plat_unpark(&bell->word.raw_, 1);
}
