/* SPDX-License-Identifier: MIT */
/* chan_watch.c - the latest value, and who waits for a later one.
 *
 * A version counts how often the value was set. Who has seen the present one waits in a line; a set
 * wakes all of it, and each takes the lock and copies what is there by then, which may be later
 * still. */
#include "sync/chan.h"
#include "sync/news_op.h"

#include <sinew/errno.h>
#include <sinew/select.h>

#include <assert.h>
#include <stdlib.h>

struct watch {
    struct sni_record record;
    uint32_t magic; /* these: immutable */
    size_t element_bytes;
    void *element;            /* where it points to: under the lock */
    struct sni_source source; /* guards what follows */
    bool is_closed;
    uint64_t version;
    struct sni_list waiting;
};

static_assert(sizeof(struct watch) <= SNI_RECORD_BYTES_MAX, "a watch is a record");

static struct watch *find(const sn_watch *handle)
{
    struct sni_record *record = sni_arena_find_other((uint64_t)(uintptr_t)handle);
    struct watch *w = (struct watch *)(void *)record;
    return w != NULL && w->magic == SNI_WATCH_MAGIC ? w : NULL;
}

#define MISUSE() sni_misuse(-EBADF, "a watch is used that is gone, or was none")

int sn_watch_create(sn_watch **out, size_t element_bytes, const void *value)
{
    if (out == NULL || element_bytes > SN_CHAN_ELEMENT_MAX || (value == NULL && element_bytes > 0))
        return -EINVAL;
    void *element = malloc(element_bytes != 0 ? element_bytes : 1);
    if (element == NULL)
        return -ENOMEM;
    struct sni_record *record;
    int rc = sni_record_take(sizeof(struct watch), &record);
    if (rc < 0) {
        free(element);
        return rc;
    }
    struct watch *w = (struct watch *)(void *)record;
    memset((char *)w + sizeof(w->record), 0, sizeof(*w) - sizeof(w->record));
    sni_chan_copy(element, value, element_bytes);
    w->element_bytes = element_bytes;
    w->element = element;
    w->version = 1;
    sni_list_init(&w->waiting);
    w->magic = SNI_WATCH_MAGIC;
    *out = (sn_watch *)(uintptr_t)sni_record_handle(record);
    return 0;
}

int sn_watch_destroy(sn_watch *handle)
{
    if (handle == NULL)
        return 0;
    struct watch *w = find(handle);
    if (w == NULL)
        return MISUSE();
    sni_assert(sni_list_empty(&w->waiting), "a watch is freed although somebody waits at it");
    free(w->element);
    w->magic = 0;
    sni_record_give(&w->record);
    return 0;
}

int sn_watch_close(sn_watch *handle)
{
    struct watch *w = find(handle);
    if (w == NULL)
        return MISUSE();
    sni_brief_lock(&w->source.lock);
    w->is_closed = true;
    sni_source_wake_all(&w->source, &w->waiting, false); /* they look again */
    return 0;
}

int sn_watch_set(sn_watch *handle, const void *value)
{
    struct watch *w = find(handle);
    if (w == NULL)
        return MISUSE();
    sni_brief_lock(&w->source.lock);
    if (w->is_closed) {
        sni_brief_unlock(&w->source.lock);
        return -EPIPE;
    }
    sni_chan_copy(w->element, value, w->element_bytes);
    w->version++;
    sni_source_wake_all(&w->source, &w->waiting, false);
    return 0;
}

/* Under the lock. */
static void take(struct watch *w, void *value, uint64_t *version)
{
    sni_chan_copy(value, w->element, w->element_bytes);
    if (version != NULL)
        *version = w->version;
}

int sn_watch_get(sn_watch *handle, void *value, uint64_t *version)
{
    struct watch *w = find(handle);
    if (w == NULL)
        return MISUSE();
    sni_brief_lock(&w->source.lock);
    take(w, value, version);
    sni_brief_unlock(&w->source.lock);
    return 0;
}

int sn_watch_recv(sn_watch *handle, void *value, uint64_t *version, sn_deadline until)
{
    struct watch *w = find(handle);
    if (w == NULL)
        return MISUSE();
    sni_brief_lock(&w->source.lock);
    while (w->version == *version) {
        if (w->is_closed) {
            sni_brief_unlock(&w->source.lock);
            return -EPIPE;
        }
        int rc = sni_source_wait(&w->source, &w->waiting, NULL, until);
        if (rc < 0)
            return rc;
        sni_brief_lock(&w->source.lock);
    }
    take(w, value, version);
    sni_brief_unlock(&w->source.lock);
    sni_spend_many(1, until.ns);
    return 0;
}

/* ---- as a case, and as a future --------------------------------------------------------- */

static struct watch *of_case(const struct sni_case *c)
{
    return sni_container_of(c->source, struct watch, source);
}

static uint64_t *version_of(const struct sni_case *c)
{
    return (uint64_t *)(uintptr_t)c->more;
}

static struct sni_source *find_case(struct sni_case *c)
{
    struct watch *w = find(c->at);
    return w == NULL ? NULL : &w->source;
}

static int attempt(struct sni_case *c, struct sni_wake *wake)
{
    (void)wake;
    struct watch *w = of_case(c);
    uint64_t *version = version_of(c);
    if (w->version == *version)
        return w->is_closed ? -EPIPE : -EAGAIN;
    take(w, c->value, version);
    return 0;
}

static struct sni_list *line(struct sni_case *c)
{
    return &of_case(c)->waiting;
}

static const struct sni_case_kind kind = {
    .find = find_case, .attempt = attempt, .line = line, .is_news = true, .name = "watch"};

sn_case sn_case_watch(sn_watch *w, void *value, uint64_t *version)
{
    return (sn_case){
        .kind_ = &kind, .at_ = w, .value_ = value, .more_ = (int64_t)(uintptr_t)version};
}

sn_future *sn_watch_recv_op(sn_news_op *op, sn_watch *w, void *value, uint64_t *version)
{
    sn_case c = sn_case_watch(w, value, version);
    return sni_news_op(op, &c);
}
