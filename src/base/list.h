/* SPDX-License-Identifier: MIT */
/* list.h - intrusive doubly linked lists.
 *
 * A list is a ring through its head, so that removing needs no list and no special case. A
 * link that is in no list points to itself; linking what is linked already is an error that
 * debug builds find. */
#ifndef SINEW_BASE_LIST_H
#define SINEW_BASE_LIST_H

#include "base/assert.h"
#include "base/compiler.h"

#include <stdbool.h>

struct sni_list {
    struct sni_list *next;
    struct sni_list *prev;
};

static inline void sni_list_init(struct sni_list *link)
{
    link->next = link;
    link->prev = link;
}

static inline bool sni_list_empty(const struct sni_list *list)
{
    return list->next == list;
}

/* Insert `link` behind `at`. */
static inline void sni_list_insert(struct sni_list *at, struct sni_list *link)
{
    sni_assert_debug(sni_list_empty(link), "a link is put into a second list");
    link->prev = at;
    link->next = at->next;
    at->next->prev = link;
    at->next = link;
}

static inline void sni_list_push_front(struct sni_list *list, struct sni_list *link)
{
    sni_list_insert(list, link);
}

static inline void sni_list_push_back(struct sni_list *list, struct sni_list *link)
{
    sni_assert_debug(sni_list_empty(link), "a link is put into a second list");
    link->next = list; /* known without a look into the last link, which may be cold */
    link->prev = list->prev;
    list->prev->next = link;
    list->prev = link;
}

/* Take `link` out of whatever list it is in; harmless if it is in none. */
static inline void sni_list_remove(struct sni_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    sni_list_init(link);
}

/* The first link, taken out, or NULL. */
static inline struct sni_list *sni_list_pop_front(struct sni_list *list)
{
    struct sni_list *link = list->next;
    if (link == list)
        return NULL;
    sni_list_remove(link);
    return link;
}

#define sni_list_each(link, list) \
    for (struct sni_list *link = (list)->next; link != (list); link = link->next)

#endif
