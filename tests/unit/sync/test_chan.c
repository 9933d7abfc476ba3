/* SPDX-License-Identifier: MIT */
/* Channels, one call at a time (R91): what fits, what waits, what a close does, who frees what; for
 * fibers on every kind of runtime, and for coroutines and plain threads. */
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static sn_chan *make(size_t bytes, size_t capacity)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(&ch, bytes, capacity, NULL), 0);
    return ch;
}

static int send_int(sn_chan *ch, int v, sn_deadline until)
{
    return sn_chan_send(ch, &v, until);
}

/* The value, or an error. */
static int recv_int(sn_chan *ch, sn_deadline until)
{
    int v = -1;
    int rc = sn_chan_recv(ch, &v, until);
    return rc < 0 ? rc : v;
}

/* ---- without waiting ------------------------------------------------------------------------ */

TEST(a_bounded_channel_holds_its_capacity_in_order)
{
    static const size_t capacities[] = {1, 2, 3, 64, 1000};
    for (int k = 0; k < 5; k++) {
        int n = (int)capacities[k];
        sn_chan *ch = make(sizeof(int), capacities[k]);
        CHECK_EQ(sn_chan_cap(ch), n);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < n; i++)
                CHECK_EQ(send_int(ch, i, SN_NOWAIT), 0);
            CHECK_EQ(send_int(ch, n, SN_NOWAIT), -ETIMEDOUT);
            CHECK_EQ(sn_chan_len(ch), n);
            CHECK_EQ(recv_int(ch, SN_NOWAIT), 0); /* so that the ring turns */
            CHECK_EQ(send_int(ch, n, SN_NOWAIT), 0);
            for (int i = 1; i <= n; i++)
                CHECK_EQ(recv_int(ch, SN_NOWAIT), i);
            CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT);
        }
        CHECK_EQ(sn_chan_destroy(ch), 0);
    }
}

TEST(elements_of_every_size_come_out_as_they_went_in)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 24, 64, 1000, 70000};
    static const size_t capacities[] = {3, SN_CHAN_UNBOUNDED};
    static unsigned char in[70000], out[70000 + 1];
    for (size_t k = 0; k < 2 * sizeof(sizes) / sizeof(sizes[0]); k++) {
        size_t bytes = sizes[k / 2];
        sn_chan *ch = make(bytes, capacities[k % 2]);
        for (int i = 0; i < 3; i++) {
            memset(in, 0x11 * (i + 1), bytes);
            CHECK_EQ(sn_chan_send(ch, in, SN_NOWAIT), 0);
        }
        for (int i = 0; i < 3; i++) {
            memset(in, 0x11 * (i + 1), bytes);
            memset(out, 0xEE, sizeof(out));
            CHECK_EQ(sn_chan_recv(ch, out, SN_NOWAIT), 0);
            CHECK_MEM_EQ(in, out, bytes);
            CHECK_EQ(out[bytes], 0xEE); /* and no byte more */
        }
        CHECK_EQ(sn_chan_recv(ch, out, SN_NOWAIT), -ETIMEDOUT);
        CHECK_EQ(sn_chan_destroy(ch), 0);
    }
}

