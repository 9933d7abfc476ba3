/* SPDX-License-Identifier: MIT */
/* stack.c - the pool of stacks and the caches of the workers.
 *
 * A stack of a slab is in exactly one state: blank (nothing of it is resident, not even its
 * record; its slab knows); free (its record is linked into one list, of a cache or of the
 * pool); in use. `pool->given` counts those that are not blank, and those mapped one by one.
 *
 * Cold: lists are last in, first out. The least length that a list had in some period is the
 * number of stacks at its tail that nobody needed in that period; trimming takes these.
 *
 * The mutex is held for a few instructions, or for one of these system calls: reserving a slab,
 * guarding 32 slots. Page faults and discarding happen outside, on stacks that are in no list.
 *
 * Rejected: trimming on each put (2 us of system call on a path of a few ns); a lock-free pool
 * (it is entered once per 512 operations of a cache, or together with a page fault). */
#include "fiber/stack_priv.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "fiber/sanitize.h"

#include <sinew/errno.h>
#include <string.h>

enum {
    CLASS_DEFAULT = 16,
    CACHED_MAX = 1024,
    BIG_CACHED_MAX = 2,
};

#define SLAB_BYTES_FIRST ((size_t)1 << 20)
#define SLAB_BYTES_MAX   ((size_t)1 << 26)
#define CACHED_BYTES_MAX ((size_t)1 << 26) /* address space that a cache keeps of a class */
#define BIG_WARM_BYTES   ((size_t)1 << 16) /* resident of a big stack in a cache          */

static inline bool is_big(unsigned class_)
{
    return class_ > SNI_STACK_CLASS_SLAB_MAX;
}

/* ---- lists --------------------------------------------------------------------------- */

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
    list->low--;
    return stack;
}

/* ---- the pool ------------------------------------------------------------------------ */

static unsigned class_of(size_t bytes)
{
    return bytes < 2 ? 0 : 64 - (unsigned)__builtin_clzll((unsigned long long)(bytes - 1));
}

static void config_complete(struct sni_stack_config *cfg)
{
    if (cfg->default_bytes == 0)
        cfg->default_bytes = (size_t)1 << CLASS_DEFAULT;
    if (cfg->slab_bytes_max == 0)
        cfg->slab_bytes_max = SLAB_BYTES_MAX;
    if (cfg->guard == SNI_GUARD_AUTO)
        cfg->guard = sni_plat_guard_kind();
    if (cfg->mprotect_guards_max == 0)
        cfg->mprotect_guards_max = sni_plat_guard_limit(SNI_GUARD_MPROTECT);
    if (cfg->cached_max == 0)
        cfg->cached_max = CACHED_MAX;
}

static void class_init(struct sni_stack_class *cls, unsigned class_, size_t slab_bytes_max)
{
    size_t one = (size_t)1 << class_;
    size_t first = SLAB_BYTES_FIRST > 16 * one ? SLAB_BYTES_FIRST : 16 * one;
    if (first > slab_bytes_max)
        first = slab_bytes_max;
    cls->slab_bytes_next = first > one ? first : one;
    sni_list_init(&cls->open);
    sni_list_init(&cls->full);
}

int sni_stack_pool_init(struct sni_stack_pool *pool, const struct sni_stack_config *cfg)
{
    memset(pool, 0, sizeof(*pool));
    if (cfg != NULL)
        pool->cfg = *cfg;
    config_complete(&pool->cfg);
    size_t page = sni_plat_page_bytes();
    unsigned class_min = class_of(2 * page);
    unsigned class_default = class_of(pool->cfg.default_bytes);
    if (class_default > SNI_STACK_CLASS_MAX || pool->cfg.guard >= SNI_GUARD_KINDS)
        return -EINVAL;
    pool->class_min = (uint8_t)class_min;
    pool->class_default = (uint8_t)(class_default > class_min ? class_default : class_min);
    sni_list_init(&pool->caches);
    for (unsigned c = SNI_STACK_CLASS_MIN; c <= SNI_STACK_CLASS_SLAB_MAX; c++)
        class_init(sni_stack_class_of(pool, c), c, pool->cfg.slab_bytes_max);
    pool->page_bytes = page; /* marks it as initialised */
    return 0;
}

