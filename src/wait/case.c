/* SPDX-License-Identifier: MIT */
/* case.c - relays: from the claim of one waiter to that of another.
 *
 * A relay lies in a case, or beside it, and the one who passes a claim on touches it until the
 * very end; but the select may have gone on since, served by another case. So `over` is the last
 * that is written, and whoever wants the memory back waits for it, if it cannot know otherwise
 * (a driver completes under a lock; a task does not). */
#include "wait/case.h"

static void pass_on(void *who)
{
    struct sni_relay *relay = who;
    (void)sni_wait_claim(&relay->vigil->waiter, SNI_SAYS_TOLD + relay->of->index);
    sni_atomic_store(&relay->over, 1, release); /* release: pairs with sni_relay_settle */
}

static void pass_on_last(void *who)
{
    struct sni_relay *relay = who;
    (void)sni_wait_claim_last(&relay->vigil->waiter, SNI_SAYS_TOLD + relay->of->index);
    sni_atomic_store(&relay->over, 1, release); /* release: as above */
}

static const struct sni_exec_ops relay_ops = {
    .resume = pass_on, .resume_last = pass_on_last, .resumes_late = true};

void sni_relay_begin(struct sni_relay *relay, struct sni_waiter *w, struct sni_case *of,
                     struct sni_vigil *vigil)
{
    relay->of = of;
    relay->vigil = vigil;
    sni_atomic_store(&relay->over, 0, relaxed); /* relaxed: nobody else knows it yet */
    sni_wait_begin_with(w, &relay_ops, relay);
}

void sni_relay_published(struct sni_relay *relay, struct sni_waiter *w)
{
    if (sni_wait_published(w)) /* claimed in between: nobody else passes it on */
        pass_on(relay);
}

void sni_relay_settle(const struct sni_relay *relay)
{
    /* acquire: pairs with the release above; it is a few instructions away */
    for (unsigned round = 0; sni_atomic_load(&relay->over, acquire) == 0; round++)
        sni_plat_back_off(round);
}
