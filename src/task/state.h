/* SPDX-License-Identifier: MIT */
/* state.h - the bits of a task's state word; task.h has the table of who may touch what. */
#ifndef SINEW_TASK_STATE_H
#define SINEW_TASK_STATE_H

#include <stdint.h>

#define HANDLE   UINT64_C(1)
#define WAITED   UINT64_C(2)
#define COMPLETE UINT64_C(4)
#define CANCELED UINT64_C(8)
#define WOKEN    UINT64_C(16) /* SNI_TASK_DOOMED, to fibers */
#define ACTIVE   UINT64_C(32)
#define ORPHANED UINT64_C(64)
#define PANICKED UINT64_C(128)
#define SCOPED   UINT64_C(256)
#define LOCKED   UINT64_C(512)
#define REF      UINT64_C(1024)
#define REFS     UINT64_C(0xFFFFFC00)

/* What the two bits of coroutines mean to fibers. */
#define DOOMED  WOKEN
#define EXPIRED ACTIVE

#endif
