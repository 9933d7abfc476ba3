/* SPDX-License-Identifier: MIT */
/* Broadcast and watch (R91): all get all, who is slow learns how many it lost; the latest value. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>

static int cast_int(sn_broadcast *b, int v)
{
    return sn_broadcast_send(b, &v);
}

TEST(a_subscriber_gets_what_was_sent_since_it_subscribed)
{
    sn_broadcast *b;
    sn_subscription early, late;
    int v = -1;
    CHECK_EQ(sn_broadcast_create(&b, sizeof(int), 4), 0);
    CHECK_EQ(sn_broadcast_subscribe(b, &early), 0);
    CHECK_EQ(cast_int(b, 1), 0);
    CHECK_EQ(sn_broadcast_subscribe(b, &late), 0);
    CHECK_EQ(cast_int(b, 2), 0);
    CHECK_EQ(sn_broadcast_recv(&early, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 1);
    CHECK_EQ(sn_broadcast_recv(&early, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 2);
    CHECK_EQ(sn_broadcast_recv(&late, &v, SN_NOWAIT), 0);
    CHECK_EQ(v, 2);
    CHECK_EQ(sn_broadcast_recv(&late, &v, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_broadcast_recv(&late, &v, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(sn_broadcast_destroy(b), 0);
    CHECK_EQ(sn_broadcast_destroy(NULL), 0);
}

TEST(who_is_too_slow_learns_how_many_it_has_lost)
{
    for (int capacity = 1; capacity <= 5; capacity++) {
        sn_broadcast *b;
        sn_subscription sub;
        int v = -1;
        CHECK_EQ(sn_broadcast_create(&b, sizeof(int), (size_t)capacity), 0);
        CHECK_EQ(sn_broadcast_subscribe(b, &sub), 0);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(cast_int(b, i), 0);
        CHECK_EQ(sn_broadcast_close(b), 0);
        CHECK_EQ(cast_int(b, 10), -EPIPE);
        CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_NOWAIT), 10 - capacity);
        CHECK_EQ(v, 10 - capacity);
        for (int i = 1; i < capacity; i++) {
            CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_NOWAIT), 0);
            CHECK_EQ(v, 10 - capacity + i);
        }
        CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_FOREVER), -EPIPE);
        CHECK_EQ(sn_broadcast_destroy(b), 0);
    }
}

TEST(a_broadcast_of_no_capacity_is_refused)
{
    sn_broadcast *b;
    CHECK_EQ(sn_broadcast_create(&b, 4, 0), -EINVAL);
    CHECK_EQ(sn_broadcast_create(NULL, 4, 1), -EINVAL);
    CHECK_EQ(sn_broadcast_create(&b, 4, SN_CHAN_CAPACITY_MAX + 1), -EINVAL);
}

#ifdef SINEW_HARNESS_WRAP
TEST(for_want_of_memory_there_is_no_broadcast_and_no_watch)
{
    sn_broadcast *b = NULL;
    sn_watch *w = NULL;
    int v = 0;
    alloc_fail_at(1);
    CHECK_EQ(sn_broadcast_create(&b, 4, 1), -ENOMEM);
    alloc_fail_at(1);
    CHECK_EQ(sn_watch_create(&w, 4, &v), -ENOMEM);
    CHECK(b == NULL && w == NULL);
}
#endif

enum { LISTENERS = 40, WORDS = 200 };

static sn_broadcast *air;

/* Hear all or know what was missed, in order. Returns how many were heard or missed. */
static int listen_to(void *arg)
{
    sn_subscription sub = *(sn_subscription *)arg;
    int v = -1, expected = 0, rc;
    while ((rc = sn_broadcast_recv(&sub, &v, SN_FOREVER)) >= 0) {
        expected += rc;
        CHECK_EQ(v, expected++);
    }
    CHECK_EQ(rc, -EPIPE);
    return expected;
}

static void *listen_as_thread(void *arg)
{
    CHECK_EQ(listen_to(arg), WORDS);
    return NULL;
}

TASK_TEST(all_who_listen_hear_all_or_know_what_they_missed)
{
    (void)arg;
    sn_subscription sub;
    sn_task *t[LISTENERS];
    pthread_t thread;
    CHECK_EQ(sn_broadcast_create(&air, sizeof(int), 8), 0);
    CHECK_EQ(sn_broadcast_subscribe(air, &sub), 0);
    CHECK_EQ(pthread_create(&thread, NULL, listen_as_thread, &sub), 0);
    for (int i = 0; i < LISTENERS; i++)
        t[i] = sn_spawn(listen_to, &sub);
    for (int i = 0; i < WORDS; i++) {
        CHECK_EQ(cast_int(air, i), 0);
        if (i % 3 == 0)
            sn_yield();
    }
    CHECK_EQ(sn_broadcast_close(air), 0);
    for (int i = 0; i < LISTENERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), WORDS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sn_broadcast_destroy(air), 0);
    return 0;
}

