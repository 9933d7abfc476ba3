/* SPDX-License-Identifier: MIT */
/* inspect.c - looking at tasks that wait, while the others run.
 *
 * A task that waits is found by its record, held by a reference, and *seized* (task.h): from then
 * on it does not go on, whoever ends its wait, and its frames can be read. Then it is let go.
 * Nobody else takes part in this: the protocol of waiting has a place for an executor that has just
 * saved a fiber, and we stand there. So a program that is never looked at pays nothing for it.
 *
 * What is found about one task is so at that moment; of two tasks, it was perhaps never so at the
 * same time: A waited for B's lock, then got it, and B waits for A. A cycle is believed only when
 * all its tasks are seized at once, and all waits are what they were, and none is over. Then each
 * of them waits for one that is not running, and nobody else can end any of the waits.
 *
 * Deadlines are not kept anywhere in the wait itself. But an alarm lies in the frame of who waits,
 * so it is found by its address, among those that are set.
 *
 * Coroutines. What one awaits lies in its frame, which is copied into its record: so the record is
 * searched for futures of the kinds that are known, and that have been polled and wait. What it
 * awaits elsewhere is not found, and nothing is said about it. */
#include "runtime/inspect.h"

#include "future/future_priv.h"
#include "io/file.h"
#include "plat/memory.h"
#include "sync/gate.h"
#include "sync/source.h"

#include <sinew/errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sni_wait_kind *const kinds[] = {
    &sni_gate_waits,    &sni_source_waits,    &sni_select_waits,  &sni_join_waits,
    &sni_file_waits,    &sni_nap_waits,       &sni_chan_op_waits, &sni_news_op_waits,
    &sni_join_op_waits, &sni_select_op_waits, &sni_group_waits};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- growing ------------------------------------------------------------------------------- */

/* Room for one more in an array. False: there is no memory, and that is noted. Not from the heap:
 * who searches memory for handles must not find copies in blocks that were freed. */
static bool grow(struct sni_snapshot *snap, void **array, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return true;
    size_t more = *room != 0 ? 4 * *room : 1024;
    void *bigger;
    if (sni_plat_reserve(&bigger, more * bytes) < 0) {
        snap->failed = true;
        return false;
    }
    if (*room != 0) {
        memcpy(bigger, *array, n * bytes);
        sni_plat_release(*array, *room * bytes);
    }
    *array = bigger;
    *room = more;
    return true;
}

static void give_back(void *array, size_t room, size_t bytes)
{
    if (room != 0)
        sni_plat_release(array, room * bytes);
}

static void swap(char *a, char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = a[i];
        a[i] = b[i];
        b[i] = c;
    }
}

/* In place, for the same reason: a heap, from which the largest is taken again and again. */
void sni_sort(void *array, size_t n, size_t bytes, int (*compare)(const void *a, const void *b))
{
    char *at = array;
    for (size_t start = n / 2, end = n; end > 1;) {
        if (start > 0)
            start--;
        else
            swap(at, at + --end * bytes, bytes);
        for (size_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && compare(at + child * bytes, at + (child + 1) * bytes) < 0)
                child++;
            if (compare(at + root * bytes, at + child * bytes) >= 0)
                break;
            swap(at + root * bytes, at + child * bytes, bytes);
        }
    }
}

/* ---- alarms -------------------------------------------------------------------------------- */

