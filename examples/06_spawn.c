/* SPDX-License-Identifier: MIT */
/* 06_spawn - tasks: plain functions that run beside each other on a few threads. */
#include <sinew/sinew.h>
#include <stdio.h>

struct range {
    long from, to, sum;
};

static int add_up(void *arg)
{
    struct range *r = arg;
    for (long i = r->from; i < r->to; i++)
        r->sum += i;
    return 0;
}

static int app(void *arg)
{
    (void)arg;
    struct range part[8];
    sn_task *task[8];
    for (int i = 0; i < 8; i++) {
        part[i] = (struct range){.from = i * 1000, .to = (i + 1) * 1000};
        task[i] = sn_spawn(add_up, &part[i], .name = "adder");
    }
    long sum = 0;
    for (int i = 0; i < 8; i++) { /* joined here, so they may use our stack */
        int rc = sn_join(task[i], NULL);
        if (rc < 0)
            return rc;
        sum += part[i].sum;
    }
    printf("the numbers below 8000 add up to %ld\n", sum);
    return 0;
}

int main(void)
{
    return sn_run(app, NULL);
}
