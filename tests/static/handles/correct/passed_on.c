/* SPDX-License-Identifier: MIT */
/* Handles that somebody else uses up. */
#include <sinew/sinew.h>
#include <stdlib.h>

int work(void *arg);
void adopt(sn_task *t);

struct owner {
    sn_task *task;
    struct owner *next;
};

static sn_task *the_one;

sn_task *returned(void)
{
    return sn_spawn(work, NULL);
}

int through_an_out_parameter(sn_task **out)
{
    *out = sn_spawn(work, NULL);
    return *out == NULL ? -1 : 0;
}

void into_a_global(void)
{
    the_one = sn_spawn(work, NULL);
}

int out_of_the_global(void)
{
    sn_task *t = the_one;
    the_one = NULL;
    return sn_join(t, NULL);
}

void into_the_callers(struct owner *o)
{
    o->task = sn_spawn(work, NULL);
}

struct owner *onto_the_heap(struct owner *next)
{
    struct owner *o = malloc(sizeof(*o));
    if (o == NULL)
        return NULL;
    o->task = sn_spawn(work, NULL);
    o->next = next;
    return o;
}

void to_a_stranger(void)
{
    adopt(sn_spawn(work, NULL));
}

static int wait_for(sn_task *t)
{
    return sn_join(t, NULL);
}

int to_a_helper(void)
{
    return wait_for(sn_spawn(work, NULL));
}

int joined_all(struct owner *list)
{
    int sum = 0;
    for (struct owner *o = list; o != NULL; o = o->next)
        sum += sn_join(o->task, NULL);
    return sum;
}

int joined_array(sn_task **t, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += sn_join(t[i], NULL);
    return sum;
}
