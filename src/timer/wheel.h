/* SPDX-License-Identifier: MIT */
/* wheel.h - timers by the million, in slots by when they are due (R70).
 *
 * The wheel is pure: time is an argument, nothing is called back, nothing is allocated, and the
 * owner locks. Who waits does this, with whatever clock:
 *
 *     sni_wheel_add(wheel, &timer, now_ns + delay_ns);
 *     sleep until sni_wheel_next_ns(wheel), or until something else happens;
 *     while ((timer = sni_wheel_pop(wheel, now_ns)) != NULL)       a run
 *         fire it: it is disarmed, and may be added again here
 *
 * Times are nanoseconds of one monotonic clock, any int64_t, negative ones too. A timer is never
 * popped early. It is popped at the first run at or behind the first boundary of a tick that is not
 * before its time: less than one tick late, plus what the caller is late itself.
 *
 * Each function is O(1), but for two: sni_wheel_pop is so on average over the timers it handles,
 * each of which moves at most once per level; and a timer further away than 2^36 ticks (more than
 * two years, if a tick is a millisecond) is looked at once more for each such span in which another
 * such timer is due. How it works is told in wheel.c. */
#ifndef SINEW_TIMER_WHEEL_H
#define SINEW_TIMER_WHEEL_H

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_WHEEL_LEVELS = 6,
    SNI_WHEEL_SLOT_BITS = 6,
    SNI_WHEEL_SLOTS = 1 << SNI_WHEEL_SLOT_BITS,
};

/* A part of something that waits. Armed: in a wheel, from add until it is removed or popped; its
 * memory must stay where it is meanwhile. */
struct sni_timer {
    struct sni_list link; /* the wheel's                                  */
    int64_t at_ns;        /* as given to sni_wheel_add; read only         */
};

/* The slots: 6 KB, which are not touched before a timer needs them. */
struct sni_wheel_slots {
    struct sni_list lists[SNI_WHEEL_LEVELS * SNI_WHEEL_SLOTS];
};

/* It holds lists, so it may not move once it is initialised; it owns nothing, so it needs no end,
 * but a timer that is still armed must not be touched once the wheel, or its slots, are gone. */
struct sni_wheel {
    uint64_t now_;  /* the last time told, biased (wheel.c)                                  */
    uint64_t tick_; /* the tick in which that is: what was due up to it is in the list `due` */
    uint64_t last_; /* the last biased time that is ever reached; what is later never fires  */
    uint64_t mask_; /* the length of a tick, less one                                        */
    unsigned shift_;
    bool running_;       /* pop has not given NULL since the last time something was found due */
    size_t count_;       /* armed timers                                                       */
    uint64_t far_ticks_; /* while the list `far` holds something: none there is due earlier    */
    size_t ready_;       /* levels whose lists are initialised: the lowest ones                */
    uint64_t occupied_[SNI_WHEEL_LEVELS]; /* a bit per list of a level that is not empty       */
    struct sni_list far_, never_, due_;
    struct sni_list *lists_; /* of the slots */
};

/* An empty wheel over `slots`, which need no initial value, at `now_ns`. `tick_ns`, which is
 * positive, is rounded up to a power of two (a millisecond becomes 1.048576 ms), so that nothing is
 * ever divided; 2^62 is the largest. */
void sni_wheel_init(struct sni_wheel *wheel, struct sni_wheel_slots *slots, int64_t now_ns,
                    int64_t tick_ns);

/* The length of a tick as rounded by sni_wheel_init. */
int64_t sni_wheel_tick_ns(const struct sni_wheel *wheel);

/* Unarmed. */
void sni_timer_init(struct sni_timer *timer);

/* Arm `timer`, which must be unarmed, for `at_ns`. A time that has passed by the wheel's clock (the
 * latest one given to init or pop) is due at the next run. INT64_MAX, and whatever else lies in the
 * very last tick of an int64_t, is never due; the timer is armed nevertheless.
 *
 * Returns  when it is due: the boundary of a tick, the wheel's clock if its time had passed, or
 *          INT64_MAX. A run is worth while then, or at what sni_wheel_next_ns gave before,
 *          whichever is earlier */
static inline int64_t sni_wheel_add(struct sni_wheel *wheel, struct sni_timer *timer,
                                    int64_t at_ns);

/* Disarm `timer`, which is one of this wheel or unarmed. Returns whether it was armed: if not, it
 * was popped or never added. */
static inline bool sni_wheel_remove(struct sni_wheel *wheel, struct sni_timer *timer);

static inline bool sni_timer_is_armed(const struct sni_timer *timer);

/* Take out the next timer that is due at `now_ns`, disarmed, or give NULL. A `now_ns` that is
 * earlier than one given before counts as that one.
 *
 * Ticks come in their order, and timers of one tick in the order in which they were added. A timer
 * that was added when its time had passed counts as one of the tick in which it was added.
 *
 * A run ends when NULL is given, or when now_ns enters another tick. What is due is decided when a
 * run begins: a timer that is added later belongs to a later run, however long its time has passed.
 * So a run ends, whatever is added in it; then sni_wheel_next_ns tells if there is more to do. A
 * run need not be finished: what is left stays due, and comes first in the next. */
struct sni_timer *sni_wheel_pop(struct sni_wheel *wheel, int64_t now_ns);

