/* SPDX-License-Identifier: MIT */
/* slots.c - the table of descriptors in two steps: a directory of chunks, and chunks of slots.
 *
 * The directory is moved when it grows, by doubling; the chunks stay, because lists run through
 * their slots. Descriptor numbers are dense, the kernel gives the lowest free one, so a table
 * indexed by them wastes little and needs no hashing. Nothing shrinks before the end. */
#include "io/epoll/slots.h"

#include <sinew/errno.h>

#include <stdlib.h>

static int grow(struct sni_slots *slots, size_t need)
{
    size_t count = slots->count == 0 ? 4 : slots->count;
    while (count < need)
        count *= 2;
    struct sni_slot **chunks = realloc(slots->chunks, count * sizeof(struct sni_slot *));
    if (chunks == NULL)
        return -ENOMEM;
    for (size_t i = slots->count; i < count; i++)
        chunks[i] = NULL;
    slots->chunks = chunks;
    slots->count = count;
    return 0;
}

int sni_slots_make(struct sni_slots *slots, int fd, struct sni_slot **slot)
{
    size_t at = (size_t)fd / SNI_SLOTS_CHUNK;
    if (at >= slots->count) {
        int rc = grow(slots, at + 1);
        if (rc < 0)
            return rc;
    }
    if (slots->chunks[at] == NULL) {
        struct sni_slot *chunk = calloc(SNI_SLOTS_CHUNK, sizeof(*chunk));
        if (chunk == NULL)
            return -ENOMEM;
        for (int i = 0; i < SNI_SLOTS_CHUNK; i++)
            sni_list_init(&chunk[i].waiters);
        slots->chunks[at] = chunk;
    }
    *slot = &slots->chunks[at][fd % SNI_SLOTS_CHUNK];
    return 0;
}

void sni_slots_finish(struct sni_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        free(slots->chunks[i]);
    free(slots->chunks);
    *slots = (struct sni_slots){.count = 0};
}
