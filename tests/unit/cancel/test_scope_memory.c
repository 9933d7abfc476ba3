/* SPDX-License-Identifier: MIT */
/* Memory of groups and hooks (R60, R62): without it a call says so, the group fails as a whole, and
 * nothing is lost or leaked; a scope itself asks for none. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#ifdef SINEW_HARNESS_WRAP

#include <stdatomic.h>

static atomic_int alive, hooks;

static int count_hook(void *arg)
{
    (void)arg;
    atomic_fetch_add(&hooks, 1);
    return 0;
}

static int child(void *arg)
{
    atomic_fetch_add(&alive, 1);
    int rc = sn_ensure(count_hook, arg);
    if (rc == 0)
        rc = sn_sleep(SN_US(50));
    atomic_fetch_sub(&alive, 1);
    return rc;
}

/* Returns whether there was a k-th allocation. */
static bool without_the_kth(uint64_t k)
{
    enum { CHILDREN = 6 };
    int rc = 0, hooked = 0;
    uint64_t before = alloc_count();
    atomic_store(&hooks, 0);
    alloc_fail_at(k);
    SN_SCOPE(g, .result = &rc) {
        hooked = sn_group_ensure(g, count_hook, NULL);
        for (int i = 0; i < CHILDREN; i++)
            (void)sn_group_spawn(g, child, NULL, .stack_bytes = 128u << 10);
    }
    alloc_fail_at(0);
    bool was_reached = alloc_count() - before >= k;
    CHECK_EQ(atomic_load(&alive), 0);
    CHECK(hooked == 0 || hooked == -ENOMEM);
    CHECK(rc == 0 || (was_reached && rc == -ENOMEM));
    if (!was_reached)
        CHECK_EQ(atomic_load(&hooks), CHILDREN + 1);
    return was_reached;
}

static int without_each(void *arg)
{
    (void)arg;
    uint64_t k = 1;
    while (without_the_kth(k))
        k++;
    CHECK_GE(k, 8); /* there are hooks for all */
    return 0;
}

TEST(a_group_without_memory_fails_as_a_whole, .limit_s = 60)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, without_each, NULL), 0);
    CHECK_EQ(run_with(&(sn_runtime_options){.workers = 3}, without_each, NULL), 0);
}

static int scopes_only(void *arg)
{
    (void)arg;
    uint64_t before = alloc_count();
    for (int i = 0; i < 100; i++) {
        SN_SCOPE(g, .until = sn_after(SN_S(100))) {
            SN_DEADLINE(sn_after(SN_S(50))) {
                SN_SHIELD(SN_FOREVER) {
                    sn_group_cancel(g, NULL);
                }
                CHECK_EQ(sn_sleep(SN_S(3600)), -ECANCELED);
            }
        }
    }
    CHECK_EQ(alloc_count() - before, 0);
    return 0;
}

TEST(scopes_and_their_ends_ask_for_no_memory)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, scopes_only, NULL), 0);
}

#endif
