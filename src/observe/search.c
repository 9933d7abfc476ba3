/* SPDX-License-Identifier: MIT */
/* search.c - every word of memory.
 *
 * What the search itself keeps lies in mappings of its own, which are left out: it knows what is
 * looked for, and would find itself. Shadows of sanitizers are larger than any memory, and have no
 * words in them; other mappings of that size make the search give up. */
#include "observe/search.h"

#include "base/compiler.h"
#include "plat/memory.h"
#include "plat/self.h"
#include "runtime/inspect.h"

#include <sinew/errno.h>

enum {
    BUFFER_BYTES = 256 << 10,
    HOLES_MAX = 1 << 20,
};

#define MAPPING_MAX ((uintptr_t)1 << 38)

int sni_search_skip(struct sni_search *search, uintptr_t from, uintptr_t to)
{
    if (from >= to)
        return 0;
    if (search->holes_n == search->holes_room)
        return -ENOMEM;
    search->holes[search->holes_n++] = (struct sni_span){from, to};
    return 0;
}

int sni_search_init(struct sni_search *search, void (*word)(uintptr_t word, void *arg), void *arg)
{
    void *memory;
    size_t bytes = BUFFER_BYTES + HOLES_MAX * sizeof(struct sni_span);
    *search = (struct sni_search){.word = word, .arg = arg};
    search->self = sni_plat_self_open();
    if (search->self < 0)
        return search->self;
    if (sni_plat_reserve(&memory, bytes) < 0) {
        sni_plat_self_close(search->self);
        return -ENOMEM;
    }
    search->pages = sni_plat_pages_open(); /* without it there is more to look at */
    search->buffer = memory;
    search->holes = (struct sni_span *)(void *)((char *)memory + BUFFER_BYTES);
    search->holes_room = HOLES_MAX;
    return sni_search_skip(search, (uintptr_t)memory, (uintptr_t)memory + bytes);
}

void sni_search_finish(struct sni_search *search)
{
    sni_plat_release(search->buffer, BUFFER_BYTES + HOLES_MAX * sizeof(struct sni_span));
    sni_plat_self_close(search->self);
    if (search->pages >= 0)
        sni_plat_self_close(search->pages);
}

/* Where there is something to see next. */
static uintptr_t skip_unwritten(const struct sni_search *search, uintptr_t from, uintptr_t to)
{
    const uintptr_t page = sni_plat_page_bytes();
    uintptr_t begin = (from + page - 1) & ~(page - 1);
    if (begin != from && begin < to)
        return from; /* the rest of a page first */
    return from + sni_plat_pages_unwritten(search->pages, from, to - from);
}

static void look_at_anonymous(struct sni_search *search, uintptr_t from, uintptr_t to)
{
    while (from < to) {
        from = skip_unwritten(search, from, to);
        uintptr_t next = (from & ~(uintptr_t)(BUFFER_BYTES - 1)) + BUFFER_BYTES;
        next = next < to ? next : to;
        if (from < next)
            sni_search_span(search, from, next);
        from = from < next ? next : to;
    }
}

void sni_search_span(struct sni_search *search, uintptr_t from, uintptr_t to)
{
    const uintptr_t page = sni_plat_page_bytes();
    from = (from + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    while (from + sizeof(uintptr_t) <= to) {
        size_t want = to - from < BUFFER_BYTES ? to - from : BUFFER_BYTES;
        size_t got = sni_plat_self_read(search->self, from, search->buffer, want);
        const uintptr_t *words = (const uintptr_t *)(const void *)search->buffer;
        for (size_t i = 0; i < got / sizeof(uintptr_t); i++)
            if (words[i] != 0)
                search->word(words[i], search->arg);
        if (got < sizeof(uintptr_t))
            from = (from & ~(page - 1)) + page; /* a page that cannot be read */
        else
            from += got & ~(sizeof(uintptr_t) - 1);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct sni_span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int look_at_mapping(uintptr_t from, uintptr_t to, bool anonymous, void *arg)
{
    struct sni_search *search = arg;
    void (*look)(struct sni_search *, uintptr_t, uintptr_t) =
        anonymous ? look_at_anonymous : sni_search_span;
    for (size_t i = 0; i < search->holes_n && from < to; i++) {
        const struct sni_span *hole = &search->holes[i];
        if (hole->to <= from || hole->from >= to)
            continue;
        if (hole->from > from && hole->from - from <= MAPPING_MAX)
            look(search, from, hole->from);
        from = hole->to;
    }
    if (from >= to)
        return 0;
    if (to - from > MAPPING_MAX)
        return SNI_THREAD_SANITIZED || SNI_ADDRESS_SANITIZED ? 0 : -ENOTSUP;
    look(search, from, to);
    return 0;
}

int sni_search_all(struct sni_search *search)
{
    sni_sort(search->holes, search->holes_n, sizeof(*search->holes), by_start);
    return sni_plat_each_mapping(look_at_mapping, search);
}
