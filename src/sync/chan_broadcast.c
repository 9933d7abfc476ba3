/* SPDX-License-Identifier: MIT */
/* chan_broadcast.c - every subscriber gets every value, or learns how many it has lost.
 *
 * A ring of the last elements, each of which has a number, counted from 0. A subscription is the
 * number of the element it wants next: that is all, so there is nothing to unsubscribe, and a slow
 * subscriber costs nobody anything. Number i lies in place i modulo the capacity, until number
 * i + capacity is sent.
 *
 * Who finds nothing new waits in a line; a send wakes all of it, and each then takes the lock and
 * copies for itself, because each may be at another number. */
#include "sync/chan.h"
#include "sync/news_op.h"

#include <sinew/errno.h>
#include <sinew/select.h>

#include <assert.h>
#include <stdlib.h>

struct broadcast {
    struct sni_record record;
    uint32_t magic; /* these: immutable */
    uint32_t capacity;
    size_t element_bytes;
    char *ring;
    struct sni_source source; /* guards what follows */
    bool is_closed;
    uint64_t next; /* the number of the element that is sent next */
    struct sni_list waiting;
};

static_assert(sizeof(struct broadcast) <= SNI_RECORD_BYTES_MAX, "a broadcast is a record");

static struct broadcast *find(const sn_broadcast *handle)
{
    struct sni_record *record = sni_arena_find_other((uint64_t)(uintptr_t)handle);
    struct broadcast *b = (struct broadcast *)(void *)record;
    return b != NULL && b->magic == SNI_BROADCAST_MAGIC ? b : NULL;
}

#define MISUSE() sni_misuse(-EBADF, "a broadcast is used that is gone, or was none")

int sn_broadcast_create(sn_broadcast **out, size_t element_bytes, size_t capacity)
{
    if (out == NULL || element_bytes > SN_CHAN_ELEMENT_MAX || capacity == 0 ||
        capacity > SN_CHAN_CAPACITY_MAX)
        return -EINVAL;
    char *ring = malloc(element_bytes != 0 ? capacity * element_bytes : 1);
    if (ring == NULL)
        return -ENOMEM;
    struct sni_record *record;
    int rc = sni_record_take(sizeof(struct broadcast), &record);
    if (rc < 0) {
        free(ring);
        return rc;
    }
    struct broadcast *b = (struct broadcast *)(void *)record;
    memset((char *)b + sizeof(b->record), 0, sizeof(*b) - sizeof(b->record));
    b->capacity = (uint32_t)capacity;
    b->element_bytes = element_bytes;
    b->ring = ring;
    sni_list_init(&b->waiting);
    b->magic = SNI_BROADCAST_MAGIC;
    *out = (sn_broadcast *)(uintptr_t)sni_record_handle(record);
    return 0;
}

int sn_broadcast_destroy(sn_broadcast *handle)
{
    if (handle == NULL)
        return 0;
    struct broadcast *b = find(handle);
    if (b == NULL)
        return MISUSE();
    sni_assert(sni_list_empty(&b->waiting), "a broadcast is freed although somebody waits at it");
    free(b->ring);
    b->magic = 0;
    sni_record_give(&b->record);
    return 0;
}

int sn_broadcast_close(sn_broadcast *handle)
{
    struct broadcast *b = find(handle);
    if (b == NULL)
        return MISUSE();
    sni_brief_lock(&b->source.lock);
    b->is_closed = true;
    sni_source_wake_all(&b->source, &b->waiting, false); /* they look again */
    return 0;
}

static void *place_of(const struct broadcast *b, uint64_t number)
{
    return b->ring + (size_t)(number % b->capacity) * b->element_bytes;
}

int sn_broadcast_send(sn_broadcast *handle, const void *value)
{
    struct broadcast *b = find(handle);
    if (b == NULL)
        return MISUSE();
    sni_brief_lock(&b->source.lock);
    if (b->is_closed) {
        sni_brief_unlock(&b->source.lock);
        return -EPIPE;
    }
    sni_chan_copy(place_of(b, b->next), value, b->element_bytes);
    b->next++;
    sni_source_wake_all(&b->source, &b->waiting, false);
    return 0;
}

int sn_broadcast_subscribe(sn_broadcast *handle, sn_subscription *sub)
{
    struct broadcast *b = find(handle);
    if (b == NULL)
        return MISUSE();
    sni_brief_lock(&b->source.lock);
    *sub = (sn_subscription){.from_ = handle, .next_ = b->next};
    sni_brief_unlock(&b->source.lock);
    return 0;
}

/* Under the lock: there is an element for `sub`. Returns how many it has lost. */
static int take(struct broadcast *b, sn_subscription *sub, void *value)
{
    uint64_t oldest = b->next > b->capacity ? b->next - b->capacity : 0;
    uint64_t lost = sub->next_ < oldest ? oldest - sub->next_ : 0;
    sub->next_ += lost;
    sni_chan_copy(value, place_of(b, sub->next_), b->element_bytes);
    sub->next_++;
    return lost < INT32_MAX ? (int)lost : INT32_MAX;
}

int sn_broadcast_recv(sn_subscription *sub, void *value, sn_deadline until)
{
    struct broadcast *b = find(sub->from_);
    if (b == NULL)
        return MISUSE();
    sni_brief_lock(&b->source.lock);
    while (sub->next_ == b->next) {
        if (b->is_closed) {
            sni_brief_unlock(&b->source.lock);
            return -EPIPE;
        }
        int rc = sni_source_wait(&b->source, &b->waiting, NULL, until);
        if (rc < 0)
            return rc;
        sni_brief_lock(&b->source.lock);
    }
    int lost = take(b, sub, value);
    sni_brief_unlock(&b->source.lock);
    sni_spend_many(1, until.ns);
    return lost;
}

/* ---- as a case, and as a future --------------------------------------------------------- */

static struct broadcast *of_case(const struct sni_case *c)
{
    return sni_container_of(c->source, struct broadcast, source);
}

static struct sni_source *find_case(struct sni_case *c)
{
    const sn_subscription *sub = c->at;
    struct broadcast *b = find(sub->from_);
    return b == NULL ? NULL : &b->source;
}

static int attempt(struct sni_case *c, struct sni_wake *wake)
{
    (void)wake;
    struct broadcast *b = of_case(c);
    sn_subscription *sub = c->at;
    if (sub->next_ == b->next)
        return b->is_closed ? -EPIPE : -EAGAIN;
    return take(b, sub, c->value);
}

static struct sni_list *line(struct sni_case *c)
{
    return &of_case(c)->waiting;
}

static const struct sni_case_kind kind = {
    .find = find_case, .attempt = attempt, .line = line, .is_news = true, .name = "broadcast"};

sn_case sn_case_broadcast(sn_subscription *sub, void *value)
{
    return (sn_case){.kind_ = &kind, .at_ = sub, .value_ = value};
}

sn_future *sn_broadcast_recv_op(sn_news_op *op, sn_subscription *sub, void *value)
{
    sn_case c = sn_case_broadcast(sub, value);
    return sni_news_op(op, &c);
}
