/* SPDX-License-Identifier: MIT */
#ifndef SINEW_TASK_H
#define SINEW_TASK_H

SN_BEGIN_DECLS

/* Does it.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API SN_MUST_USE int sn_join(sn_task *task,
                               sn_exit *how);

/* Two of a kind.
 * Suspends: yes.   Threads: any. */
SN_API SN_SUSPENDS void sn_group_lock(sn_group *g,
                                      int (*fn)(void *arg), void *arg);
SN_API SN_SUSPENDS void sn_group_unlock(sn_group *g);

SN_API int sn_hidden_(void);

/* Tells whether `t` is over. */
static inline int sn_over(const sn_task *t)
{
    return t->over;
}

static inline int sn_hidden_too_(void)
{
    return 0;
}

/* A number. */
#ifdef SN_BIG
#define SN_NUMBER 2
#else
#define SN_NUMBER 1
#endif

#define SN_CODE 3 /* end of stream */
#define SN_PRIVATE_(x) (x)

SN_END_DECLS

#endif