TEST(elements_of_no_size_are_counted_and_need_no_memory_of_the_caller)
{
    sn_chan *ch = make(0, 2);
    CHECK_EQ(sn_chan_send(ch, NULL, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_send(ch, NULL, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_send(ch, NULL, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_len(ch), 2);
    CHECK_EQ(sn_chan_recv(ch, NULL, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_recv(ch, NULL, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_recv(ch, NULL, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(a_rendezvous_holds_nothing)
{
    sn_chan *ch = make(sizeof(int), 0);
    CHECK_EQ(sn_chan_cap(ch), 0);
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_len(ch), 0);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(sizes_out_of_range_are_refused)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(NULL, 4, 1, NULL), -EINVAL);
    CHECK_EQ(sn_chan_create(&ch, 4, SN_CHAN_CAPACITY_MAX + 1, NULL), -EINVAL);
    CHECK_EQ(sn_chan_create(&ch, SN_CHAN_ELEMENT_MAX + 1, 1, NULL), -EINVAL);
    CHECK_EQ(sn_chan_destroy(NULL), 0);
    ch = make(8, SN_CHAN_CAPACITY_MAX);
    CHECK_EQ(sn_chan_cap(ch), SN_CHAN_CAPACITY_MAX);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- close ---------------------------------------------------------------------------------- */

TEST(a_closed_channel_drains_and_then_reports_epipe)
{
    sn_chan *ch = make(sizeof(int), 4);
    CHECK_EQ(send_int(ch, 1, SN_FOREVER), 0);
    CHECK_EQ(send_int(ch, 2, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_close(ch), 0);
    CHECK_EQ(sn_chan_close(ch), 0);
    CHECK_EQ(send_int(ch, 3, SN_FOREVER), -EPIPE);
    CHECK_EQ(recv_int(ch, SN_FOREVER), 1);
    CHECK_EQ(recv_int(ch, SN_FOREVER), 2);
    CHECK_EQ(recv_int(ch, SN_FOREVER), -EPIPE);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -EPIPE);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(the_last_reference_of_a_side_closes_the_channel)
{
    sn_chan *ch = make(sizeof(int), 4);
    CHECK_EQ(sn_chan_acquire(ch, SN_CHAN_SENDER), 0);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_SENDER), 0);
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_SENDER), 0);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_SENDER), -EINVAL);
    CHECK_EQ(sn_chan_acquire(ch, SN_CHAN_SENDER), -EPIPE);
    CHECK_EQ(sn_chan_acquire(ch, SN_CHAN_BOTH), -EPIPE);
    CHECK_EQ(sn_chan_acquire(ch, (sn_chan_side)4), -EINVAL);
    CHECK_EQ(sn_chan_release(ch, (sn_chan_side)0), -EINVAL);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), 1);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -EPIPE);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_RECEIVER), 0);

    ch = make(sizeof(int), 4);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_RECEIVER), 0);
    CHECK_EQ(send_int(ch, 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_SENDER), 0);
}

static void add_up(void *element, void *arg)
{
    int *sum = arg;
    *sum += *(int *)element;
}

TEST(what_nobody_received_is_dropped_once)
{
    static const size_t capacities[] = {4, 1000, SN_CHAN_UNBOUNDED};
    for (int k = 0; k < 3; k++) {
        int sum = 0;
        sn_chan *ch;
        sn_chan_options opts = {.drop = add_up, .drop_arg = &sum};
        CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacities[k], &opts), 0);
        for (int i = 1; i <= 4; i++)
            CHECK_EQ(send_int(ch, i, SN_NOWAIT), 0);
        CHECK_EQ(recv_int(ch, SN_NOWAIT), 1);
        CHECK_EQ(sn_chan_destroy(ch), 0);
        CHECK_EQ(sum, 2 + 3 + 4);
    }
}

struct wide {
    max_align_t v[1];
};

static void look_at_the_address(void *element, void *arg)
{
    int *n = arg;
    CHECK_EQ((uintptr_t)element % _Alignof(struct wide), 0);
    ++*n;
}

TEST(what_is_dropped_lies_where_its_type_wants_it)
{
    static const size_t capacities[] = {4, SN_CHAN_UNBOUNDED};
    for (int k = 0; k < 2; k++) {
        int n = 0;
        sn_chan *ch;
        sn_chan_options opts = {.drop = look_at_the_address, .drop_arg = &n};
        struct wide w;
        memset(&w, 0, sizeof(w));
        CHECK_EQ(sn_chan_create(&ch, sizeof(w), capacities[k], &opts), 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(sn_chan_send(ch, &w, SN_NOWAIT), 0);
        CHECK_EQ(sn_chan_destroy(ch), 0);
        CHECK_EQ(n, 3);
    }
}

TEST(who_destroys_a_channel_must_hold_both_sides)
{
    sn_chan *ch = make(sizeof(int), 4);
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_SENDER), 0);
    CHECK_EQ(sn_chan_destroy(ch), -EINVAL);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), 1); /* it is still there */
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_RECEIVER), 0);
}

