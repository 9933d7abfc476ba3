/* SPDX-License-Identifier: MIT */
/* stack_slab.c - where stacks come from: slabs, and mappings of their own for big ones.
 *
 * A slab is one reservation: a header with a bitmap of what is blank and one of what could not be
 * guarded, and then slots of one size, each a power of two:
 *
 *     slot:   | guard page | usable memory ...         | record | colour |
 *                          ^ lo                        ^ hi
 *
 * The header has a page of its own, but for that of the first slab, which lies in the pool: a
 * runtime of few tasks need not have a page for a hundred bytes.
 *
 * A slab is in the list `open` of its class if it has blanks, else in `full`. Slabs double up
 * to 64 MiB, and halve again down to one slot when the system refuses.
 *
 * Records live in the stacks, on the page that is resident anyway, so that a million stacks
 * need no memory beside themselves. A blank one has no record; its slab and index say all, and
 * the record is written when the stack is given out. So reserving a slab touches one page, and
 * emptying a stack is one call that takes the record along.
 *
 * Guards are installed for 32 slots at once, just before the first of them is given out: a
 * batch costs half as much per guard as single calls, and a whole slab at once would be a pause
 * of half a millisecond. They survive discarding, so this happens once in a slot's life.
 *
 * Colour: slots are a multiple of 4 KiB apart, so without it the tops of all stacks, which are
 * what a switch touches, would fall into the same few sets of the first-level cache. Each slot
 * therefore begins a cache line lower than the one before it. Measured round a ring of 1000
 * fibers: 25 ns for a switch with 16 colours or 8, 38 ns without.
 *
 * Rejected: records in an array beside (64 MB more for a million stacks, one more cache line
 * per use); aligning slabs to find them by address (twice the address space for a moment, and
 * nobody asks); headers in the heap, which may have no memory where slabs still do (a process that
 * has used up its mappings). */
#include "fiber/stack_priv.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "fiber/sanitize.h"

#include <sinew/errno.h>
#include <string.h>

enum {
    RECORD_BYTES = 64,
    COLOURS = 16, /* at most 960 bytes of the resident page */
    COLOUR_BYTES = 64,
    GUARD_BATCH = 32,
};

_Static_assert(sizeof(struct sni_stack) <= RECORD_BYTES, "a record is one cache line");
_Static_assert(COLOURS *COLOUR_BYTES <= 1024, "colour must leave most of the page to frames");

/* ---- bitmaps ------------------------------------------------------------------------- */

static size_t words_of(size_t count)
{
    return (count + 63) / 64;
}

