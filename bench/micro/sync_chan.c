/* SPDX-License-Identifier: MIT */
/* Channels: workloads W3 (ping-pong over two rendezvous channels, per round trip) and W4 (one
 * channel of 64, producers x consumers, per message) of the yardstick, on one and two workers.
 *
 * Each body runs inside a runtime that is made before the clock starts. */
#include "with_runtime.h"

#include <stdint.h>

/* ---- W3 ------------------------------------------------------------------------------------- */

struct court {
    sn_chan *a, *b;
    uint64_t rounds;
};

static int pong(void *arg)
{
    struct court *c = arg;
    int rc = 0;
    for (uint64_t i = 0; i < c->rounds; i++) {
        uint64_t v;
        rc |= sn_chan_recv(c->a, &v, SN_FOREVER);
        v++;
        rc |= sn_chan_send(c->b, &v, SN_FOREVER);
    }
    return rc;
}

static int ping(void *arg)
{
    struct court *c = arg;
    uint64_t v = 0;
    int rc = 0;
    for (uint64_t i = 0; i < c->rounds; i++) {
        rc |= sn_chan_send(c->a, &v, SN_FOREVER);
        rc |= sn_chan_recv(c->b, &v, SN_FOREVER);
    }
    return rc != 0 || v != c->rounds;
}

static int play(struct bench *b, size_t capacity)
{
    struct court c = {.rounds = b->iterations};
    if (sn_chan_create(&c.a, sizeof(uint64_t), capacity, NULL) < 0 ||
        sn_chan_create(&c.b, sizeof(uint64_t), capacity, NULL) < 0)
        return 1;
    sn_task *t[2] = {sn_spawn(pong, &c), sn_spawn(ping, &c)};
    int rc = sn_join(t[0], NULL);
    rc |= sn_join(t[1], NULL);
    sn_chan_destroy(c.a);
    sn_chan_destroy(c.b);
    return rc;
}

static int rendezvous(void *arg)
{
    return play(arg, 0);
}

static int one_place(void *arg)
{
    return play(arg, 1);
}

BENCH(w3_pingpong_1w, .setup = one_worker, .teardown = finish, .note = "two rendezvous; round trip")
{
    inside(b, rendezvous);
}

BENCH(w3_pingpong_2w, .setup = two_workers, .teardown = finish, .unpinned = true,
      .note = "the same, two workers")
{
    inside(b, rendezvous);
}

BENCH(w3_pingpong_cap1_1w, .setup = one_worker, .teardown = finish,
      .note = "channels of capacity 1; round trip")
{
    inside(b, one_place);
}

/* ---- W4 ------------------------------------------------------------------------------------- */

enum { SIDES_MAX = 4, CAPACITY = 64 };

struct range {
    sn_chan *ch;
    uint64_t from, to, sum;
};

static int produce(void *arg)
{
    struct range *r = arg;
    int rc = 0;
    for (uint64_t i = r->from; i < r->to; i++)
        rc |= sn_chan_send(r->ch, &i, SN_FOREVER);
    return rc | sn_chan_release(r->ch, SN_CHAN_SENDER);
}

static int consume(void *arg)
{
    struct range *r = arg;
    uint64_t v;
    while (sn_chan_recv(r->ch, &v, SN_FOREVER) == 0)
        r->sum += v;
    return 0;
}

static int flow(uint64_t n, unsigned producers, unsigned consumers)
{
    sn_chan *ch;
    struct range p[SIDES_MAX], c[SIDES_MAX];
    sn_task *t[2 * SIDES_MAX];
    int rc = sn_chan_create(&ch, sizeof(uint64_t), CAPACITY, NULL);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < producers; i++) {
        p[i] = (struct range){ch, i * n / producers, (i + 1) * n / producers, 0};
        rc |= sn_chan_acquire(ch, SN_CHAN_SENDER);
        t[i] = sn_spawn(produce, &p[i]);
    }
    rc |= sn_chan_release(ch, SN_CHAN_SENDER);
    uint64_t sum = 0;
    for (unsigned i = 0; i < consumers; i++) {
        c[i] = (struct range){.ch = ch};
        t[producers + i] = sn_spawn(consume, &c[i]);
    }
    for (unsigned i = 0; i < producers + consumers; i++)
        rc |= sn_join(t[i], NULL);
    for (unsigned i = 0; i < consumers; i++)
        sum += c[i].sum;
    rc |= sn_chan_release(ch, SN_CHAN_RECEIVER);
    return rc != 0 || sum != n * (n - 1) / 2;
}

static int flow_1x1(void *arg)
{
    struct bench *b = arg;
    return flow(b->iterations, 1, 1);
}

static int flow_4x1(void *arg)
{
    struct bench *b = arg;
    return flow(b->iterations, 4, 1);
}

static int flow_4x4(void *arg)
{
    struct bench *b = arg;
    return flow(b->iterations, 4, 4);
}

BENCH(w4_chan_1x1_1w, .setup = one_worker, .teardown = finish, .note = "one sends, one receives")
{
    inside(b, flow_1x1);
}

BENCH(w4_chan_4x1_1w, .setup = one_worker, .teardown = finish, .note = "four send, one receives")
{
    inside(b, flow_4x1);
}

BENCH(w4_chan_4x4_1w, .setup = one_worker, .teardown = finish, .note = "four send, four receive")
{
    inside(b, flow_4x4);
}

BENCH(w4_chan_1x1_2w, .setup = two_workers, .teardown = finish, .unpinned = true,
      .note = "one sends, one receives, two workers")
{
    inside(b, flow_1x1);
}

BENCH(w4_chan_4x1_2w, .setup = two_workers, .teardown = finish, .unpinned = true,
      .note = "four send, one receives, two workers")
{
    inside(b, flow_4x1);
}

BENCH(w4_chan_4x4_2w, .setup = two_workers, .teardown = finish, .unpinned = true,
      .note = "four send, four receive, two workers")
{
    inside(b, flow_4x4);
}