#ifndef SINEW_DEBUG
TEST(a_channel_that_is_gone_is_an_error)
{
    sn_chan *ch = make(sizeof(int), 4);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    int v = 0;
    CHECK_EQ(send_int(ch, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_chan_recv(ch, &v, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_chan_close(ch), -EBADF);
    CHECK_EQ(sn_chan_destroy(ch), -EBADF);
    CHECK_EQ(sn_chan_acquire(ch, SN_CHAN_BOTH), -EBADF);
    CHECK_EQ(sn_chan_release(ch, SN_CHAN_BOTH), -EBADF);
    sn_chan *next = make(sizeof(int), 4); /* most likely the same record */
    CHECK_EQ(send_int(ch, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_chan_len(ch), 0);
    CHECK_EQ(sn_chan_cap(ch), 0);
    CHECK_EQ(sn_chan_destroy(next), 0);
    CHECK_EQ(send_int((sn_chan *)(void *)&v, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(send_int(NULL, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_chan_send_n(NULL, &v, 1, SN_FOREVER), -EBADF);
    CHECK_EQ(sn_chan_recv_n(NULL, &v, 1, SN_FOREVER), -EBADF);
}
#endif

/* ---- waiting -------------------------------------------------------------------------------- */

struct post {
    sn_chan *a, *b;
    int from, to, result;
};

static int send_range(void *arg)
{
    struct post *p = arg;
    for (int i = p->from; i < p->to; i++) {
        int rc = send_int(p->a, i, SN_FOREVER);
        if (rc < 0)
            return rc;
    }
    return 0;
}

TASK_TEST(values_arrive_in_order_whatever_the_capacity)
{
    (void)arg;
    static const size_t capacities[] = {0, 1, 2, 64, SN_CHAN_UNBOUNDED};
    for (int k = 0; k < 5; k++) {
        struct post p = {.a = make(sizeof(int), capacities[k]), .to = 300};
        sn_task *t = sn_spawn(send_range, &p);
        for (int i = 0; i < 300; i++)
            CHECK_EQ(recv_int(p.a, SN_FOREVER), i);
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK_EQ(sn_chan_destroy(p.a), 0);
    }
    return 0;
}

static int pong(void *arg)
{
    struct post *p = arg;
    for (int i = p->from; i < p->to; i++)
        CHECK_EQ(send_int(p->b, recv_int(p->a, SN_FOREVER) + 1, SN_FOREVER), 0);
    return 0;
}

TASK_TEST(two_tasks_play_ping_pong)
{
    (void)arg;
    for (size_t capacity = 0; capacity < 2; capacity++) {
        struct post p = {make(sizeof(int), capacity), make(sizeof(int), capacity), 0, 200, 0};
        sn_task *t = sn_spawn(pong, &p);
        int v = 0;
        for (int i = 0; i < 200; i++) {
            CHECK_EQ(send_int(p.a, v, SN_FOREVER), 0);
            v = recv_int(p.b, SN_FOREVER);
        }
        CHECK_EQ(v, 200);
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK_EQ(sn_chan_destroy(p.a) | sn_chan_destroy(p.b), 0);
    }
    return 0;
}

static int recv_one(void *arg)
{
    struct post *p = arg;
    p->result = recv_int(p->a, SN_FOREVER);
    return 0;
}

static int send_one(void *arg)
{
    struct post *p = arg;
    p->result = send_int(p->a, p->from, SN_FOREVER);
    return 0;
}

TASK_TEST(a_receive_lets_the_sender_in_that_waits_for_room)
{
    (void)arg;
    for (size_t capacity = 1; capacity < 4; capacity++) {
        struct post p = {.a = make(sizeof(int), capacity), .to = (int)capacity + 1};
        sn_task *t = sn_spawn(send_range, &p);
        while (sn_chan_len(p.a) < capacity)
            sn_yield();
        for (int i = 0; i < 3; i++) /* so that it waits; if it does not yet, all the same */
            sn_yield();
        CHECK_EQ(recv_int(p.a, SN_FOREVER), 0);
        CHECK_EQ(sn_join(t, NULL), 0); /* nobody receives any more */
        CHECK_EQ(sn_chan_len(p.a), (long)capacity);
        CHECK_EQ(sn_chan_destroy(p.a), 0);
    }
    return 0;
}

enum { CROWD = 40 }; /* more than are woken in one go */

TASK_TEST(a_close_wakes_all_who_wait)
{
    (void)arg;
    for (int sends = 0; sends < 2; sends++) {
        sn_chan *ch = make(sizeof(int), 0);
        struct post p[CROWD];
        sn_task *t[CROWD];
        for (int i = 0; i < CROWD; i++) {
            p[i] = (struct post){.a = ch, .result = 77};
            t[i] = sn_spawn(sends ? send_one : recv_one, &p[i]);
        }
        for (int i = 0; i < 3; i++)
            sn_yield();
        CHECK_EQ(sn_chan_close(ch), 0);
        for (int i = 0; i < CROWD; i++) {
            CHECK_EQ(sn_join(t[i], NULL), 0);
            CHECK_EQ(p[i].result, -EPIPE);
        }
        CHECK_EQ(sn_chan_destroy(ch), 0);
    }
    return 0;
}

TEST(who_waited_longest_is_served_first)
{
    static const size_t capacities[] = {0, 3};
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    for (int k = 0; k < 2; k++) {
        int fits = (int)capacities[k];
        sn_chan *ch = make(sizeof(int), capacities[k]);
        sn_chan_op op[CROWD];
        int v[CROWD];
        for (int i = 0; i < CROWD; i++) {
            v[i] = i;
            CHECK_EQ(sn_poll_pending(sn_future_poll(sn_chan_send_op(&op[i], ch, &v[i]), &cx)),
                     i >= fits);
        }
        CHECK_EQ(sn_chan_len(ch), fits);
        for (int i = 0; i < CROWD; i++) {
            CHECK_EQ(recv_int(ch, SN_NOWAIT), i);
        }
        for (int i = fits; i < CROWD; i++)
            CHECK_EQ(sn_future_poll(&op[i].future_, &cx).value, 0);

        for (int i = 0; i < CROWD; i++)
            CHECK(sn_poll_pending(sn_future_poll(sn_chan_recv_op(&op[i], ch, &v[i]), &cx)));
        for (int i = 0; i < CROWD; i++)
            CHECK_EQ(send_int(ch, 100 + i, SN_NOWAIT), 0);
        for (int i = 0; i < CROWD; i++) {
            CHECK_EQ(sn_future_poll(&op[i].future_, &cx).value, 0);
            CHECK_EQ(v[i], 100 + i);
        }
        CHECK_EQ(sn_chan_destroy(ch), 0);
    }
}

TASK_TEST(a_deadline_ends_a_wait_and_leaves_no_trace)
{
    (void)arg;
    sn_chan *ch = make(sizeof(int), 1);
    CHECK_EQ(recv_int(ch, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(send_int(ch, 1, sn_after(SN_MS(1))), 0);
    CHECK_EQ(send_int(ch, 2, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(sn_chan_len(ch), 1);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), 1);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT); /* 2 was never sent */
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* ---- many at once --------------------------------------------------------------------------- */

TASK_TEST(many_are_sent_and_received_in_one_call)
{
    (void)arg;
    static const size_t capacities[] = {0, 1, 7, 64, SN_CHAN_UNBOUNDED};
    int in[100], out[100];
    for (int i = 0; i < 100; i++)
        in[i] = i;
    for (int k = 0; k < 5; k++) {
        struct post p = {.a = make(sizeof(int), capacities[k]), .to = 100};
        sn_task *t = sn_spawn(send_range, &p);
        ptrdiff_t got = 0;
        while (got < 100) {
            ptrdiff_t n = sn_chan_recv_n(p.a, out + got, 9, SN_FOREVER);
            CHECK(n >= 1 && n <= 9);
            got += n;
        }
        CHECK_MEM_EQ(in, out, sizeof(in));
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK_EQ(sn_chan_destroy(p.a), 0);
    }
    return 0;
}

static int send_hundred(void *arg)
{
    struct post *p = arg;
    int in[100];
    for (int i = 0; i < 100; i++)
        in[i] = i;
    p->result = (int)sn_chan_send_n(p->a, in, 100, SN_FOREVER);
    return 0;
}

TASK_TEST(many_that_do_not_all_fit_wait_and_what_was_sent_is_told)
{
    (void)arg;
    static const size_t capacities[] = {0, 1, 7, 64};
    for (int k = 0; k < 4; k++) {
        struct post p = {.a = make(sizeof(int), capacities[k])};
        sn_task *t = sn_spawn(send_hundred, &p);
        for (int i = 0; i < 50; i++)
            CHECK_EQ(recv_int(p.a, SN_FOREVER), i);
        CHECK_EQ(sn_chan_close(p.a), 0);
        int left = 0;
        while (recv_int(p.a, SN_FOREVER) == 50 + left)
            left++;
        CHECK_EQ(sn_join(t, NULL), 0);
        CHECK_EQ(p.result, 50 + left);
        CHECK_EQ(sn_chan_send_n(p.a, &k, 1, SN_FOREVER), -EPIPE);
        CHECK_EQ(sn_chan_recv_n(p.a, &k, 1, SN_FOREVER), -EPIPE);
        CHECK_EQ(sn_chan_destroy(p.a), 0);
    }
    return 0;
}

TEST(many_or_none_without_waiting)
{
    int v[5] = {1, 2, 3, 4, 5}, out[5];
    sn_chan *ch = make(sizeof(int), 3);
    CHECK_EQ(sn_chan_recv_n(ch, out, 5, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_recv_n(ch, out, 0, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_send_n(ch, v, 0, SN_NOWAIT), 0);
    CHECK_EQ(sn_chan_send_n(ch, v, 5, SN_NOWAIT), 3);
    CHECK_EQ(sn_chan_send_n(ch, v, 5, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_recv_n(ch, out, 5, SN_NOWAIT), 3);
    CHECK_MEM_EQ(v, out, 3 * sizeof(int));
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

/* ---- oneshot -------------------------------------------------------------------------------- */

TASK_TEST(a_oneshot_carries_one_value_and_is_closed)
{
    (void)arg;
    sn_chan *ch;
    sn_chan_options once = {.oneshot = true};
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, &once), 0);
    CHECK_EQ(send_int(ch, 5, SN_NOWAIT), 0);
    CHECK_EQ(send_int(ch, 6, SN_FOREVER), -EPIPE);
    CHECK_EQ(recv_int(ch, SN_FOREVER), 5);
    CHECK_EQ(recv_int(ch, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_chan_destroy(ch), 0);

    CHECK_EQ(sn_chan_create(&ch, sizeof(int), 0, &once), 0);
    struct post p[CROWD];
    sn_task *t[CROWD];
    for (int i = 0; i < CROWD; i++) {
        p[i] = (struct post){.a = ch};
        t[i] = sn_spawn(recv_one, &p[i]);
    }
    sn_yield();
    CHECK_EQ(send_int(ch, 5, SN_FOREVER), 0);
    int served = 0;
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ(sn_join(t[i], NULL), 0);
        served += p[i].result == 5;
        CHECK(p[i].result == 5 || p[i].result == -EPIPE);
    }
    CHECK_EQ(served, 1);
    CHECK_EQ(sn_chan_destroy(ch), 0);
    return 0;
}

/* ---- unbounded ------------------------------------------------------------------------------ */

#ifdef SINEW_HARNESS_WRAP
TEST(an_unbounded_channel_takes_a_burst_and_gives_its_memory_back)
{
    enum { BURST = 100000 };
    sn_chan *ch = make(sizeof(int), SN_CHAN_UNBOUNDED);
    CHECK_EQ(sn_chan_cap(ch), SN_CHAN_UNBOUNDED);
    uint64_t before = alloc_count();
    for (uint64_t round = 1; round <= 3; round++) {
        for (int i = 0; i < BURST; i++)
            CHECK_EQ(send_int(ch, i, SN_NOWAIT), 0);
        CHECK_EQ(sn_chan_len(ch), BURST);
        CHECK_GT(alloc_count() - before, round * 90); /* it has not kept what the last one took */
        for (int i = 0; i < BURST; i++)
            CHECK_EQ(recv_int(ch, SN_NOWAIT), i);
        CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT);
    }
    CHECK_EQ(sn_chan_destroy(ch), 0);
}
#endif

#ifdef SINEW_HARNESS_WRAP
TEST(a_channel_in_steady_state_allocates_nothing)
{
    static const size_t capacities[] = {16, SN_CHAN_UNBOUNDED};
    for (int k = 0; k < 2; k++) {
        sn_chan *ch = make(sizeof(int), capacities[k]);
        uint64_t before = 0;
        for (int i = 0; i < 100000; i++) {
            if (i == 20000)
                before = alloc_count();
            CHECK_EQ(send_int(ch, i, SN_NOWAIT), 0);
            if (i >= 10)
                CHECK_EQ(recv_int(ch, SN_NOWAIT), i - 10);
        }
        CHECK_EQ(alloc_count(), before);
        CHECK_EQ(sn_chan_destroy(ch), 0);
    }
}
#endif

#ifdef SINEW_HARNESS_WRAP
TEST(for_want_of_memory_nothing_is_lost)
{
    sn_chan *ch = NULL;
    alloc_fail_at(1);
    CHECK_EQ(sn_chan_create(&ch, 8, 8, NULL), -ENOMEM);
    CHECK(ch == NULL);
    ch = make(sizeof(int), SN_CHAN_UNBOUNDED);
    int sent = 0, failed = 0;
    for (int i = 0; i < 10000; i++) {
        if (i % 1500 == 0)
            alloc_fail_at(1);
        int rc = send_int(ch, sent, SN_NOWAIT);
        if (rc == 0)
            sent++;
        else
            failed++, CHECK_EQ(rc, -ENOMEM);
    }
    alloc_fail_at(0);
    CHECK_GT(failed, 3);
    for (int i = 0; i < sent; i++)
        CHECK_EQ(recv_int(ch, SN_NOWAIT), i);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}
#endif

/* ---- typed ---------------------------------------------------------------------------------- */

TEST(a_typed_channel_knows_the_size_of_its_elements)
{
    struct pair {
        double x, y, z;
    } p = {1, 2, 3}, q = {0, 0, 0};
    SN_CHAN(struct pair) pairs;
    CHECK_EQ(SN_CHAN_CREATE(&pairs, 2, NULL), 0);
    CHECK_EQ(SN_CHAN_SEND(&pairs, &p, SN_NOWAIT), 0);
    CHECK_EQ(SN_CHAN_RECV(&pairs, &q, SN_NOWAIT), 0);
    CHECK_MEM_EQ(&p, &q, sizeof(p));
    CHECK_EQ(sn_chan_destroy(pairs.chan), 0);
}

/* ---- plain threads -------------------------------------------------------------------------- */

static void *pong_thread(void *arg)
{
    CHECK_EQ(pong(arg), 0);
    return NULL;
}

TASK_TEST(a_task_and_a_plain_thread_play_ping_pong)
{
    (void)arg;
    struct post p = {make(sizeof(int), 0), make(sizeof(int), 0), 0, 50, 0};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, pong_thread, &p), 0);
    int v = 0;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(send_int(p.a, v, SN_FOREVER), 0);
        v = recv_int(p.b, SN_FOREVER);
    }
    CHECK_EQ(v, 50);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sn_chan_destroy(p.a) | sn_chan_destroy(p.b), 0);
    return 0;
}

TEST(threads_need_no_runtime)
{
    struct post p = {make(sizeof(int), 0), make(sizeof(int), 1), 0, 500, 0};
    pthread_t thread;
    CHECK_EQ(recv_int(p.a, sn_after(SN_MS(1))), -ETIMEDOUT);
    CHECK_EQ(pthread_create(&thread, NULL, pong_thread, &p), 0);
    int v = 0;
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(send_int(p.a, v, SN_FOREVER), 0);
        v = recv_int(p.b, SN_FOREVER);
    }
    CHECK_EQ(v, 500);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sn_chan_destroy(p.a) | sn_chan_destroy(p.b), 0);
}

/* ---- coroutines ----------------------------------------------------------------------------- */

typedef struct stage {
    sn_coro coro;
    sn_chan *from, *to;
    sn_chan_op op;
    int value, count;
} stage;

/* Pass on what comes, plus one, until there is no more. */
SN_CORO(stage, self)
{
    int rc;
    SN_BEGIN(self);
    for (;;) {
        SN_AWAIT_INTO(rc, sn_chan_recv_op(&self->op, self->from, &self->value));
        if (rc < 0)
            break;
        self->value++;
        self->count++;
        SN_AWAIT_INTO(rc, sn_chan_send_op(&self->op, self->to, &self->value));
        if (rc < 0)
            break;
    }
    sn_chan_close(self->to);
    SN_RETURN(rc == -EPIPE ? self->count : rc);
    SN_END();
}

TASK_TEST(coroutines_pass_values_on)
{
    (void)arg;
    enum { STAGES = 5, N = 100 };
    for (size_t capacity = 0; capacity < 3; capacity++) {
        sn_chan *ch[STAGES + 1];
        sn_task *t[STAGES + 1];
        ch[0] = make(sizeof(int), capacity);
        for (int i = 0; i < STAGES; i++) {
            ch[i + 1] = make(sizeof(int), capacity);
            stage frame = {.from = ch[i], .to = ch[i + 1]};
            t[i] = sn_spawn_coro(stage, &frame);
        }
        struct post p = {.a = ch[0], .to = N};
        t[STAGES] = sn_spawn(send_range, &p);
        for (int i = 0; i < N; i++)
            CHECK_EQ(recv_int(ch[STAGES], SN_FOREVER), i + STAGES);
        CHECK_EQ(sn_chan_close(ch[0]), 0);
        CHECK_EQ(recv_int(ch[STAGES], SN_FOREVER), -EPIPE);
        for (int i = 0; i < STAGES; i++)
            CHECK_EQ(sn_join(t[i], NULL), N);
        CHECK_EQ(sn_join(t[STAGES], NULL), 0);
        for (int i = 0; i <= STAGES; i++)
            CHECK_EQ(sn_chan_destroy(ch[i]), 0);
    }
    return 0;
}

TEST(an_operation_that_is_dropped_gives_up_its_place)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan *ch = make(sizeof(int), 0);
    sn_chan_op op;
    int v = 7, got = 0;
    sn_future *f = sn_chan_send_op(&op, ch, &v);
    CHECK_EQ(op.result, -ECANCELED);
    CHECK(sn_poll_pending(sn_future_poll(f, &cx)));
    CHECK_EQ(sn_future_drop(f), 0);
    CHECK_EQ(op.result, -ECANCELED);
    CHECK_EQ(recv_int(ch, SN_NOWAIT), -ETIMEDOUT);

    f = sn_chan_recv_op(&op, ch, &got);
    CHECK(sn_poll_pending(sn_future_poll(f, &cx)));
    CHECK_EQ(sn_future_drop(f), 0);
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), -ETIMEDOUT);

    f = sn_chan_recv_op(&op, ch, &got); /* dropped unpolled */
    CHECK_EQ(sn_future_drop(f), 0);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

TEST(an_operation_that_was_served_before_it_is_dropped_says_so)
{
    sn_waker noop = sn_noop_waker();
    sn_cx cx = {&noop};
    sn_chan *ch = make(sizeof(int), 0);
    sn_chan_op op;
    int v = 7, got = 0;
    sn_future *f = sn_chan_send_op(&op, ch, &v);
    CHECK(sn_poll_pending(sn_future_poll(f, &cx)));
    CHECK_EQ(recv_int(ch, SN_NOWAIT), 7);
    CHECK_EQ(sn_future_drop(f), 0);
    CHECK_EQ(op.result, 0);

    f = sn_chan_recv_op(&op, ch, &got);
    CHECK(sn_poll_pending(sn_future_poll(f, &cx)));
    CHECK_EQ(send_int(ch, 9, SN_NOWAIT), 0);
    CHECK_EQ(sn_future_drop(f), 0);
    CHECK_EQ(op.result, 0);
    CHECK_EQ(got, 9);

    f = sn_chan_recv_op(&op, ch, &got);
    CHECK(sn_poll_pending(sn_future_poll(f, &cx)));
    CHECK_EQ(sn_chan_close(ch), 0);
    CHECK_EQ(sn_future_poll(f, &cx).value, -EPIPE);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}

#ifndef SINEW_DEBUG
typedef struct blocker {
    sn_coro coro;
    sn_chan *ch;
} blocker;

SN_CORO(blocker, self)
{
    SN_BEGIN(self);
    SN_RETURN(recv_int(self->ch, SN_FOREVER));
    SN_END();
}

TASK_TEST(a_coroutine_that_would_block_its_worker_gets_an_error)
{
    (void)arg;
    blocker frame = {.ch = make(sizeof(int), 1)};
    CHECK_EQ(sn_join(sn_spawn_coro(blocker, &frame), NULL), -EDEADLK);
    CHECK_EQ(send_int(frame.ch, 3, SN_NOWAIT), 0);
    CHECK_EQ(sn_join(sn_spawn_coro(blocker, &frame), NULL), 3);
    CHECK_EQ(sn_chan_destroy(frame.ch), 0);
    return 0;
}
#endif

/* ---- a runtime that does not wait ----------------------------------------------------------- */

static int wait_for_ever(void *arg)
{
    return recv_int(arg, SN_FOREVER);
}

static int leave_one_behind(void *arg)
{
    sn_task *t = sn_spawn(wait_for_ever, arg);
    sn_yield();
    sn_sleep(SN_MS(1));
    return sn_detach(t);
}

TEST(a_fiber_that_is_abandoned_does_not_stay_in_the_line)
{
    sn_chan *ch = make(sizeof(int), 0);
    sn_runtime *rt = NULL;
    CHECK_EQ(sn_runtime_create(&rt, &(sn_runtime_options){.workers = 2}), 0);
    CHECK_EQ(sn_runtime_block_on(rt, leave_one_behind, ch), 0);
    CHECK_EQ(sn_runtime_shutdown(rt, sn_after(SN_MS(1))), 1);
    sn_runtime_destroy(rt);
    CHECK_EQ(send_int(ch, 1, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_chan_destroy(ch), 0);
}