/* ---- watch ---------------------------------------------------------------------------------- */

static int set_int(sn_watch *w, int v)
{
    return sn_watch_set(w, &v);
}

TEST(a_watch_has_the_latest_value_and_its_version)
{
    sn_watch *w;
    int v = 5;
    uint64_t version = 0;
    CHECK_EQ(sn_watch_create(&w, sizeof(int), NULL), -EINVAL);
    CHECK_EQ(sn_watch_create(&w, sizeof(int), &v), 0);
    v = -1;
    CHECK_EQ(sn_watch_recv(w, &v, &version, SN_NOWAIT), 0);
    CHECK(v == 5 && version == 1);
    CHECK_EQ(sn_watch_recv(w, &v, &version, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(set_int(w, 6), 0);
    CHECK_EQ(set_int(w, 7), 0);
    CHECK_EQ(sn_watch_get(w, &v, NULL), 0);
    CHECK_EQ(v, 7);
    CHECK_EQ(sn_watch_recv(w, &v, &version, SN_FOREVER), 0);
    CHECK(v == 7 && version == 3);
    CHECK_EQ(set_int(w, 8), 0);
    CHECK_EQ(sn_watch_close(w), 0);
    CHECK_EQ(set_int(w, 9), -EPIPE);
    CHECK_EQ(sn_watch_recv(w, &v, &version, SN_FOREVER), 0);
    CHECK(v == 8 && version == 4);
    CHECK_EQ(sn_watch_recv(w, &v, &version, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_watch_get(w, &v, &version), 0);
    CHECK_EQ(sn_watch_destroy(w), 0);
    CHECK_EQ(sn_watch_destroy(NULL), 0);
}

static int watch_it(void *arg)
{
    sn_watch *w = arg;
    uint64_t version = 0, before = 0;
    int v = -1, rc;
    while ((rc = sn_watch_recv(w, &v, &version, SN_FOREVER)) == 0) {
        CHECK(version > before);
        CHECK_EQ(v, version);
        before = version;
    }
    CHECK_EQ(rc, -EPIPE);
    return v; /* the last one is always seen */
}

TASK_TEST(all_who_watch_see_the_last_value)
{
    (void)arg;
    sn_watch *w;
    sn_task *t[LISTENERS];
    int v = 1;
    CHECK_EQ(sn_watch_create(&w, sizeof(int), &v), 0);
    for (int i = 0; i < LISTENERS; i++)
        t[i] = sn_spawn(watch_it, w);
    for (int i = 2; i <= WORDS; i++) {
        CHECK_EQ(set_int(w, i), 0);
        if (i % 3 == 0)
            sn_yield();
    }
    CHECK_EQ(sn_watch_close(w), 0);
    for (int i = 0; i < LISTENERS; i++)
        CHECK_EQ(sn_join(t[i], NULL), WORDS);
    CHECK_EQ(sn_watch_destroy(w), 0);
    return 0;
}

#ifndef SINEW_DEBUG
TEST(a_broadcast_or_watch_that_is_gone_is_an_error)
{
    sn_broadcast *b;
    sn_watch *w;
    sn_subscription sub;
    sn_chan *ch;
    int v = 0;
    CHECK_EQ(sn_broadcast_create(&b, sizeof(int), 4), 0);
    CHECK_EQ(sn_broadcast_subscribe(b, &sub), 0);
    CHECK_EQ(sn_broadcast_destroy(b), 0);
    CHECK_EQ(sn_watch_create(&w, sizeof(int), &v), 0);
    CHECK_EQ(sn_broadcast_close((sn_broadcast *)(void *)w), -EBADF); /* one is not the other */
    CHECK_EQ(sn_chan_close((sn_chan *)(void *)w), -EBADF);
    CHECK_EQ(sn_watch_destroy(w), 0);
    CHECK_EQ(sn_watch_destroy(w), -EBADF);
    CHECK_EQ(sn_watch_get(w, &v, NULL), -EBADF);
    CHECK_EQ(sn_broadcast_destroy(b), -EBADF);
    CHECK_EQ(sn_broadcast_recv(&sub, &v, SN_FOREVER), -EBADF);
    CHECK_EQ(cast_int(b, 1), -EBADF);
    CHECK_EQ(sn_chan_create(&ch, 4, 1, NULL), 0);
    CHECK_EQ(set_int((sn_watch *)(void *)ch, 1), -EBADF);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}
#endif
