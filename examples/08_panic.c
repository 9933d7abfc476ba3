/* SPDX-License-Identifier: MIT */
/* 08_panic - a task that cannot go on ends alone; whoever joins it learns why. */
#include <sinew/sinew.h>
#include <stdio.h>

static int divide(void *arg)
{
    const int *n = arg;
    if (n[1] == 0)
        sn_panic("%d cannot be divided by zero", n[0]);
    return n[0] / n[1];
}

static int app(void *arg)
{
    (void)arg;
    static const int jobs[3][2] = {{84, 2}, {7, 0}, {9, 3}};
    sn_task *task[3];
    for (int i = 0; i < 3; i++)
        task[i] = sn_spawn(divide, (void *)jobs[i], .name = "divider");
    for (int i = 0; i < 3; i++) {
        sn_exit how;
        int rc = sn_join(task[i], &how);
        if (how.kind == SN_EXIT_PANICKED)
            printf("job %d panicked: %s\n", i, how.message);
        else
            printf("job %d: %d\n", i, rc);
    }
    return 0;
}

int main(void)
{
    return sn_run(app, NULL);
}
