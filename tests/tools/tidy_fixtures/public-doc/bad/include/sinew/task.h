/* SPDX-License-Identifier: MIT */
#ifndef SINEW_TASK_H
#define SINEW_TASK_H

SN_BEGIN_DECLS

SN_API int sn_bare(void);

/* Does it. Threads: any. Returns 0. */
SN_API int sn_partial(int a,
                      int b);

/* Does it. Suspends: no. Threads: any. */
SN_API void *sn_pointer(void);

/* Waits. Suspends: yes, if it must. Threads: any. Returns 0. */
SN_API int sn_wait(void);

/* Does not. Suspends: no. Threads: any. Returns 0. */
SN_API SN_SUSPENDS int sn_look(void);

/* A comment too far away. */

static inline int sn_over(void)
{
    return 1;
}

#define SN_NUMBER 1

#define SN_TWICE(x) \
    ((x) * 2)

#define sn_spawn(x) (x)

SN_END_DECLS

#endif
