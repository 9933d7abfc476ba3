/* SPDX-License-Identifier: MIT */
/* spin.h - how often a worker that waits for the world looks before it sleeps. Pure.
 *
 * Sleeping and being woken costs more than some tens of microseconds of looking. So a worker that
 * has operations under way looks again and again, if that has paid lately: each time that something
 * came in time is worth two that nothing did, up to a limit, and so is a sleep that was short; one
 * without credit tries only now and then. One that answers at once is quick, and one that waits
 * long does not burn the processor.
 *
 * Nor does a worker look much longer than it usually has to: how many looks it took is remembered,
 * at once if they were many and slowly if they were few, and about twice as many are made. For a
 * server whose clients answer within some looks, and then not at all because somebody else has
 * their processor, each such time would otherwise cost as much as ten answers. If it sleeps and
 * should not have, it looks twice as long the next time.
 *
 * Where others want the processor, spinning is no use at all: those we wait for are perhaps among
 * them, and cannot run before we stop. A thread that gives its processor up now and then is not
 * taken off it; so if it was taken off lately, there is a crowd, and the worker is *shy*: it sleeps
 * at once, some times, before it tries again. */
#ifndef SINEW_SCHED_SPIN_H
#define SINEW_SCHED_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SNI_SPIN_MAX = 150,      /* looks before sleeping                                    */
    SNI_SPIN_MORE = 8,       /* looks, than twice the usual                              */
    SNI_SPIN_CREDIT_MAX = 8, /* times that nothing came                                  */
    SNI_SPIN_TRY = 16,       /* without credit: every so many sleeps it is tried         */
    SNI_SPIN_FADES = 8,      /* the part of what was too much that is forgotten each time */
    SNI_SPIN_SHY = 32,       /* sleeps without a spin, after one in a crowd              */
    SNI_SPIN_USUAL_MAX = (SNI_SPIN_MAX - SNI_SPIN_MORE) / 2,
};

/* Its worker's alone. */
struct sni_spin {
    int credit;
    int skipped; /* sleeps without credit, since the last try */
    int usual;   /* looks that it took */
    int shy;     /* sleeps without a spin that are to come */
    uint64_t preempted;
};

/* Nothing is known yet. */
static inline void sni_spin_init(struct sni_spin *spin)
{
    *spin = (struct sni_spin){.usual = SNI_SPIN_USUAL_MAX};
}

/* Is the next sleep to come without a spin? */
static inline bool sni_spin_is_shy(struct sni_spin *spin)
{
    if (spin->shy == 0)
        return false;
    spin->shy--;
    return true;
}

/* While it spins: its thread was taken off a processor so many times, since it began. True: since
 * the last call, too. */
static inline bool sni_spin_is_crowded(struct sni_spin *spin, uint64_t preempted)
{
    bool crowded = preempted != spin->preempted;
    spin->preempted = preempted;
    if (crowded)
        spin->shy = SNI_SPIN_SHY;
    return crowded;
}

/* How often to look before the sleep that is to come, at least once. */
static inline int sni_spin_looks(struct sni_spin *spin)
{
    if (spin->credit == 0 && ++spin->skipped < SNI_SPIN_TRY)
        return 1;
    spin->skipped = 0;
    return 2 * spin->usual + SNI_SPIN_MORE;
}

/* Something came at the look with this number, from 1; what the first look finds, number 0, had
 * come before and tells nothing. */
static inline void sni_spin_found(struct sni_spin *spin, int look)
{
    if (look == 0)
        return;
    int credit = spin->credit + 2;
    spin->credit = credit < SNI_SPIN_CREDIT_MAX ? credit : SNI_SPIN_CREDIT_MAX;
    if (look > spin->usual)
        spin->usual = look < SNI_SPIN_USUAL_MAX ? look : SNI_SPIN_USUAL_MAX;
    else
        spin->usual -= (spin->usual - look + SNI_SPIN_FADES - 1) / SNI_SPIN_FADES;
}

static inline void sni_spin_missed(struct sni_spin *spin)
{
    spin->credit -= spin->credit > 0;
}

/* It slept for so short a time that it should have gone on looking. */
static inline void sni_spin_slept_short(struct sni_spin *spin)
{
    sni_spin_found(spin, 2 * spin->usual + 1);
}

#endif
