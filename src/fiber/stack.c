/* SPDX-License-Identifier: MIT */
/* stack.c - slabs of stacks, the pool over them, and the caches of the workers.
 *
 * A slab is one reservation: its header, a bitmap of what is blank, a bitmap of what could not
 * be guarded, and then slots of one size, each a power of two:
 *
 *     slot:   | guard page | usable memory ...      ... <- | record | colour |
 *             ^            ^ lo                          hi ^
 *
 * Invariants. A slot is in exactly one state: blank (its bit is set, its record does not exist,
 * nothing of it is resident); free (its record is linked into one list, of a cache or of the
 * pool); in use. `pool->given` counts the slots that are not blank, plus the stacks that are
 * mapped one by one. A slab is in the list `open` of its class if it has blanks, else in `full`.
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
 * therefore begins a few cache lines lower than the one before it.
 *
 * Cold: lists are last in, first out. The least length that a list had in some period is the
 * number of stacks at its tail that nobody needed in that period; trimming takes these.
 *
 * Rejected: records in an array beside (64 MB more for a million stacks, one more cache line per
 * use); trimming on each put (2 us of system call on a path of 5 ns); a lock-free pool (it is
 * entered once per 512 operations of a cache, or together with a page fault of 2 us). */
#include "fiber/stack.h"

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
    DEFAULT_CLASS = 16,
    CACHED_MAX = 1024,
    BIG_CACHED_MAX = 2,
};

#define SLAB_BYTES_FIRST ((size_t)1 << 20)
#define SLAB_BYTES_MAX   ((size_t)1 << 26)
#define CACHED_BYTES_MAX ((size_t)1 << 26) /* address space that a cache keeps of a class     */
#define BIG_WARM_BYTES   ((size_t)1 << 16) /* of a big stack, what stays resident in a cache  */

struct sni_stack_slab {
    struct sni_list link; /* in `open` or `full` of its class; all guarded by the pool's mutex */
    char *slots;
    size_t bytes; /* of the reservation, which begins at this header                           */
    uint32_t count;
    uint32_t blank_count;
    uint32_t guarded;     /* slots below have the guard they will ever have                     */
    uint32_t bare_count;  /* of those, how many have none                                       */
    uint32_t search_from; /* words of the bitmap before this one are zero                      */
    uint8_t class_;
    uint64_t bits[]; /* blank, then bare                                                       */
};

_Static_assert(sizeof(struct sni_stack) <= RECORD_BYTES, "a record is one cache line");
_Static_assert(COLOURS *COLOUR_BYTES <= 1024, "colour must leave most of the page to frames");

/* ---- lists ------------------------------------------------------------------------- */

/* relaxed, all: a count is written by the owner of its list only; sni_stack_pool_stats reads it
 * from elsewhere as a figure to show, and nothing else is concluded from it. */
static inline uint32_t list_count(const struct sni_stack_list *list)
{
    return sni_atomic_load(&list->count, relaxed);
}

static inline void list_set_count(struct sni_stack_list *list, uint32_t count)
{
    sni_atomic_store(&list->count, count, relaxed); /* relaxed: see above */
}

static inline void list_push(struct sni_stack_list *list, struct sni_stack *stack)
{
    stack->next = list->head;
    list->head = stack;
    list_set_count(list, list_count(list) + 1);
}

static inline struct sni_stack *list_pop(struct sni_stack_list *list)
{
    struct sni_stack *stack = list->head;
    if (sni_unlikely(stack == NULL))
        return NULL;
    uint32_t count = list_count(list) - 1;
    list->head = stack->next;
    list_set_count(list, count);
    if (count < list->low)
        list->low = count;
    return stack;
}

/* The pool's lists are linked both ways, so that their cold end can be taken off. */
static void free_push(struct sni_stack_list *list, struct sni_stack *stack)
{
    stack->prev = NULL;
    if (list->head != NULL)
        list->head->prev = stack;
    else
        list->tail = stack;
    list_push(list, stack);
}

static struct sni_stack *free_pop(struct sni_stack_list *list)
{
    struct sni_stack *stack = list_pop(list);
    if (list->head != NULL)
        list->head->prev = NULL;
    else
        list->tail = NULL;
    return stack;
}

