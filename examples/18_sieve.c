/* SPDX-License-Identifier: MIT */
/* 18_sieve - primes by a chain of tasks: each lets through what its own prime does not divide. */
#include <sinew/sinew.h>
#include <stdio.h>

enum { PRIMES = 20 };

struct strainer {
    sn_chan *from, *to;
    int prime;
};

static int count(void *arg)
{
    sn_chan *to = arg;
    int i = 2;
    while (sn_chan_send(to, &i, SN_FOREVER) == 0)
        i++;
    return 0;
}

static int strain(void *arg)
{
    struct strainer *s = arg;
    int n;
    while (sn_chan_recv(s->from, &n, SN_FOREVER) == 0)
        if (n % s->prime != 0 && sn_chan_send(s->to, &n, SN_FOREVER) < 0)
            break; /* nobody wants more: say so to the one before */
    return sn_chan_close(s->from);
}

static int app(void *arg)
{
    (void)arg;
    sn_chan *chan[PRIMES + 1];
    struct strainer s[PRIMES];
    sn_task *task[PRIMES + 1];
    for (int i = 0; i <= PRIMES; i++)
        if (sn_chan_create(&chan[i], sizeof(int), 0, NULL) < 0)
            return -1;
    task[PRIMES] = sn_spawn(count, chan[0]);
    for (int i = 0; i < PRIMES; i++) {
        s[i] = (struct strainer){chan[i], chan[i + 1], 0};
        if (sn_chan_recv(chan[i], &s[i].prime, SN_FOREVER) < 0)
            return -1;
        printf("%d%c", s[i].prime, i + 1 < PRIMES ? ' ' : '\n');
        task[i] = sn_spawn(strain, &s[i]);
    }
    (void)sn_chan_close(chan[PRIMES]); /* the end runs down the chain, against the stream */
    for (int i = 0; i <= PRIMES; i++)
        (void)sn_join(task[i], NULL);
    for (int i = 0; i <= PRIMES; i++)
        sn_chan_destroy(chan[i]);
    return 0;
}

int main(void)
{
    return sn_run(app, NULL) < 0;
}
