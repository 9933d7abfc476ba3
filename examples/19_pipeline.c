/* SPDX-License-Identifier: MIT */
/* 19_pipeline - stages joined by channels: each reads one, writes and closes the next. */
#include <sinew/sinew.h>
#include <stdio.h>

enum { STAGES = 3 };
struct stage {
    sn_chan *from, *to;
};

static int count(void *arg)
{
    const struct stage *s = arg;
    for (int i = 1; i <= 20 && sn_chan_send(s->to, &i, SN_FOREVER) == 0; i++)
        ;
    return sn_chan_close(s->to);
}

static int square(void *arg)
{
    const struct stage *s = arg;
    for (int n; sn_chan_recv(s->from, &n, SN_FOREVER) == 0;)
        if (sn_chan_send(s->to, &(int){n * n}, SN_FOREVER) < 0)
            break; /* nobody wants any more */
    return sn_chan_close(s->to);
}

static int keep_odd(void *arg)
{
    const struct stage *s = arg;
    for (int n; sn_chan_recv(s->from, &n, SN_FOREVER) == 0;)
        if (n % 2 == 1 && sn_chan_send(s->to, &n, SN_FOREVER) < 0)
            break;
    return sn_chan_close(s->to);
}

static int app(void *arg)
{
    static sn_task_fn *const work[STAGES] = {count, square, keep_odd};
    struct stage stage[STAGES];
    sn_task *task[STAGES];
    (void)arg;
    for (int i = 0; i < STAGES; i++) {
        stage[i].from = i > 0 ? stage[i - 1].to : NULL;
        if (sn_chan_create(&stage[i].to, sizeof(int), 4, NULL) < 0)
            return -1;
    }
    for (int i = 0; i < STAGES; i++)
        task[i] = sn_spawn(work[i], &stage[i]);
    for (int n; sn_chan_recv(stage[STAGES - 1].to, &n, SN_FOREVER) == 0;)
        printf("%d\n", n);
    for (int i = 0; i < STAGES; i++)
        (void)(sn_join(task[i], NULL) | sn_chan_destroy(stage[i].from));
    return sn_chan_destroy(stage[STAGES - 1].to);
}

int main(void)
{
    return sn_run(app, NULL) < 0;
}
