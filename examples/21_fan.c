/* SPDX-License-Identifier: MIT */
/* 21_fan - fan-out and fan-in: one channel feeds four tasks, and all of them feed another. Each has
 * a reference to the sending side of that; when the last one gives it up, the channel closes. */
#include <sinew/sinew.h>
#include <stdio.h>

enum { TASKS = 4, NUMBERS = 30000 };
static sn_chan *in, *out;

static int is_prime(int n)
{
    for (int d = 2; d * d <= n; d++)
        if (n % d == 0)
            return 0;
    return n >= 2;
}

static int filter(void *arg)
{
    int numbers[64];
    (void)arg;
    for (ptrdiff_t n; (n = sn_chan_recv_n(in, numbers, 64, SN_FOREVER)) > 0;)
        for (ptrdiff_t i = 0; i < n; i++)
            if (is_prime(numbers[i]) && sn_chan_send(out, &numbers[i], SN_FOREVER) < 0)
                return -1;
    return sn_chan_release(out, SN_CHAN_SENDER);
}

static int feed(void *arg)
{
    (void)arg;
    for (int i = 0; i < NUMBERS; i++)
        if (sn_chan_send(in, &i, SN_FOREVER) < 0)
            return -1;
    return sn_chan_close(in);
}

static int app(void *arg)
{
    (void)arg;
    if (sn_chan_create(&in, sizeof(int), 256, NULL) < 0 ||
        sn_chan_create(&out, sizeof(int), 16, NULL) < 0)
        return -1;
    for (int i = 0; i < TASKS; i++)
        if (sn_chan_acquire(out, SN_CHAN_SENDER) < 0 || sn_spawn_detached(filter, NULL) < 0)
            return -1;
    (void)sn_chan_release(out, SN_CHAN_SENDER); /* our own */
    sn_task *feeder = sn_spawn(feed, NULL);
    int count = 0, prime;
    while (sn_chan_recv(out, &prime, SN_FOREVER) == 0)
        count++;
    printf("%d primes below %d\n", count, NUMBERS);
    (void)sn_chan_release(out, SN_CHAN_RECEIVER);
    return sn_join(feeder, NULL) < 0 ? -1 : sn_chan_destroy(in);
}

int main(void)
{
    return sn_run(app, NULL) < 0;
}