static struct sni_stack *free_pop_cold(struct sni_stack_list *list)
{
    struct sni_stack *stack = list->tail;
    list->tail = stack->prev;
    if (list->tail != NULL)
        list->tail->next = NULL;
    else
        list->head = NULL;
    list_set_count(list, list_count(list) - 1);
    return stack;
}

/* ---- slabs ------------------------------------------------------------------------- */

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

static size_t header_bytes(size_t count, size_t page)
{
    size_t bytes = sizeof(struct sni_stack_slab) + 2 * words_of(count) * sizeof(uint64_t);
    return (bytes + page - 1) / page * page;
}

/* Reserve as many slots as fit into `bytes`, or what the system still gives: at least one. */
static int slab_reserve(void **base, size_t *count, size_t bytes, unsigned class_, size_t page)
{
    for (*count = bytes >> class_;; *count /= 2) {
        int rc = sni_plat_reserve(base, header_bytes(*count, page) + (*count << class_));
        if (rc == 0 || *count == 1)
            return rc;
    }
}

static int slab_create(struct sni_stack_pool *pool, unsigned class_)
{
    struct sni_stack_class *cls = &pool->classes[class_];
    void *base = NULL;
    size_t count;
    int rc = slab_reserve(&base, &count, cls->slab_bytes_next, class_, pool->page_bytes);
    if (rc < 0)
        return rc;
    size_t head = header_bytes(count, pool->page_bytes);
    struct sni_stack_slab *slab = base;
    sni_plat_small_pages(base, head + (count << class_));
    slab->slots = (char *)base + head;
    slab->bytes = head + (count << class_);
    slab->count = (uint32_t)count;
    slab->blank_count = slab->count;
    slab->class_ = (uint8_t)class_;
    for (uint32_t i = 0; i < slab->count; i++)
        bit_set(slab->bits, i);
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
    pool->classes[slab->class_].blank -= slab->blank_count;
    pool->stats.guards[pool->cfg.guard] -= slab->guarded - slab->bare_count;
    pool->stats.guards[SNI_GUARD_NONE] -= slab->bare_count;
    pool->stats.reserved_bytes -= slab->bytes;
    pool->stats.slabs--;
    sni_plat_release(slab, slab->bytes);
}

/* Guard the next slots. What cannot be guarded is bare for good, and counted. */
static void slab_guard_more(struct sni_stack_pool *pool, struct sni_stack_slab *slab)
{
    enum sni_guard_kind kind = pool->cfg.guard;
    uint32_t first = slab->guarded;
    uint32_t n = slab->count - first < GUARD_BATCH ? slab->count - first : GUARD_BATCH;
    size_t done = 0;
    if (kind == SNI_GUARD_MADVISE ||
        (kind == SNI_GUARD_MPROTECT && pool->stats.guards[kind] < pool->cfg.mprotect_guards_max))
        (void)sni_plat_guard_each(slab->slots + ((size_t)first << slab->class_), pool->page_bytes,
                                  (size_t)1 << slab->class_, n, kind, &done);
    for (uint32_t i = first + (uint32_t)done; i < first + n; i++)
        bit_set(bare_bits(slab), i);
    slab->guarded += n;
    slab->bare_count += n - (uint32_t)done;
    pool->stats.guards[kind] += done;
    pool->stats.guards[SNI_GUARD_NONE] += n - done;
}

/* ---- blank stacks ------------------------------------------------------------------ */

/* Write the record at the end of the `bytes` at `slot`, which makes its page resident. */
static struct sni_stack *record_write(char *slot, unsigned class_, size_t guard_bytes,
                                      uint32_t colour)
{
    char *at = slot + ((size_t)1 << class_) - RECORD_BYTES - (size_t)colour * COLOUR_BYTES;
    struct sni_stack *stack = (struct sni_stack *)(void *)at;
    *stack = (struct sni_stack){
        .lo = slot + guard_bytes,
        .hi = at,
        .class_ = (uint8_t)class_,
        .valgrind_id = sni_valgrind_stack_register(slot + guard_bytes, at),
    };
    return stack;
}

static uint32_t slab_first_blank(struct sni_stack_slab *slab)
{
    while (slab->bits[slab->search_from] == 0)
        slab->search_from++;
    uint64_t word = slab->bits[slab->search_from];
    return slab->search_from * 64 + (uint32_t)__builtin_ctzll(word);
}