static void note_alarm(const struct sni_timer *timer, void *arg)
{
    struct sni_snapshot *snap = arg;
    void *array = snap->alarms;
    if (!grow(snap, &array, snap->alarms_n, &snap->alarms_room, sizeof(*snap->alarms)))
        return;
    snap->alarms = array;
    snap->alarms[snap->alarms_n++] = (uintptr_t)timer;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static void note_alarms(struct sni_snapshot *snap)
{
    for (unsigned i = 0; i < snap->sched->workers_n; i++)
        sni_clockwork_each(&snap->sched->workers[i].clockwork, note_alarm, snap);
    if (snap->alarms_n > 0)
        sni_sort(snap->alarms, snap->alarms_n, sizeof(*snap->alarms), by_address);
}

static bool has_alarm(const struct sni_snapshot *snap, const void *from, const void *to)
{
    size_t lo = 0, hi = snap->alarms_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (snap->alarms[mid] < (uintptr_t)from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < snap->alarms_n && snap->alarms[lo] < (uintptr_t)to;
}

/* ---- places -------------------------------------------------------------------------------- */

static void note_place(const struct sni_place *place, void *arg)
{
    struct sni_snapshot *snap = arg;
    void *array = snap->places;
    if (!grow(snap, &array, snap->places_n, &snap->places_room, sizeof(*snap->places)))
        return;
    snap->places = array;
    snap->places[snap->places_n++] = *place;
}

/* What the innermost task on the stack of a fiber, which is seized, waits at. */
static void look_at_fiber(struct sni_snapshot *snap, struct sni_node *node)
{
    const struct sni_lent *lent = node->fiber->lent;
    for (size_t i = 0; i < KINDS && lent != NULL; i++)
        if (lent->take_back == kinds[i]->take_back) {
            node->is_world = kinds[i]->is_world;
            if (kinds[i]->tell != NULL)
                kinds[i]->tell(lent, note_place, snap);
            return;
        }
}

static const void *end_of(const struct sni_task *task)
{
    return (const char *)task + (size_t)(task->record.class + 1) * SNI_RECORD_STEP;
}

/* Not instrumented: most of what is read is no future, and was perhaps never written to. */
static void look_at_frame(struct sni_snapshot *snap, const struct sni_task *task)
{
    const char *end = end_of(task);
    for (const char *at = (const char *)(task + 1); at + sizeof(sn_future) <= end; at += 8) {
        const sn_future *fut = (const sn_future *)(const void *)at;
        for (size_t i = 0; i < KINDS; i++)
            if (kinds[i]->vtable != NULL && fut->vt == kinds[i]->vtable &&
                fut->state_ == SNI_FUTURE_SUSPENDED)
                kinds[i]->tell_op(fut, note_place, snap);
    }
}

static struct sni_node *add_node(struct sni_snapshot *snap, struct sni_task *task,
                                 struct sni_task *fiber)
{
    void *array = snap->nodes;
    if (!grow(snap, &array, snap->n, &snap->room, sizeof(*snap->nodes)))
        return NULL;
    snap->nodes = array;
    struct sni_node *node = &snap->nodes[snap->n++];
    *node = (struct sni_node){.task = task,
                              .fiber = fiber,
                              .id = task->id,
                              .name = task->name,
                              .at = task->at,
                              .first = snap->places_n,
                              .joiner = sni_task_joiner(task)};
    return node;
}

/* All places of the node have been noted. */
static void close_node(const struct sni_snapshot *snap, struct sni_node *node)
{
    node->places = (unsigned)(snap->places_n - node->first);
    if (node->places > 0)
        node->place = snap->places[node->first];
}

/* `fiber` waits for the end of `inner`, and runs it. */
static void add_outer(struct sni_snapshot *snap, struct sni_task *outer, struct sni_task *fiber,
                      const struct sni_task *inner)
{
    struct sni_node *node = add_node(snap, outer, fiber);
    if (node == NULL)
        return;
    struct sni_place place = {"join", inner, (uintptr_t)inner, SNI_TIE_OWNER, NULL};
    note_place(&place, snap);
    close_node(snap, node);
}

/* The tasks on the stack of a fiber that is seized, from the inside out. */
static void look_at_stack(struct sni_snapshot *snap, struct sni_task *fiber)
{
    const struct sni_inline *frame = fiber->acting;
    struct sni_task *inner = frame != NULL ? frame->task : fiber;
    struct sni_node *node = add_node(snap, inner, fiber);
    if (node == NULL)
        return;
    look_at_fiber(snap, node);
    close_node(snap, node);
    node->is_timed = has_alarm(snap, fiber->stack->lo, fiber->stack->hi);
    while (frame != NULL) {
        struct sni_task *outer = frame->outer != NULL ? frame->outer->task : fiber;
        add_outer(snap, outer, fiber, frame->task);
        frame = frame->outer;
    }
}

static void look_at(struct sni_snapshot *snap, struct sni_task *task)
{
    if (!sni_task_seize(task))
        return;
    if (task->kind == SNI_TASK_FIBER) {
        look_at_stack(snap, task);
    } else {
        struct sni_node *node = add_node(snap, task, task);
        if (node != NULL) {
            look_at_frame(snap, task);
            close_node(snap, node);
            node->is_timed = has_alarm(snap, task, end_of(task));
        }
    }
    sni_task_let_go(task);
}

static void look_at_record(struct sni_record *record, void *arg)
{
    struct sni_snapshot *snap = arg;
    struct sni_task *task = (struct sni_task *)(void *)record;
    if (snap->failed || !sni_task_find(task))
        return;
    if (sni_task_home(task) == &snap->sched->home)
        look_at(snap, task);
    sni_task_unref(sni_exec_current(), task);
}

static int by_task(const void *a, const void *b)
{
    const struct sni_node *x = a, *y = b;
    return ((uintptr_t)x->task > (uintptr_t)y->task) - ((uintptr_t)x->task < (uintptr_t)y->task);
}

int sni_snapshot_take(struct sni_snapshot *snap, struct sni_sched *sched)
{
    *snap = (struct sni_snapshot){.sched = sched};
    note_alarms(snap);
    sni_arena_each(sched->arena, look_at_record, snap);
    if (snap->n > 0)
        sni_sort(snap->nodes, snap->n, sizeof(*snap->nodes), by_task);
    return snap->failed ? -ENOMEM : 0;
}

void sni_snapshot_finish(struct sni_snapshot *snap)
{
    give_back(snap->nodes, snap->room, sizeof(*snap->nodes));
    give_back(snap->places, snap->places_room, sizeof(*snap->places));
    give_back(snap->alarms, snap->alarms_room, sizeof(*snap->alarms));
    *snap = (struct sni_snapshot){.sched = NULL};
}

struct sni_node *sni_snapshot_find(const struct sni_snapshot *snap, uintptr_t task)
{
    size_t lo = 0, hi = snap->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uintptr_t at = (uintptr_t)snap->nodes[mid].task;
        if (at == task)
            return &snap->nodes[mid];
        if (at < task)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* ---- cycles -------------------------------------------------------------------------------- */

struct sni_node *sni_node_next(const struct sni_snapshot *snap, const struct sni_node *node)
{
    bool alone = node->places == 1 && node->place.tie == SNI_TIE_OWNER && !node->is_timed;
    return alone ? sni_snapshot_find(snap, node->place.owner) : NULL;
}

/* Whether the node says the same about its task, which is seized. */
static bool is_same(struct sni_snapshot *now, const struct sni_node *was)
{
    const struct sni_node *is = sni_snapshot_find(now, (uintptr_t)was->task);
    return is != NULL && is->id == was->id && is->places == 1 && !is->is_timed &&
           is->place.owner == was->place.owner && is->place.object == was->place.object;
}

/* Seize the fiber of each node of the cycle, once, and note in `held` what was. */
static bool seize_all(const struct sni_snapshot *snap, struct sni_node *first,
                      struct sni_task **held, size_t *n)
{
    struct sni_node *node = first;
    do {
        bool is_new = true;
        for (size_t i = 0; i < *n; i++)
            is_new = is_new && held[i] != node->fiber;
        if (is_new) {
            if (!sni_task_find(node->fiber))
                return false;
            if (!sni_task_seize(node->fiber)) {
                sni_task_unref(sni_exec_current(), node->fiber);
                return false;
            }
            held[(*n)++] = node->fiber;
        }
        node = sni_node_next(snap, node);
    } while (node != first);
    return true;
}

/* Look again at those that are held. */
static bool is_so(struct sni_snapshot *snap, struct sni_node *first, struct sni_task **held,
                  size_t n)
{
    struct sni_snapshot now = {.sched = snap->sched};
    note_alarms(&now);
    for (size_t i = 0; i < n; i++) {
        if (held[i]->kind == SNI_TASK_FIBER) {
            look_at_stack(&now, held[i]);
            continue;
        }
        struct sni_node *node = add_node(&now, held[i], held[i]);
        if (node != NULL) {
            look_at_frame(&now, held[i]);
            close_node(&now, node);
            node->is_timed = has_alarm(&now, held[i], end_of(held[i]));
        }
    }
    bool same = !now.failed;
    if (same)
        sni_sort(now.nodes, now.n, sizeof(*now.nodes), by_task);
    for (struct sni_node *node = first; same;) {
        same = is_same(&now, node);
        node = sni_node_next(snap, node);
        if (node == first)
            break;
    }
    for (size_t i = 0; i < n && same; i++)
        same = sni_task_is_still(held[i]);
    sni_snapshot_finish(&now);
    return same;
}

static bool verify(struct sni_snapshot *snap, struct sni_node *first, size_t length)
{
    struct sni_task **held = malloc(length * sizeof(struct sni_task *));
    if (held == NULL)
        return false;
    size_t n = 0;
    bool all = seize_all(snap, first, held, &n) && is_so(snap, first, held, n);
    for (size_t i = 0; i < n; i++) {
        sni_task_let_go(held[i]);
        sni_task_unref(sni_exec_current(), held[i]);
    }
    free(held);
    return all;
}

/* Follow the waits from `start`, marking nodes by the number of this walk. If it comes back to one
 * of them, that one is in a cycle. */
static struct sni_node *walk(const struct sni_snapshot *snap, struct sni_node *start,
                             unsigned number)
{
    struct sni_node *node = start;
    while (node != NULL && node->mark == 0) {
        node->mark = number;
        node = sni_node_next(snap, node);
    }
    return node != NULL && node->mark == number ? node : NULL;
}

unsigned sni_snapshot_cycles(struct sni_snapshot *snap, bool is_still)
{
    size_t found = 0;
    struct sni_node **firsts = malloc((snap->n + 1) * sizeof(struct sni_node *));
    if (firsts == NULL)
        return 0;
    for (size_t i = 0; i < snap->n; i++) {
        struct sni_node *first = walk(snap, &snap->nodes[i], (unsigned)i + 1);
        if (first == NULL)
            continue;
        size_t length = 0;
        struct sni_node *node = first;
        do {
            length++;
            node = sni_node_next(snap, node);
        } while (node != first);
        if (is_still || verify(snap, first, length))
            firsts[found++] = first;
    }
    for (size_t i = 0; i < snap->n; i++)
        snap->nodes[i].mark = 0;
    for (size_t i = 0; i < found; i++) {
        struct sni_node *node = firsts[i];
        do {
            node->mark = (unsigned)i + 1;
            node = sni_node_next(snap, node);
        } while (node != firsts[i]);
    }
    free(firsts);
    return (unsigned)found;
}
