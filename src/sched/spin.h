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
 * A worker that searches spins in the same way for what other workers may queue (hunt): a wake that
 * ends its sleep soon is worth a spin, one that comes later is not.
 *
 * Where others want the processor, spinning is no use at all: those we wait for are perhaps among
 * them, and cannot run before we stop. So every few milliseconds a worker compares the time that it
 * was awake with the time that it had on a processor. If a good part of it is missing, there is a
 * *crowd*, and the worker is *shy*: for a while it sleeps at once. (That it was taken off the
 * processor says too little: the kernel's own threads do so for some microseconds, many times a
 * second.) */
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
    SNI_SPIN_USUAL_MAX = (SNI_SPIN_MAX - SNI_SPIN_MORE) / 2,
};

/* Its worker's alone. */
struct sni_spin {
    int credit;
    int skipped; /* sleeps without credit, since the last try */
    int usual;   /* looks that it took */
};

/* Nothing is known yet. */
static inline void sni_spin_init(struct sni_spin *spin)
{
    *spin = (struct sni_spin){.usual = SNI_SPIN_USUAL_MAX};
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

/* ---- others who want the processor ------------------------------------------------------- */

enum {
    SNI_CROWD_ASK_NS = 4000000,  /* between two questions                                     */
    SNI_CROWD_PART = 8,          /* the part of its time that it may lose without being shy   */
    SNI_CROWD_SHY_NS = 20000000, /* then it does not spin                                     */
};

/* Its worker's alone; zeroed at first. */
struct sni_crowd {
    int64_t asked_ns; /* when it was last asked, and                        */
    int64_t cpu_ns;   /* how much it had had on a processor by then         */
    int64_t slept_ns; /* since then                                         */
    int64_t shy_until_ns;
};

/* Its thread has slept for so long. */
static inline void sni_crowd_slept(struct sni_crowd *crowd, int64_t ns)
{
    crowd->slept_ns += ns;
}

/* Is it time to ask? */
static inline bool sni_crowd_is_due(const struct sni_crowd *crowd, int64_t now_ns)
{
    return now_ns - crowd->asked_ns >= SNI_CROWD_ASK_NS;
}

/* Its thread has had so much on a processor, since it began; -1 if that is not known. */
static inline void sni_crowd_ask(struct sni_crowd *crowd, int64_t now_ns, int64_t cpu_ns)
{
    int64_t awake_ns = now_ns - crowd->asked_ns - crowd->slept_ns;
    int64_t lost_ns = awake_ns - (cpu_ns - crowd->cpu_ns);
    if (crowd->asked_ns != 0 && cpu_ns >= 0 && lost_ns > awake_ns / SNI_CROWD_PART)
        crowd->shy_until_ns = now_ns + SNI_CROWD_SHY_NS;
    crowd->asked_ns = now_ns;
    crowd->cpu_ns = cpu_ns;
    crowd->slept_ns = 0;
}

static inline bool sni_crowd_makes_shy(const struct sni_crowd *crowd, int64_t now_ns)
{
    return now_ns < crowd->shy_until_ns;
}

#endif