/* Under the pool's mutex: a stack out of a slab. */
static int blank_get(struct sni_stack_pool *pool, unsigned class_, struct sni_stack **out)
{
    struct sni_stack_class *cls = &pool->classes[class_];
    if (sni_list_empty(&cls->open)) {
        int rc = slab_create(pool, class_);
        if (rc < 0)
            return rc;
    }
    struct sni_stack_slab *slab = sni_container_of(cls->open.next, struct sni_stack_slab, link);
    uint32_t index = slab_first_blank(slab);
    while (index >= slab->guarded)
        slab_guard_more(pool, slab);
    bit_clear(slab->bits, index);
    cls->blank--;
    if (--slab->blank_count == 0) {
        sni_list_remove(&slab->link);
        sni_list_push_back(&cls->full, &slab->link);
    }
    /* The smallest class has one page in all and none to spare. */
    uint32_t colour = class_ > pool->class_min ? index % COLOURS : 0;
    *out = record_write(slab->slots + ((size_t)index << class_), class_, pool->page_bytes, colour);
    (*out)->slab = slab;
    (*out)->index = index;
    (*out)->guard = (uint8_t)(bit_get(bare_bits(slab), index) ? SNI_GUARD_NONE : pool->cfg.guard);
    pool->given++;
    return 0;
}

/* Under the pool's mutex: the stack, in no list, gives its memory back. */
static void blank_put(struct sni_stack_pool *pool, struct sni_stack *stack)
{
    struct sni_stack_slab *slab = stack->slab;
    struct sni_stack_class *cls = &pool->classes[stack->class_];
    uint32_t index = stack->index;
    size_t slot_bytes = (size_t)1 << slab->class_;
    sni_valgrind_stack_deregister(stack->valgrind_id);
    sni_plat_discard(slab->slots + index * slot_bytes, slot_bytes); /* the record, too */
    bit_set(slab->bits, index);
    if (index / 64 < slab->search_from)
        slab->search_from = index / 64;
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

/* ---- big stacks -------------------------------------------------------------------- */

static int big_create(struct sni_stack_pool *pool, unsigned class_, struct sni_stack **out)
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

static void big_destroy(struct sni_stack_pool *pool, struct sni_stack *stack)
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

/* ---- the pool ---------------------------------------------------------------------- */

static unsigned class_of(size_t bytes)
{
    return bytes < 2 ? 0 : 64 - (unsigned)__builtin_clzll((unsigned long long)(bytes - 1));
}

static void config_complete(struct sni_stack_config *cfg)
{
    if (cfg->default_bytes == 0)
        cfg->default_bytes = (size_t)1 << DEFAULT_CLASS;
    if (cfg->slab_bytes_max == 0)
        cfg->slab_bytes_max = SLAB_BYTES_MAX;
    if (cfg->guard == SNI_GUARD_AUTO)
        cfg->guard = sni_plat_guard_kind();
    if (cfg->mprotect_guards_max == 0)
        cfg->mprotect_guards_max = sni_plat_guard_limit(SNI_GUARD_MPROTECT);
    if (cfg->cached_max == 0)
        cfg->cached_max = CACHED_MAX;
}

int sni_stack_pool_init(struct sni_stack_pool *pool, const struct sni_stack_config *cfg)
{
    memset(pool, 0, sizeof(*pool));
    if (cfg != NULL)
        pool->cfg = *cfg;
    config_complete(&pool->cfg);
    pool->page_bytes = sni_plat_page_bytes();
    pool->class_min = (uint8_t)class_of(2 * pool->page_bytes);
    unsigned class_default = class_of(pool->cfg.default_bytes);
    if (class_default > SNI_STACK_CLASS_MAX || pool->cfg.guard >= SNI_GUARD_KINDS)
        return -EINVAL;
    pool->class_default =
        class_default > pool->class_min ? (uint8_t)class_default : pool->class_min;
    sni_list_init(&pool->caches);
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++) {
        struct sni_stack_class *cls = &pool->classes[c];
        size_t first = SLAB_BYTES_FIRST > (size_t)16 << c ? SLAB_BYTES_FIRST : (size_t)16 << c;
        if (first > pool->cfg.slab_bytes_max)
            first = pool->cfg.slab_bytes_max;
        cls->slab_bytes_next = first > (size_t)1 << c ? first : (size_t)1 << c;
        sni_list_init(&cls->open);
        sni_list_init(&cls->full);
    }
    return 0;
}