/* Valgrind remembers stacks until it is told; others need not touch all the records. */
static void forget_free(const struct sni_stack_class *cls)
{
    if (!sni_valgrind_active())
        return;
    for (const struct sni_stack *s = cls->free.head; s != NULL; s = s->next)
        sni_valgrind_stack_deregister(s->valgrind_id);
}

void sni_stack_pool_finish(struct sni_stack_pool *pool)
{
    if (pool->page_bytes == 0)
        return;
    sni_assert(sni_list_empty(&pool->caches), "a stack pool ends before one of its caches");
    for (unsigned c = SNI_STACK_CLASS_MIN; c <= SNI_STACK_CLASS_SLAB_MAX; c++) {
        forget_free(sni_stack_class_of(pool, c));
        sni_stack_slabs_release(pool, c);
    }
    memset(pool, 0, sizeof(*pool));
}

/* One stack that is cold, taken out, or NULL; the last one begins a new period. */
static struct sni_stack *take_cold(struct sni_stack_pool *pool, unsigned class_)
{
    struct sni_stack_list *list = &sni_stack_class_of(pool, class_)->free;
    struct sni_stack *stack = NULL;
    sni_mutex_lock(&pool->mutex);
    if (list->low > 0)
        stack = free_pop_cold(list);
    else
        list->low = list_count(list);
    sni_mutex_unlock(&pool->mutex);
    return stack;
}

size_t sni_stack_pool_trim(struct sni_stack_pool *pool, size_t stacks_max)
{
    size_t done = 0;
    for (unsigned c = pool->class_min; c <= SNI_STACK_CLASS_SLAB_MAX; c++) {
        while (done < stacks_max) {
            struct sni_stack *stack = take_cold(pool, c);
            if (stack == NULL)
                break;
            struct sni_stack_slot slot = sni_stack_slot_close(stack);
            sni_mutex_lock(&pool->mutex);
            sni_stack_slot_give(pool, &slot);
            sni_mutex_unlock(&pool->mutex);
            done++;
        }
    }
    return done;
}

void sni_stack_pool_stats(struct sni_stack_pool *pool, struct sni_stack_stats *stats)
{
    sni_mutex_lock(&pool->mutex);
    *stats = pool->stats;
    for (unsigned i = 0; i < SNI_STACK_SLAB_CLASSES; i++) {
        stats->cached += list_count(&pool->classes[i].free);
        stats->blank += pool->classes[i].blank;
    }
    sni_list_each(link, &pool->caches) {
        struct sni_stack_cache *cache = sni_container_of(link, struct sni_stack_cache, link);
        for (unsigned i = 0; i < SNI_STACK_CLASSES; i++)
            stats->cached += list_count(&cache->lists[i]);
    }
    stats->in_use = pool->given > stats->cached ? pool->given - stats->cached : 0;
    sni_mutex_unlock(&pool->mutex);
}

/* ---- caches -------------------------------------------------------------------------- */

static uint32_t cached_max(const struct sni_stack_pool *pool, unsigned class_)
{
    if (is_big(class_))
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
    for (unsigned i = 0; i < SNI_STACK_CLASSES; i++)
        cache->count_max[i] = cached_max(pool, SNI_STACK_CLASS_MIN + i);
    sni_list_init(&cache->link);
    sni_mutex_lock(&pool->mutex);
    sni_list_push_back(&pool->caches, &cache->link);
    sni_mutex_unlock(&pool->mutex);
}

static inline struct sni_stack_list *list_of(struct sni_stack_cache *cache, unsigned class_)
{
    return &cache->lists[class_ - SNI_STACK_CLASS_MIN];
}

/* Cut the list behind its `keep` warmest stacks and give the rest. */
static struct sni_stack *cut(struct sni_stack_list *list, uint32_t keep)
{
    struct sni_stack **end = &list->head;
    for (uint32_t i = 0; i < keep && *end != NULL; i++)
        end = &(*end)->next;
    struct sni_stack *rest = *end;
    *end = NULL;
    if (list_count(list) > keep)
        list_set_count(list, keep);
    if (list->low > keep)
        list->low = keep;
    return rest;
}

