/* SPDX-License-Identifier: MIT */
/* wheel.c - a hierarchical timing wheel.
 *
 * Words. Time is cut into *ticks* of 2^shift ns; boundaries lie at multiples of that. The wheel
 * stands in the tick of the last time it was told. A timer has the number of the tick at whose
 * beginning it is due, which is its time rounded up; or, if its time had passed when it was added,
 * that of the tick in which the wheel stood. Read such a number as digits to the base of 64:
 *
 *     level   the highest digit in which the timer's tick differs from the wheel's; 0 if in none
 *     slot    the value of that digit in the timer's tick
 *     far     the list of those that differ in a digit beyond the six
 *     never   the list of those whose tick begins behind the last int64_t
 *     due     the list of those whose tick has begun, in the order in which they will be popped
 *
 *     wheel  at   2.05.17      a timer at 2.05.40  level 0, slot 40
 *                                         2.09.03  level 1, slot  9
 *                                         3.00.00  level 2, slot  3
 *
 * Invariant: each timer in a level is in the slot that its tick and the wheel's tick of this moment
 * give it. So all slots of level 0 are due before those of level 1, and so on, within a level the
 * lower slot is earlier, and no slot behind the wheel is occupied: the nearest is found by the
 * first bit of the first bit map that is not 0. Adding and removing keep the invariant; advancing
 * does so like this:
 *
 *     until the nearest slot begins behind the new time:
 *         stand at its beginning
 *         level 0: append the slot to `due`
 *         else: the wheel has now this digit in common with the timers of the slot, so place each
 *               anew, at a lower level; the same for `far`
 *     stand at the new time: no slot begins in between, so no timer's place changes
 *
 * Quiet time costs nothing, however long: what is not occupied is not visited.
 *
 * Order. At each moment a tick's timers are all in one list. A slot is cascaded when all lower ones
 * are empty (what was in them was due earlier), from its first to its last. So the order within a
 * list is that of adding, and so it is in `due`.
 *
 * Runs. All that is due is moved to `due` before the first is popped, and only there it is popped
 * from. What is added meanwhile is placed relative to the new time: if that has passed, in level 0
 * where the wheel stands, which is appended to `due` when the next run begins. Hence a timer that
 * adds itself again with a time that has passed is popped once in a run, and no run is endless.
 *
 * Far timers are rare, so there is only one list of them, and the earliest span of 2^36 ticks in
 * which one was ever due. When the wheel comes there, all are placed anew, and the next is found.
 *
 * Biased times. An int64_t with its highest bit flipped is a uint64_t of the same order: negative
 * times need no case of their own, and a tick is a shift. Zero stays a boundary.
 *
 * The lists are rings, so a timer that is alone in its list has the head for both neighbours: the
 * head's index tells which bit to clear when it is removed, and a timer need not know its slot.
 *
 * The lists of a level are initialised when the first timer comes that needs it or a higher one: a
 * worker without timers does not touch them, and few programs have timers in all levels.
 *
 * Removing. What a removal waits for is memory: it writes to both neighbours, and the next lock
 * waits until these writes are done. Time-outs are mostly cancelled in the order in which they were
 * set; then the one that is removed is the first of its slot, the head is at hand, and the next of
 * this slot that will be removed is its successor. So the successor's successor, which will be
 * written to then, is asked for now; where a million are cancelled in order, that halves the time.
 * Not if the timer was anywhere else in its list: in random order that would be a fourth line of
 * memory beside three, for nothing.
 *
 * Rejected: a heap (log n misses per operation instead of one or two);
 * slots by the distance to the timer instead of by digits (one tick's timers are then in several
 * levels at once, which costs the order); leaving the bit of an emptied slot set (wakes a sleeper
 * for nothing after each time-out that was cancelled, which is nearly all of them); eleven levels
 * instead of `far` (5 KB per worker for times nobody lives to see); rounding times down (early). */
#include "timer/wheel.h"

#include "base/assert.h"
#include "base/compiler.h"

enum {
    FAR = SNI_WHEEL_LEVELS * SNI_WHEEL_SLOTS, /* as an index: the list behind the levels */
    SPAN_BITS = SNI_WHEEL_LEVELS * SNI_WHEEL_SLOT_BITS,
    SHIFT_MAX = 62,
};