/* Valgrind remembers stacks until it is told; others need not touch all the records. */
static void forget_free(struct sni_stack_class *cls)
{
    if (!sni_valgrind_active())
        return;
    for (struct sni_stack *s = cls->free.head; s != NULL; s = s->next)
        sni_valgrind_stack_deregister(s->valgrind_id);
}

void sni_stack_pool_finish(struct sni_stack_pool *pool)
{
    if (pool->page_bytes == 0)
        return;
    sni_assert(sni_list_empty(&pool->caches), "a stack pool ends before one of its caches");
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++) {
        struct sni_stack_class *cls = &pool->classes[c];
        forget_free(cls);
        while (!sni_list_empty(&cls->open))
            slab_destroy(pool, sni_container_of(cls->open.next, struct sni_stack_slab, link));
        while (!sni_list_empty(&cls->full))
            slab_destroy(pool, sni_container_of(cls->full.next, struct sni_stack_slab, link));
    }
    memset(pool, 0, sizeof(*pool));
}

size_t sni_stack_pool_trim(struct sni_stack_pool *pool, size_t stacks_max)
{
    size_t done = 0;
    sni_mutex_lock(&pool->mutex);
    for (unsigned c = 0; c <= SNI_STACK_CLASS_SLAB_MAX; c++) {
        struct sni_stack_list *list = &pool->classes[c].free;
        for (; list->low > 0 && done < stacks_max; list->low--, done++)
            blank_put(pool, free_pop_cold(list));
        if (list->low == 0)
            list->low = list_count(list); /* a new period begins */
    }
    sni_mutex_unlock(&pool->mutex);
    return done;
}

void sni_stack_pool_stats(struct sni_stack_pool *pool, struct sni_stack_stats *stats)
{
    sni_mutex_lock(&pool->mutex);
    *stats = pool->stats;
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++) {
        stats->cached += list_count(&pool->classes[c].free);
        stats->blank += pool->classes[c].blank;
        sni_list_each(link, &pool->caches) {
            struct sni_stack_cache *cache = sni_container_of(link, struct sni_stack_cache, link);
            stats->cached += list_count(&cache->lists[c]);
        }
    }
    stats->in_use = pool->given > stats->cached ? pool->given - stats->cached : 0;
    sni_mutex_unlock(&pool->mutex);
}

/* ---- caches ------------------------------------------------------------------------ */

static uint32_t cached_max(const struct sni_stack_pool *pool, unsigned class_)
{
    if (class_ > SNI_STACK_CLASS_SLAB_MAX)
        return BIG_CACHED_MAX;
    size_t most = CACHED_BYTES_MAX >> class_;
    return most < pool->cfg.cached_max ? (uint32_t)most : pool->cfg.cached_max;
}

void sni_stack_cache_init(struct sni_stack_cache *cache, struct sni_stack_pool *pool)
{
    memset(cache, 0, sizeof(*cache));
    cache->pool = pool;
    cache->class_min = pool->class_min;
    cache->class_default = pool->class_default;
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++)
        cache->count_max[c] = cached_max(pool, c);
    sni_list_init(&cache->link);
    sni_mutex_lock(&pool->mutex);
    sni_list_push_back(&pool->caches, &cache->link);
    sni_mutex_unlock(&pool->mutex);
}

/* Take everything behind the `keep` warmest stacks out of the cache and give it to the pool. */
static SNI_COLD void spill(struct sni_stack_cache *cache, unsigned class_, uint32_t keep)
{
    struct sni_stack_list *list = &cache->lists[class_];
    struct sni_stack_list *free = &cache->pool->classes[class_].free;
    struct sni_stack **end = &list->head;
    for (uint32_t i = 0; i < keep && *end != NULL; i++)
        end = &(*end)->next;
    struct sni_stack *rest = *end;
    *end = NULL;
    if (list_count(list) > keep)
        list_set_count(list, keep);
    if (list->low > keep)
        list->low = keep;
    if (class_ <= SNI_STACK_CLASS_SLAB_MAX)
        sni_mutex_lock(&cache->pool->mutex);
    while (rest != NULL) {
        struct sni_stack *stack = rest;
        rest = rest->next;
        if (class_ > SNI_STACK_CLASS_SLAB_MAX)
            big_destroy(cache->pool, stack);
        else
            free_push(free, stack);
    }
    if (class_ <= SNI_STACK_CLASS_SLAB_MAX)
        sni_mutex_unlock(&cache->pool->mutex);
}

