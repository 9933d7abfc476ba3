/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H

SN_BEGIN_DECLS

/* Waits.
 *
 * Suspends: yes.   Threads: any.
 * Returns  0  done */
SN_API SN_SUSPENDS SN_MUST_USE int sn_wait(sn_thing *thing, sn_deadline until);

/* Does not wait.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API int sn_look(void);

/* sn_wait as a future.
 *
 * Suspends: no.   Threads: any.
 * Returns  the future */
SN_API sn_future *sn_wait_op(sn_state *state,
                             sn_thing *thing);

/* Not a future, whatever it is called.
 *
 * Suspends: no.   Threads: any.
 * Returns  0  done */
SN_API int sn_last_op(sn_thing *thing);

SN_END_DECLS

#endif
