/* SPDX-License-Identifier: MIT */
/* A callback, which must not suspend, calls a function of the program that may. */
#include <sinew/sinew.h>

SN_SUSPENDS static int take(sn_sem *sem)
{
    return sn_sem_acquire(sem, 1, SN_FOREVER);
}

void on_event(void *arg)
{
    if (take(arg) < 0) /* roles: 'take' requires negative capability '!sn_no_suspend' */
        return;
    sn_sem_release(arg, 1);
}
