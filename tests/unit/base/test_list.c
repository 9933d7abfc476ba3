/* SPDX-License-Identifier: MIT */
/* Intrusive lists. */
#include "harness.h"

#include "base/list.h"

TEST(a_list_gives_back_what_was_pushed_in_order)
{
    struct sni_list list, a, b, c;
    sni_list_init(&list);
    sni_list_init(&a);
    sni_list_init(&b);
    sni_list_init(&c);
    CHECK(sni_list_empty(&list));
    CHECK_PTR_EQ(sni_list_pop_front(&list), NULL);
    sni_list_push_back(&list, &b);
    sni_list_push_back(&list, &c);
    sni_list_push_front(&list, &a);
    int n = 0;
    sni_list_each(link, &list)
        n++;
    CHECK_EQ(n, 3);
    CHECK_PTR_EQ(sni_list_pop_front(&list), &a);
    CHECK_PTR_EQ(sni_list_pop_front(&list), &b);
    CHECK_PTR_EQ(sni_list_pop_front(&list), &c);
    CHECK(sni_list_empty(&list));
    CHECK(sni_list_empty(&a));
}

TEST(a_link_is_removed_from_the_middle_and_twice_without_harm)
{
    struct sni_list list, a, b, c;
    sni_list_init(&list);
    sni_list_init(&a);
    sni_list_init(&b);
    sni_list_init(&c);
    sni_list_push_back(&list, &a);
    sni_list_push_back(&list, &b);
    sni_list_push_back(&list, &c);
    sni_list_remove(&b);
    sni_list_remove(&b);
    CHECK_PTR_EQ(sni_list_pop_front(&list), &a);
    CHECK_PTR_EQ(sni_list_pop_front(&list), &c);
    CHECK(sni_list_empty(&list));
}

#ifdef SINEW_DEBUG
FAIL_TEST(a_link_in_two_lists_is_found, "a link is put into a second list")
{
    struct sni_list list, a;
    sni_list_init(&list);
    sni_list_init(&a);
    sni_list_push_back(&list, &a);
    sni_list_push_back(&list, &a);
}
#endif