static inline struct sni_timer *timer_of(struct sni_list *link)
{
    return sni_container_of(link, struct sni_timer, link);
}

/* Initialise what a timer of `level` needs. */
static SNI_COLD void make_ready(struct sni_wheel *wheel, size_t level)
{
    for (; wheel->ready_ <= level; wheel->ready_++)
        for (size_t slot = 0; slot < SNI_WHEEL_SLOTS; slot++)
            sni_list_init(&wheel->lists_[wheel->ready_ * SNI_WHEEL_SLOTS + slot]);
}

/* The same as sni_wheel_place_, for whatever is ever due. */
static inline void place(struct sni_wheel *wheel, struct sni_timer *timer, uint64_t tick)
{
    if (sni_likely(sni_wheel_place_(wheel, timer, tick)))
        return;
    size_t level = sni_wheel_level_(tick ^ wheel->tick_);
    if (level < SNI_WHEEL_LEVELS) {
        make_ready(wheel, level);
        (void)sni_wheel_place_(wheel, timer, tick);
        return;
    }
    uint64_t span_begin = tick >> SPAN_BITS << SPAN_BITS;
    if (sni_list_empty(&wheel->far_) || span_begin < wheel->far_ticks_)
        wheel->far_ticks_ = span_begin;
    sni_list_push_back(&wheel->far_, &timer->link);
}

/* Find the nearest list that is occupied and the tick where it begins. False: there is none. */
static inline bool nearest(const struct sni_wheel *wheel, unsigned *index, uint64_t *begin)
{
    for (unsigned level = 0; level < SNI_WHEEL_LEVELS; level++) {
        if (wheel->occupied_[level] == 0)
            continue;
        unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied_[level]);
        unsigned digit_at = level * SNI_WHEEL_SLOT_BITS;
        uint64_t above = wheel->tick_ >> digit_at >> SNI_WHEEL_SLOT_BITS << SNI_WHEEL_SLOT_BITS;
        *index = level * SNI_WHEEL_SLOTS + slot;
        *begin = (above | slot) << digit_at;
        return true;
    }
    *index = FAR;
    *begin = wheel->far_ticks_;
    return !sni_list_empty(&wheel->far_);
}

/* Append all of `from` to `to`. */
static void move_all(struct sni_list *from, struct sni_list *to)
{
    struct sni_list *first = from->next;
    struct sni_list *last = from->prev;
    sni_list_init(from);
    first->prev = to->prev;
    to->prev->next = first;
    last->next = to;
    to->prev = last;
}

/* Place all of `list` anew, where the wheel stands now. What goes back to the same list is behind
 * the last of those that were there, which still points to the head, so it is not met again. */
static void cascade(struct sni_wheel *wheel, struct sni_list *list)
{
    struct sni_list *link = list->next;
    sni_list_init(list);
    while (link != list) {
        struct sni_list *next = link->next;
        struct sni_timer *timer = timer_of(link);
        sni_list_init(link);
        place(wheel, timer, sni_wheel_tick_of_(wheel, sni_wheel_bias_(timer->at_ns)));
        link = next;
    }
}

/* Stand at `tick`, and have all that is due by then in `due`. */
static void advance(struct sni_wheel *wheel, uint64_t tick)
{
    unsigned index;
    uint64_t begin;
    while (nearest(wheel, &index, &begin) && begin <= tick) {
        wheel->tick_ = begin;
        if (index < FAR)
            wheel->occupied_[index / SNI_WHEEL_SLOTS] &= ~(UINT64_C(1) << index % SNI_WHEEL_SLOTS);
        if (index < SNI_WHEEL_SLOTS)
            move_all(&wheel->lists_[index], &wheel->due_);
        else
            cascade(wheel, index == FAR ? &wheel->far_ : &wheel->lists_[index]);
    }
    wheel->tick_ = tick;
}

