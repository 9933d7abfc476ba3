/* SPDX-License-Identifier: MIT */
/* A runtime is used after its end. */
#include <sinew/sinew.h>

int work(void *arg);

int defect(void)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, NULL);
    if (rc < 0)
        return rc;
    sn_runtime_destroy(rt);
    return sn_runtime_block_on(rt, work, NULL); /* clang: is freed */
}
