/* SPDX-License-Identifier: MIT */
/* fence.c - a fence in all threads: membarrier(2), private and expedited.
 *
 * The kernel interrupts the processors that run a thread of this process; to all other threads the
 * switch that took them off was a fence. It wants to know beforehand who will ask: with one thread
 * that is a store, with more it waits until every processor has passed through the scheduler. */
#include "plat/thread.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static SNI_ATOMIC(uint32_t) prepared;

static int membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0 ? 0 : -errno;
}

int sni_plat_fence_all_prepare(bool patient)
{
    /* relaxed, both: the kernel knows; this only saves the question */
    if (sni_atomic_load(&prepared, relaxed) != 0)
        return 0;
    if (!patient && !sni_plat_thread_is_alone() && sni_plat_threads_beside(1) != 0)
        return -EBUSY;
    int rc = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    if (rc == 0)
        sni_atomic_store(&prepared, 1, relaxed); /* relaxed: as above */
    return rc == -EINVAL ? -ENOSYS : rc;
}

int sni_plat_fence_all(void)
{
    int rc = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    return rc == -EINVAL ? -ENOSYS : rc;
}