void sni_stack_cache_finish(struct sni_stack_cache *cache)
{
    if (cache->pool == NULL)
        return;
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++)
        spill(cache, c, 0);
    sni_mutex_lock(&cache->pool->mutex);
    sni_list_remove(&cache->link);
    sni_mutex_unlock(&cache->pool->mutex);
    cache->pool = NULL;
}

void sni_stack_cache_trim(struct sni_stack_cache *cache)
{
    for (unsigned c = 0; c < SNI_STACK_CLASSES; c++) {
        struct sni_stack_list *list = &cache->lists[c];
        uint32_t count = list_count(list);
        if (list->low > 0)
            spill(cache, c, count - list->low);
        list->low = list_count(list); /* a new period begins */
    }
}

/* The cache has none: half of what it may hold from the pool, or else one new stack. */
static SNI_COLD int refill(struct sni_stack_cache *cache, unsigned class_, struct sni_stack **out)
{
    struct sni_stack_pool *pool = cache->pool;
    if (class_ > SNI_STACK_CLASS_SLAB_MAX)
        return big_create(pool, class_, out);
    struct sni_stack_list *free = &pool->classes[class_].free;
    int rc = 0;
    sni_mutex_lock(&pool->mutex);
    *out = list_count(free) > 0 ? free_pop(free) : NULL;
    for (uint32_t i = 1; i < cache->count_max[class_] / 2 && list_count(free) > 0; i++)
        list_push(&cache->lists[class_], free_pop(free));
    if (*out == NULL)
        rc = blank_get(pool, class_, out);
    sni_mutex_unlock(&pool->mutex);
    return rc;
}

int sni_stack_get(struct sni_stack_cache *cache, size_t bytes, struct sni_stack **out)
{
    unsigned class_ = cache->class_default;
    if (bytes != 0) {
        class_ = class_of(bytes);
        if (class_ < cache->class_min)
            class_ = cache->class_min;
        if (sni_unlikely(class_ > SNI_STACK_CLASS_MAX))
            return -EINVAL;
    }
    struct sni_stack *stack = list_pop(&cache->lists[class_]);
    if (sni_unlikely(stack == NULL)) {
        int rc = refill(cache, class_, &stack);
        if (rc < 0)
            return rc;
    }
    stack->in_use = true;
    *out = stack;
    return 0;
}

void sni_stack_put(struct sni_stack_cache *cache, struct sni_stack *stack)
{
    sni_assert(stack->in_use, "a stack was put back twice");
    stack->in_use = false;
    unsigned class_ = stack->class_;
    struct sni_stack_list *list = &cache->lists[class_];
    if (sni_unlikely(list_count(list) >= cache->count_max[class_]))
        spill(cache, class_, cache->count_max[class_] / 2);
    if (sni_unlikely(class_ > SNI_STACK_CLASS_SLAB_MAX)) /* it may have been a GiB deep */
        sni_plat_discard(stack->lo,
                         ((size_t)1 << class_) - cache->pool->page_bytes - BIG_WARM_BYTES);
    list_push(list, stack);
}

/* ---- of one stack ------------------------------------------------------------------ */

size_t sni_stack_high_water(const struct sni_stack *stack)
{
    size_t page = sni_plat_page_bytes();
    size_t bytes = (size_t)(stack->hi - stack->lo);
    size_t untouched = sni_plat_untouched(stack->lo, (bytes + page - 1) / page * page);
    return untouched < bytes ? bytes - untouched : 0;
}

bool sni_stack_is_guard_hit(const struct sni_stack *stack, const void *addr,
                            struct sni_stack_overflow *what)
{
    uintptr_t at = (uintptr_t)addr;
    uintptr_t lo = (uintptr_t)stack->lo;
    if (stack->guard == SNI_GUARD_NONE || at >= lo || lo - at > sni_plat_page_bytes())
        return false;
    if (what != NULL) {
        what->had_bytes = (size_t)1 << stack->class_;
        what->below_bytes = lo - at;
        what->next_bytes = stack->class_ < SNI_STACK_CLASS_MAX ? what->had_bytes * 2 : 0;
    }
    return true;
}