/* When a run is worth while: INT64_MAX if no timer will ever be due, else a time at which something
 * is due or moves to a lower level, and before which nothing becomes due. Never earlier than the
 * wheel's clock; equal to it if something is due already. It is exact for the timers of the lowest
 * level (those due before the next multiple of 64 ticks) and for a timer that is alone in the
 * nearest slot that is occupied; else it is when that slot begins. So one that sleeps by it is
 * woken for nothing at most SNI_WHEEL_LEVELS times per timer. */
int64_t sni_wheel_next_ns(const struct sni_wheel *wheel);

/* Armed timers. */
static inline size_t sni_wheel_count(const struct sni_wheel *wheel);

/* Call `fn` for each of them, in no order. */
void sni_wheel_each(struct sni_wheel *wheel, void (*fn)(const struct sni_timer *timer, void *arg),
                    void *arg);

/* ---- what is done by the million, in its callers ------------------------------------------- */

/* The other half of sni_wheel_add: what has passed, is never due, or is far. */
int64_t sni_wheel_add_rare(struct sni_wheel *wheel, struct sni_timer *timer, int64_t at_ns);

/* See "Biased times" in wheel.c. */
static inline uint64_t sni_wheel_bias_(int64_t ns)
{
    return (uint64_t)ns ^ UINT64_C(1) << 63;
}

static inline int64_t sni_wheel_unbias_(uint64_t time)
{
    return (int64_t)(time ^ UINT64_C(1) << 63);
}

/* The tick at whose beginning `time` has been reached; not behind last_. */
static inline uint64_t sni_wheel_tick_of_(const struct sni_wheel *wheel, uint64_t time)
{
    return (time + wheel->mask_) >> wheel->shift_;
}

/* The level of a timer whose tick differs from the wheel's in `bits`; SNI_WHEEL_LEVELS or more if
 * it is beyond them. Most time-outs are some seconds long, and these, with the usual tick, are in
 * level 2. A processor that foresees the branch need not know the time to go on. */
static inline size_t sni_wheel_level_(uint64_t bits)
{
    const uint64_t least = UINT64_C(1) << 2 * SNI_WHEEL_SLOT_BITS;
    if (sni_likely(bits - least < (least << SNI_WHEEL_SLOT_BITS) - least))
        return 2;
    unsigned highest = 63u ^ (unsigned)__builtin_clzll(bits | 1);
    return highest * 43 >> 8; /* a sixth, exactly, of what is less than 64 */
}

/* Put an unlinked timer that is due at `tick`, which is not behind the wheel, where it belongs;
 * false if that is beyond the levels, or those that are ready. */
static inline bool sni_wheel_place_(struct sni_wheel *wheel, struct sni_timer *timer, uint64_t tick)
{
    size_t level = sni_wheel_level_(tick ^ wheel->tick_);
    if (sni_unlikely(level >= wheel->ready_))
        return false;
    size_t slot = tick >> level * SNI_WHEEL_SLOT_BITS & (SNI_WHEEL_SLOTS - 1);
    wheel->occupied_[level] |= UINT64_C(1) << slot;
    sni_list_push_back(&wheel->lists_[level * SNI_WHEEL_SLOTS + slot], &timer->link);
    return true;
}

static inline bool sni_timer_is_armed(const struct sni_timer *timer)
{
    return !sni_list_empty(&timer->link);
}

static inline size_t sni_wheel_count(const struct sni_wheel *wheel)
{
    return wheel->count_;
}

/* The usual half of sni_wheel_add, which gives its result in *due_ns; false, and nothing is done:
 * the other half is wanted. */
static inline bool sni_wheel_add_near(struct sni_wheel *wheel, struct sni_timer *timer,
                                      int64_t at_ns, int64_t *due_ns)
{
    sni_assert_debug(!sni_timer_is_armed(timer), "a timer is armed twice: remove it first");
    uint64_t at = sni_wheel_bias_(at_ns);
    if (sni_unlikely(at <= wheel->now_ || at > wheel->last_))
        return false;
    uint64_t tick = sni_wheel_tick_of_(wheel, at);
    if (sni_unlikely(!sni_wheel_place_(wheel, timer, tick)))
        return false;
    timer->at_ns = at_ns;
    wheel->count_++;
    *due_ns = sni_wheel_unbias_(tick << wheel->shift_);
    return true;
}

static inline int64_t sni_wheel_add(struct sni_wheel *wheel, struct sni_timer *timer, int64_t at_ns)
{
    int64_t due_ns;
    if (sni_likely(sni_wheel_add_near(wheel, timer, at_ns, &due_ns)))
        return due_ns;
    return sni_wheel_add_rare(wheel, timer, at_ns);
}

static inline bool sni_wheel_remove(struct sni_wheel *wheel, struct sni_timer *timer)
{
    struct sni_list *next = timer->link.next;
    struct sni_list *prev = timer->link.prev;
    if (next == &timer->link)
        return false;
    sni_list_remove(&timer->link);
    wheel->count_--;
    uintptr_t at = (uintptr_t)prev - (uintptr_t)wheel->lists_;
    if (at < sizeof(struct sni_wheel_slots)) { /* it was the first, behind a head */
        size_t index = at / sizeof(wheel->lists_[0]);
        if (next == prev) /* and alone */
            wheel->occupied_[index / SNI_WHEEL_SLOTS] &= ~(UINT64_C(1) << index % SNI_WHEEL_SLOTS);
        else
            sni_prefetch(next->next); /* see "Removing" in wheel.c */
    }
    return true;
}

#endif
