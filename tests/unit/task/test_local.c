/* SPDX-License-Identifier: MIT */
/* Task-local values (R25): set, replaced, inherited, destroyed however the task ends. */
#include "unit/task/with_runtime.h"

#include <sinew/local.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_int destroyed;

static void count_destroyed(void *value)
{
    atomic_fetch_add(&destroyed, *(int *)value);
    free(value);
}

static void *copy_int(void *value)
{
    int *copy = malloc(sizeof(*copy));
    if (copy != NULL)
        *copy = *(int *)value * 10;
    return copy;
}

static const sn_local own = SN_LOCAL_INIT(count_destroyed, NULL);
static const sn_local family = SN_LOCAL_INIT(count_destroyed, copy_int);
static const sn_local plain = SN_LOCAL_INIT(NULL, NULL);

static int *new_int(int value)
{
    int *p = malloc(sizeof(*p));
    CHECK(p != NULL);
    *p = value;
    return p;
}

static int use_values(void *arg)
{
    CHECK(sn_local_get(&own) == NULL);
    CHECK_EQ(sn_local_set(&own, new_int((int)(intptr_t)arg)), 0);
    for (int i = 0; i < 20; i++) {
        sn_yield();
        CHECK_EQ(*(int *)sn_local_get(&own), (int)(intptr_t)arg);
    }
    return 0;
}

TASK_TEST(each_task_has_its_own_value_and_it_is_destroyed_at_the_end)
{
    (void)arg;
    atomic_store(&destroyed, 0);
    sn_task *t[10];
    for (intptr_t i = 0; i < 10; i++)
        t[i] = sn_spawn(use_values, (void *)(i + 1));
    for (int i = 0; i < 10; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    CHECK_EQ(destroyed, 55);
    CHECK(sn_local_get(&own) == NULL);
    return 0;
}

static int set_again(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_local_set(&own, new_int(1)), 0);
    CHECK_EQ(sn_local_set(&own, new_int(20)), 0); /* destroys the 1 */
    CHECK_EQ(destroyed, 1);
    CHECK_EQ(*(int *)sn_local_get(&own), 20);
    CHECK_EQ(sn_local_set(&own, NULL), 0);
    CHECK_EQ(destroyed, 21);
    CHECK(sn_local_get(&own) == NULL);
    static char text[] = "static";
    CHECK_EQ(sn_local_set(&plain, text), 0);
    CHECK_STR_EQ(sn_local_get(&plain), "static");
    return 0;
}

TEST(a_value_that_is_replaced_or_taken_away_is_destroyed)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, set_again, NULL), 0);
}

static int check_inherited(void *arg)
{
    CHECK_EQ(*(int *)sn_local_get(&family), (int)(intptr_t)arg);
    CHECK(sn_local_get(&own) == NULL);
    if ((intptr_t)arg < 1000)
        return sn_join(sn_spawn(check_inherited, (void *)((intptr_t)arg * 10)), NULL);
    return 0;
}

TASK_TEST(a_child_inherits_what_the_key_says)
{
    (void)arg;
    atomic_store(&destroyed, 0);
    CHECK_EQ(sn_local_set(&family, new_int(3)), 0);
    CHECK_EQ(sn_local_set(&own, new_int(7)), 0);
    CHECK_EQ(sn_join(sn_spawn(check_inherited, (void *)30), NULL), 0);
    CHECK_EQ(destroyed, 30 + 300 + 3000);
    return 0;
}

static int panic_with_values(void *arg)
{
    CHECK_EQ(sn_local_set(&own, new_int(5)), 0);
    sn_panic("%s", (const char *)arg);
}

TASK_TEST(values_are_destroyed_when_the_task_panics)
{
    (void)arg;
    atomic_store(&destroyed, 0);
    sn_exit how;
    CHECK_EQ(sn_join(sn_spawn(panic_with_values, "ouch"), &how), -ECONNABORTED);
    CHECK_STR_EQ(how.message, "ouch");
    CHECK_EQ(destroyed, 5);
    return 0;
}

TEST(outside_a_task_there_are_no_values)
{
    CHECK(sn_local_get(&plain) == NULL);
    CHECK_EQ(sn_local_set(&plain, &destroyed), -EPERM);
}

#ifdef SINEW_HARNESS_WRAP
static int nothing_inherited(void *arg)
{
    (void)arg;
    return 0;
}

static int spawn_without_memory(void *arg)
{
    (void)arg;
    CHECK_EQ(sn_local_set(&family, new_int(3)), 0);
    int refused = 0;
    for (uint64_t k = 1; k <= 2; k++) { /* copy_int's own allocation, then the pair's */
        int error = 0;
        alloc_fail_at(k);
        sn_task *t = sn_spawn(nothing_inherited, NULL, .error = &error);
        alloc_fail_at(0);
        refused += error == -ENOMEM;
        CHECK(t == NULL || sn_detach(t) == 0);
    }
    CHECK_EQ(refused, 1); /* a copy that is NULL is inherited as nothing */
    alloc_fail_at(1);
    CHECK_EQ(sn_local_set(&plain, &refused), -ENOMEM);
    alloc_fail_at(0);
    return 0;
}

TEST(a_spawn_that_cannot_inherit_for_want_of_memory_fails_and_leaks_nothing)
{
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, spawn_without_memory, NULL),
             0);
}

static int spawn_elsewhere_without_memory(void *rt)
{
    int error = 0;
    CHECK_EQ(sn_local_set(&family, new_int(3)), 0);
    alloc_fail_at(2);
    sn_task *t = sn_runtime_spawn(rt, nothing_inherited, NULL, .error = &error);
    alloc_fail_at(0);
    CHECK(t == NULL);
    CHECK_EQ(error, -ENOMEM);
    return 0;
}

TEST(a_spawn_into_another_runtime_that_fails_leaves_both_without_tasks)
{
    sn_runtime *here = NULL, *there = NULL;
    sn_runtime_options opts = {.single_threaded = true};
    CHECK_EQ(sn_runtime_create(&here, &opts), 0);
    CHECK_EQ(sn_runtime_create(&there, &opts), 0);
    CHECK_EQ(sn_runtime_block_on(here, spawn_elsewhere_without_memory, there), 0);
    CHECK_EQ(sn_runtime_turn(there, SN_NOWAIT), 0);
    CHECK_EQ(sn_runtime_turn(here, SN_NOWAIT), 0);
    sn_runtime_destroy(there);
    sn_runtime_destroy(here);
}
#endif