/* Hand all but the `keep` warmest stacks to the pool, or to the system if they are big. */
static SNI_COLD void spill(struct sni_stack_cache *cache, unsigned class_, uint32_t keep)
{
    struct sni_stack_pool *pool = cache->pool;
    struct sni_stack *next;
    struct sni_stack *stack = cut(list_of(cache, class_), keep);
    if (is_big(class_)) {
        for (; stack != NULL; stack = next) {
            next = stack->next;
            sni_stack_big_destroy(pool, stack);
        }
        return;
    }
    sni_mutex_lock(&pool->mutex);
    for (; stack != NULL; stack = next) {
        next = stack->next;
        free_push(&sni_stack_class_of(pool, class_)->free, stack);
    }
    sni_mutex_unlock(&pool->mutex);
}

void sni_stack_cache_finish(struct sni_stack_cache *cache)
{
    if (cache->pool == NULL)
        return;
    for (unsigned c = cache->class_min; c <= SNI_STACK_CLASS_MAX; c++)
        spill(cache, c, 0);
    sni_mutex_lock(&cache->pool->mutex);
    sni_list_remove(&cache->link);
    sni_mutex_unlock(&cache->pool->mutex);
    cache->pool = NULL;
}

void sni_stack_cache_trim(struct sni_stack_cache *cache)
{
    for (unsigned c = cache->class_min; c <= SNI_STACK_CLASS_MAX; c++) {
        struct sni_stack_list *list = list_of(cache, c);
        if (list->low > 0)
            spill(cache, c, list_count(list) - list->low);
        list->low = list_count(list); /* a new period begins */
    }
}

/* Up to `n` stacks move from the pool's list to the cache's. Under the pool's mutex. */
static void move_some(struct sni_stack_list *to, struct sni_stack_list *from, uint32_t n)
{
    for (uint32_t i = 0; i < n && list_count(from) > 0; i++)
        list_push(to, free_pop(from));
}

/* The cache has none: half of what it may hold from the pool, or else one that was blank. */
static SNI_COLD int refill(struct sni_stack_cache *cache, unsigned class_, struct sni_stack **out)
{
    struct sni_stack_pool *pool = cache->pool;
    struct sni_stack_list *list = list_of(cache, class_);
    struct sni_stack_slot slot;
    int rc = 0;
    if (is_big(class_))
        return sni_stack_big_create(pool, class_, out);
    sni_mutex_lock(&pool->mutex);
    move_some(list, &sni_stack_class_of(pool, class_)->free,
              cache->count_max[class_ - SNI_STACK_CLASS_MIN] / 2 + 1);
    *out = list_pop(list);
    if (*out == NULL)
        rc = sni_stack_slot_take(pool, class_, &slot);
    sni_mutex_unlock(&pool->mutex);
    if (rc == 0 && *out == NULL)
        *out = sni_stack_slot_open(pool, &slot);
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
    struct sni_stack *stack = list_pop(list_of(cache, class_));
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
    struct sni_stack_list *list = list_of(cache, class_);
    uint32_t most = cache->count_max[class_ - SNI_STACK_CLASS_MIN];
    if (sni_unlikely(list_count(list) >= most))
        spill(cache, class_, most / 2);
    if (sni_unlikely(is_big(class_))) /* it may have been a GiB deep */
        sni_plat_discard(stack->lo,
                         ((size_t)1 << class_) - cache->pool->page_bytes - BIG_WARM_BYTES);
    list_push(list, stack);
}

/* ---- of one stack -------------------------------------------------------------------- */

size_t sni_stack_high_water(const struct sni_stack *stack)
{
    size_t page = sni_plat_page_bytes();
    size_t bytes = (size_t)(stack->hi - stack->lo);
    size_t untouched = sni_plat_untouched(stack->lo, (bytes + page - 1) / page * page);
    return untouched < bytes ? bytes - untouched : 0;
}

size_t sni_stack_high_water_take(struct sni_stack *stack)
{
    size_t used = sni_stack_high_water(stack);
    char *top = stack->hi - ((uintptr_t)stack->hi & (sni_plat_page_bytes() - 1));
    if (used > (size_t)(stack->hi - top)) /* deeper than the page of its record */
        sni_plat_discard(stack->lo, (size_t)(top - stack->lo));
    return used;
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
