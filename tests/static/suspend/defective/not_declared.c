/* SPDX-License-Identifier: MIT */
/* A function that does not say that it may suspend, does. */
#include <sinew/sinew.h>

int defect(sn_task *t)
{
    return sn_join(t, NULL); /* roles: 'sn_join' requires negative capability '!sn_no_suspend' */
}