static inline bool bit_get(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static inline void bit_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bit_clear(uint64_t *bits, uint32_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline uint64_t *bare_bits(struct sni_stack_slab *slab)
{
    return slab->bits + words_of(slab->count);
}

static uint32_t first_blank(struct sni_stack_slab *slab)
{
    while (slab->bits[slab->search_from] == 0)
        slab->search_from++;
    uint64_t word = slab->bits[slab->search_from];
    return slab->search_from * 64 + (uint32_t)__builtin_ctzll(word);
}

/* ---- slabs --------------------------------------------------------------------------- */

/* Whether the slab's header shall be that in the pool. */
static bool is_first(const struct sni_stack_pool *pool, size_t count)
{
    return pool->first.bytes == 0 && count <= SNI_STACK_FIRST_SLOTS;
}

static size_t head_bytes(const struct sni_stack_pool *pool, size_t count)
{
    if (is_first(pool, count))
        return 0;
    size_t bytes = sizeof(struct sni_stack_slab) + 2 * words_of(count) * sizeof(uint64_t);
    return (bytes + pool->page_bytes - 1) / pool->page_bytes * pool->page_bytes;
}

/* Reserve as many slots as fit into `bytes`, or what the system still gives: at least one. */
static int slab_reserve(const struct sni_stack_pool *pool, void **base, size_t *count, size_t bytes,
                        unsigned class_)
{
    for (*count = bytes >> class_;; *count /= 2) {
        int rc = sni_plat_reserve(base, head_bytes(pool, *count) + (*count << class_));
        if (rc == 0 || *count == 1)
            return rc;
    }
}

/* The header of a slab that was just reserved. */
static struct sni_stack_slab *slab_at(struct sni_stack_pool *pool, char *base, size_t count,
                                      unsigned class_)
{
    size_t head = head_bytes(pool, count);
    struct sni_stack_slab *slab = head == 0 ? &pool->first : (struct sni_stack_slab *)(void *)base;
    *slab = (struct sni_stack_slab){
        .base = base,
        .bytes = head + (count << class_),
        .slots = base + head,
        .bits = head == 0 ? pool->first_bits : (uint64_t *)(void *)(slab + 1),
        .count = (uint32_t)count,
        .blank_count = (uint32_t)count,
        .class_ = (uint8_t)class_,
    };
    memset(slab->bits, 0, 2 * words_of(count) * sizeof(uint64_t));
    for (uint32_t i = 0; i < slab->count; i++)
        bit_set(slab->bits, i);
    return slab;
}

static int slab_create(struct sni_stack_pool *pool, unsigned class_)
{
    struct sni_stack_class *cls = sni_stack_class_of(pool, class_);
    void *base = NULL;
    size_t count = 0;
    int rc = slab_reserve(pool, &base, &count, cls->slab_bytes_next, class_);
    if (rc < 0)
        return rc;
    /* Before the first touch: a mapping with pages is never made one with its neighbour. */
    sni_plat_small_pages(base, head_bytes(pool, count) + (count << class_));
    struct sni_stack_slab *slab = slab_at(pool, base, count, class_);
    sni_list_init(&slab->link);
    sni_list_push_front(&cls->open, &slab->link);
    cls->blank += count;
    if (cls->slab_bytes_next < pool->cfg.slab_bytes_max)
        cls->slab_bytes_next *= 2;
    pool->stats.reserved_bytes += slab->bytes;
    pool->stats.slabs++;
    return 0;
}

static void slab_destroy(struct sni_stack_pool *pool, struct sni_stack_slab *slab)
{
    sni_list_remove(&slab->link);
    sni_stack_class_of(pool, slab->class_)->blank -= slab->blank_count;
    pool->stats.guards[pool->cfg.guard] -= slab->guarded - slab->bare_count;
    pool->stats.guards[SNI_GUARD_NONE] -= slab->bare_count;
    pool->stats.reserved_bytes -= slab->bytes;
    pool->stats.slabs--;
    size_t bytes = slab->bytes;
    slab->bytes = 0; /* the pool's own may be another's */
    sni_plat_release(slab->base, bytes);
}

static void list_release(struct sni_stack_pool *pool, struct sni_list *list)
{
    while (!sni_list_empty(list))
        slab_destroy(pool, sni_container_of(list->next, struct sni_stack_slab, link));
}

void sni_stack_slabs_release(struct sni_stack_pool *pool, unsigned class_)
{
    list_release(pool, &sni_stack_class_of(pool, class_)->open);
    list_release(pool, &sni_stack_class_of(pool, class_)->full);
}

static bool may_guard(const struct sni_stack_pool *pool)
{
    enum sni_guard_kind kind = pool->cfg.guard;
    if (kind == SNI_GUARD_MPROTECT)
        return pool->stats.guards[kind] < pool->cfg.mprotect_guards_max;
    return kind != SNI_GUARD_NONE;
}

/* Guard the next slots. What cannot be guarded is bare for good, and counted. */
static void guard_more(struct sni_stack_pool *pool, struct sni_stack_slab *slab)
{
    enum sni_guard_kind kind = pool->cfg.guard;
    uint32_t first = slab->guarded;
    uint32_t n = slab->count - first < GUARD_BATCH ? slab->count - first : GUARD_BATCH;
    size_t done = 0;
    if (may_guard(pool))
        (void)sni_plat_guard_each(slab->slots + ((size_t)first << slab->class_), pool->page_bytes,
                                  (size_t)1 << slab->class_, n, kind, &done);
    for (uint32_t i = first + (uint32_t)done; i < first + n; i++)
        bit_set(bare_bits(slab), i);
    slab->guarded += n;
    slab->bare_count += n - (uint32_t)done;
    pool->stats.guards[kind] += done;
    pool->stats.guards[SNI_GUARD_NONE] += n - done;
}

/* ---- slots --------------------------------------------------------------------------- */

int sni_stack_slot_take(struct sni_stack_pool *pool, unsigned class_, struct sni_stack_slot *slot)
{
    struct sni_stack_class *cls = sni_stack_class_of(pool, class_);
    if (sni_list_empty(&cls->open)) {
        int rc = slab_create(pool, class_);
        if (rc < 0)
            return rc;
    }
    struct sni_stack_slab *slab = sni_container_of(cls->open.next, struct sni_stack_slab, link);
    uint32_t index = first_blank(slab);
    while (index >= slab->guarded)
        guard_more(pool, slab);
    bit_clear(slab->bits, index);
    cls->blank--;
    pool->given++;
    if (--slab->blank_count == 0) {
        sni_list_remove(&slab->link);
        sni_list_push_back(&cls->full, &slab->link);
    }
    slot->slab = slab;
    slot->index = index;
    slot->guard = bit_get(bare_bits(slab), index) ? SNI_GUARD_NONE : pool->cfg.guard;
    return 0;
}

/* A record at the end of the stack whose address space begins at `base`. */
static struct sni_stack *record_write(char *base, unsigned class_, size_t page, uint32_t colour)
{
    char *at = base + ((size_t)1 << class_) - RECORD_BYTES - (size_t)colour * COLOUR_BYTES;
    struct sni_stack *stack = (struct sni_stack *)(void *)at;
    *stack = (struct sni_stack){
        .lo = base + page,
        .hi = at,
        .class_ = (uint8_t)class_,
        .valgrind_id = sni_valgrind_stack_register(base + page, at),
    };
    return stack;
}

struct sni_stack *sni_stack_slot_open(const struct sni_stack_pool *pool,
                                      const struct sni_stack_slot *slot)
{
    unsigned class_ = slot->slab->class_;
    char *base = slot->slab->slots + ((size_t)slot->index << class_);
    /* The smallest class has one page in all and none of it to spare. */
    uint32_t colour = class_ > pool->class_min ? slot->index % COLOURS : 0;
    struct sni_stack *stack = record_write(base, class_, pool->page_bytes, colour);
    stack->slab = slot->slab;
    stack->index = slot->index;
    stack->guard = (uint8_t)slot->guard;
    return stack;
}

struct sni_stack_slot sni_stack_slot_close(struct sni_stack *stack)
{
    struct sni_stack_slot slot = {
        .slab = stack->slab,
        .index = stack->index,
        .guard = (enum sni_guard_kind)stack->guard,
    };
    size_t bytes = (size_t)1 << slot.slab->class_;
    sni_valgrind_stack_deregister(stack->valgrind_id);
    sni_plat_discard(slot.slab->slots + slot.index * bytes, bytes); /* guards stay */
    return slot;
}

void sni_stack_slot_give(struct sni_stack_pool *pool, const struct sni_stack_slot *slot)
{
    struct sni_stack_slab *slab = slot->slab;
    struct sni_stack_class *cls = sni_stack_class_of(pool, slab->class_);
    sni_assert_debug(!bit_get(slab->bits, slot->index), "a stack was made blank twice");
    bit_set(slab->bits, slot->index);
    if (slot->index / 64 < slab->search_from)
        slab->search_from = slot->index / 64;
    pool->given--;
    pool->stats.trimmed++;
    cls->blank++;
    if (slab->blank_count++ == 0) {
        sni_list_remove(&slab->link);
        sni_list_push_back(&cls->open, &slab->link);
    }
    if (slab->blank_count == slab->count && cls->blank > slab->count)
        slab_destroy(pool, slab); /* another one has blanks to give */
}

/* ---- big stacks ---------------------------------------------------------------------- */

int sni_stack_big_create(struct sni_stack_pool *pool, unsigned class_, struct sni_stack **out)
{
    size_t bytes = (size_t)1 << class_;
    enum sni_guard_kind kind = pool->cfg.guard;
    void *base = NULL;
    int rc = sni_plat_reserve(&base, bytes);
    if (rc < 0)
        return rc;
    sni_plat_small_pages(base, bytes);
    if (sni_plat_guard(base, pool->page_bytes, kind) < 0)
        kind = SNI_GUARD_NONE;
    *out = record_write(base, class_, pool->page_bytes, 0);
    (*out)->guard = (uint8_t)kind;
    sni_mutex_lock(&pool->mutex);
    pool->given++;
    pool->stats.reserved_bytes += bytes;
    pool->stats.guards[kind]++;
    sni_mutex_unlock(&pool->mutex);
    return 0;
}

void sni_stack_big_destroy(struct sni_stack_pool *pool, struct sni_stack *stack)
{
    size_t bytes = (size_t)1 << stack->class_;
    sni_mutex_lock(&pool->mutex);
    pool->given--;
    pool->stats.reserved_bytes -= bytes;
    pool->stats.guards[stack->guard]--;
    sni_mutex_unlock(&pool->mutex);
    sni_valgrind_stack_deregister(stack->valgrind_id);
    sni_plat_release(stack->lo - pool->page_bytes, bytes);
}

static void each_in(const struct sni_list *list,
                    void (*fn)(uintptr_t from, uintptr_t to, void *arg), void *arg)
{
    for (struct sni_list *at = list->next; at != NULL && at != list; at = at->next) {
        const struct sni_stack_slab *slab = sni_container_of(at, struct sni_stack_slab, link);
        fn((uintptr_t)slab->base, (uintptr_t)slab->base + slab->bytes, arg);
    }
}

void sni_stack_pool_each(struct sni_stack_pool *pool,
                         void (*fn)(uintptr_t from, uintptr_t to, void *arg), void *arg)
{
    sni_mutex_lock(&pool->mutex);
    for (unsigned i = 0; i < SNI_STACK_SLAB_CLASSES; i++) {
        each_in(&pool->classes[i].open, fn, arg);
        each_in(&pool->classes[i].full, fn, arg);
    }
    sni_mutex_unlock(&pool->mutex);
}
