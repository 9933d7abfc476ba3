/* SPDX-License-Identifier: MIT */
/* The mutex is a library's, marked as those of the system are. */
#include <sinew/sinew.h>

struct lib;
void lib_lock(struct lib *l) SN_LOCKS;
void lib_unlock(struct lib *l) SN_UNLOCKS;

SN_SUSPENDS void defect(struct lib *l)
{
    lib_lock(l);
    sn_yield(); /* roles: cannot call function 'sn_yield' while mutex */
    lib_unlock(l);
}
