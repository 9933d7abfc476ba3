/* SPDX-License-Identifier: MIT */
/* items.c - see items.h. */
#include "model/items.h"

#include "base/compiler.h"
#include "model/model.h"

static struct item {
    struct sni_runlink link;
    struct model_data data;
    unsigned taken;
} items[ITEMS_MAX];
static unsigned made;

void items_reset(void)
{
    for (unsigned i = 0; i < ITEMS_MAX; i++)
        items[i] = (struct item){0};
    made = 0;
}

struct sni_runlink *item_make(void)
{
    MODEL_CHECK(made < ITEMS_MAX);
    struct item *item = &items[made++];
    model_write(&item->data);
    return &item->link;
}

int item_take(struct sni_runlink *link)
{
    if (link == NULL)
        return -1;
    struct item *item = sni_container_of(link, struct item, link);
    item->taken++;
    MODEL_CHECK(item->taken == 1);
    model_write(&item->data);
    return (int)(item - items);
}

unsigned items_taken(void)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < made; i++)
        taken += items[i].taken;
    return taken;
}

void items_check(void)
{
    for (unsigned i = 0; i < made; i++)
        MODEL_CHECK(items[i].taken == 1);
}
