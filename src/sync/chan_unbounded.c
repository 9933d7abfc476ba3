/* SPDX-License-Identifier: MIT */
/* chan_unbounded.c - the store of an unbounded channel: a chain of segments.
 *
 * Elements are appended to the last segment and taken from the first. A segment that was emptied
 * becomes the spare one, and is the next to be appended; if there is a spare already, it is freed.
 * So a channel in steady state allocates nothing, and one that has seen a burst keeps two segments.
 *
 * Elements of no size need no store; `len` is all. */
#include "sync/chan.h"

#include <stdlib.h>

enum {
    SEGMENT_BYTES = 4096 - 32, /* with the allocator's own, a page */
    SEGMENT_ELEMENTS_MIN = 4,
};

static uint32_t elements_in(const struct sni_chan *c)
{
    size_t n = (SEGMENT_BYTES - sizeof(struct sni_segment)) / c->element_bytes;
    return n >= SEGMENT_ELEMENTS_MIN ? (uint32_t)n : SEGMENT_ELEMENTS_MIN;
}

void *sni_segments_grow(struct sni_chan *c)
{
    if (c->element_bytes == 0)
        return NULL;
    uint32_t n = elements_in(c);
    if (c->last == NULL || c->tail == n) {
        struct sni_segment *s = c->spare;
        c->spare = NULL;
        if (s == NULL)
            s = malloc(sizeof(*s) + n * c->element_bytes);
        if (s == NULL)
            return NULL;
        s->next = NULL;
        if (c->last != NULL)
            c->last->next = s;
        else
            c->first = s;
        c->last = s;
        c->tail = 0;
    }
    return c->last->elements + c->tail * c->element_bytes;
}

void *sni_segments_front(struct sni_chan *c)
{
    return c->element_bytes == 0 ? NULL : c->first->elements + c->head * c->element_bytes;
}

/* The first segment is not needed now. */
static void retire(struct sni_chan *c)
{
    struct sni_segment *s = c->first;
    c->first = s->next;
    if (c->first == NULL)
        c->last = NULL;
    c->head = 0;
    if (c->spare == NULL)
        c->spare = s;
    else
        free(s);
}

void sni_segments_shrink(struct sni_chan *c)
{
    if (c->element_bytes != 0 && ++c->head == elements_in(c))
        retire(c);
}

void sni_segments_finish(struct sni_chan *c)
{
    while (c->first != NULL)
        retire(c);
    free(c->spare);
    c->spare = NULL;
}
