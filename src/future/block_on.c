/* SPDX-License-Identifier: MIT */
/* block_on.c - poll one future to its end on this thread, with no runtime.
 *
 * `word_` of an sn_idle has two bits: ACTIVE while a call uses it, WOKEN since a waker was
 * woken. WOKEN is cleared *before* a poll, never behind it, so a wake during the poll stays
 * visible; the caller sleeps only by its hook, which looks at WOKEN and sleeps in one step.
 * That is the whole argument against a lost wake: after the clear, a wake leaves the bit set
 * and calls notify, and the hook either sees the bit or is notified.
 *
 * The waker's data is the sn_idle itself, uncounted: that is why it must outlive its wakers,
 * and why a wake after the end is harmless (ACTIVE is clear: -ESRCH). */
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

#include <sinew/future.h>

enum {
    ACTIVE = 1,
    WOKEN = 2,
};

static int idle_wake(void *data)
{
    sn_idle *idle = data;
    if (idle == NULL)
        return 0; /* whoever polls without an sn_idle polls again anyway */
    /* release: what the event wrote is visible to the poll after the acquire in clear_woken */
    uint32_t before = sni_atomic_fetch_or(&idle->word_, WOKEN, release);
    if (!(before & ACTIVE))
        return -ESRCH;
    if (!(before & WOKEN) && idle->notify != NULL)
        idle->notify(idle);
    return 0;
}

static const sn_waker_vtable idle_vtable = {.wake_by_ref = idle_wake};

bool sn_idle_woken(const sn_idle *idle)
{
    /* relaxed: only a hint to sleep or not; clear_woken acquires */
    return (sni_atomic_load(&idle->word_, relaxed) & WOKEN) != 0;
}

static void clear_woken(sn_idle *idle)
{
    /* acquire: pairs with the release in idle_wake */
    sni_atomic_fetch_and(&idle->word_, ~(uint32_t)WOKEN, acquire);
}

/* Between two polls: until a wake; without an sn_idle, just a moment. */
static void wait_for_wake(sn_idle *idle)
{
    if (idle == NULL) {
        sni_cpu_pause();
        return;
    }
    while (!sn_idle_woken(idle)) {
        if (idle->wait != NULL)
            idle->wait(idle);
        else
            sni_cpu_pause();
    }
    clear_woken(idle);
}

int sn_block_on_simple(sn_future *fut, sn_idle *idle)
{
    /* acquire, release below: one caller's use of the hooks is over before the next begins */
    if (idle != NULL && sni_atomic_fetch_or(&idle->word_, ACTIVE, acquire) & ACTIVE)
        return sni_misuse(-EBUSY, "an sn_idle is used by two calls of sn_block_on_simple at once");

    sn_waker waker = {&idle_vtable, idle};
    sn_cx cx = {&waker};
    sn_poll p;
    while (sn_poll_pending(p = sn_future_poll(fut, &cx)))
        wait_for_wake(idle);

    /* release: pairs with the acquire above in the next call */
    if (idle != NULL)
        sni_atomic_exchange(&idle->word_, 0, release);
    return p.value;
}
