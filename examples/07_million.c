/* SPDX-License-Identifier: MIT */
/* 07_million - a million tasks alive at once, each waiting for its turn. */
#include <sinew/sinew.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TASKS = 1000000,
};

typedef struct worker { /* a coroutine task costs its frame and 128 bytes */
    sn_coro coro;
    int number;
    int turn;
} worker;

SN_CORO(worker, self)
{
    SN_BEGIN(self);
    for (self->turn = 0; self->turn < 3; self->turn++)
        SN_YIELD(); /* all the others run before we go on */
    SN_RETURN(self->number % 10);
    SN_END();
}

static int app(void *arg)
{
    (void)arg;
    long sum = 0;
    sn_task **task = malloc(sizeof(*task) * TASKS);
    if (task == NULL)
        return -ENOMEM;
    for (int i = 0; i < TASKS; i++) {
        worker frame = {.number = i};
        task[i] = sn_spawn_coro(worker, &frame);
    }
    for (int i = 0; i < TASKS; i++)
        sum += sn_join(task[i], NULL);
    free(task);
    printf("%d tasks returned %ld\n", TASKS, sum);
    return 0;
}

int main(void)
{
    return sn_run(app, NULL);
}
