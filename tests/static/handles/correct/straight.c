/* SPDX-License-Identifier: MIT */
/* Handles that are used up on every path. */
#include <sinew/sinew.h>

int work(void *arg);
int prepare(void);

int joined(void)
{
    return sn_join(sn_spawn(work, NULL), NULL);
}

int joined_after_a_check(void)
{
    int error;
    sn_task *t = sn_spawn(work, NULL, .name = "checked", .error = &error);
    if (t == NULL)
        return error;
    return sn_join(t, NULL);
}

int detached(void)
{
    return sn_detach(sn_spawn(work, NULL));
}

int never_had(void)
{
    return sn_spawn_detached(work, NULL);
}

int joined_or_cancelled(void)
{
    sn_task *t = sn_spawn(work, NULL);
    if (prepare() < 0)
        return sn_cancel(t, NULL);
    return sn_join(t, NULL);
}

int joined_or_detached(bool wait)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc;
    if (wait)
        rc = sn_join(t, NULL);
    else
        rc = sn_detach(t);
    return rc;
}

int joined_on_all_exits(void)
{
    int rc = -1;
    sn_task *a = sn_spawn(work, NULL);
    if (a == NULL)
        goto out;
    sn_task *b = sn_spawn(work, NULL);
    if (b == NULL)
        goto join_a;
    rc = sn_join(b, NULL);
join_a:
    sn_join(a, NULL);
out:
    return rc;
}

int one_in_each_turn(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sn_task *t = sn_spawn(work, NULL);
        if (prepare() < 0) {
            sn_detach(t);
            continue;
        }
        sum += sn_join(t, NULL);
    }
    return sum;
}

int variable_used_again(void)
{
    sn_task *t = sn_spawn(work, NULL);
    int rc = sn_join(t, NULL);
    t = sn_spawn(work, NULL);
    return rc + sn_join(t, NULL);
}

int two_with_names(void)
{
    sn_task *a = sn_spawn(work, NULL, .name = "a");
    sn_task *b = sn_spawn(work, NULL, .name = "b");
    return sn_join(a, NULL) + sn_join(b, NULL);
}