void sni_wheel_init(struct sni_wheel *wheel, struct sni_wheel_slots *slots, int64_t now_ns,
                    int64_t tick_ns)
{
    sni_assert(tick_ns > 0, "a timer wheel needs a tick that is longer than nothing");
    unsigned shift = 0;
    while (shift < SHIFT_MAX && INT64_C(1) << shift < tick_ns)
        shift++;
    uint64_t mask = (UINT64_C(1) << shift) - 1;
    uint64_t now = sni_wheel_bias_(now_ns);
    wheel->now_ = now;
    wheel->tick_ = now >> shift;
    wheel->last_ = sni_wheel_bias_(INT64_MAX) - (mask > 0 ? mask : 1);
    wheel->mask_ = mask;
    wheel->shift_ = shift;
    wheel->running_ = false;
    wheel->count_ = 0;
    wheel->far_ticks_ = 0;
    wheel->ready_ = 0;
    wheel->lists_ = slots->lists;
    for (size_t level = 0; level < SNI_WHEEL_LEVELS; level++)
        wheel->occupied_[level] = 0;
    sni_list_init(&wheel->far_);
    sni_list_init(&wheel->never_);
    sni_list_init(&wheel->due_);
}

int64_t sni_wheel_tick_ns(const struct sni_wheel *wheel)
{
    return (int64_t)(wheel->mask_ + 1);
}

void sni_timer_init(struct sni_timer *timer)
{
    *timer = (struct sni_timer){.at_ns = 0};
    sni_list_init(&timer->link);
}

SNI_COLD int64_t sni_wheel_add_rare(struct sni_wheel *wheel, struct sni_timer *timer, int64_t at_ns)
{
    uint64_t at = sni_wheel_bias_(at_ns);
    timer->at_ns = at_ns;
    wheel->count_++;
    if (at > wheel->last_) {
        sni_list_push_back(&wheel->never_, &timer->link);
        return INT64_MAX;
    }
    if (at <= wheel->now_) {
        place(wheel, timer, wheel->tick_);
        return sni_wheel_unbias_(wheel->now_);
    }
    uint64_t tick = sni_wheel_tick_of_(wheel, at);
    place(wheel, timer, tick);
    return sni_wheel_unbias_(tick << wheel->shift_);
}

struct sni_timer *sni_wheel_pop(struct sni_wheel *wheel, int64_t now_ns)
{
    if (sni_wheel_bias_(now_ns) > wheel->now_)
        wheel->now_ = sni_wheel_bias_(now_ns);
    uint64_t tick = wheel->now_ >> wheel->shift_;
    if (!wheel->running_ || tick > wheel->tick_)
        advance(wheel, tick);
    struct sni_list *link = sni_list_pop_front(&wheel->due_);
    wheel->running_ = link != NULL;
    if (link == NULL)
        return NULL;
    wheel->count_--;
    return timer_of(link);
}

int64_t sni_wheel_next_ns(const struct sni_wheel *wheel)
{
    unsigned index;
    uint64_t begin;
    if (!sni_list_empty(&wheel->due_))
        return sni_wheel_unbias_(wheel->now_);
    if (!nearest(wheel, &index, &begin))
        return INT64_MAX;
    if (begin == wheel->tick_)
        return sni_wheel_unbias_(wheel->now_);
    const struct sni_list *list = index == FAR ? &wheel->far_ : &wheel->lists_[index];
    if (index >= SNI_WHEEL_SLOTS && list->next == list->prev)
        begin = sni_wheel_tick_of_(wheel, sni_wheel_bias_(timer_of(list->next)->at_ns));
    return sni_wheel_unbias_(begin << wheel->shift_);
}

static void each_of(struct sni_list *list, void (*fn)(const struct sni_timer *timer, void *arg),
                    void *arg)
{
    for (struct sni_list *at = list->next; at != list; at = at->next)
        fn(timer_of(at), arg);
}

void sni_wheel_each(struct sni_wheel *wheel, void (*fn)(const struct sni_timer *timer, void *arg),
                    void *arg)
{
    for (size_t i = 0; i < wheel->ready_ * SNI_WHEEL_SLOTS; i++)
        each_of(&wheel->lists_[i], fn, arg);
    each_of(&wheel->far_, fn, arg);
    each_of(&wheel->never_, fn, arg);
    each_of(&wheel->due_, fn, arg);
}
