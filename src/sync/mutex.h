/* SPDX-License-Identifier: MIT */
/* mutex.h - what the condition needs of the mutex. */
#ifndef SINEW_SYNC_MUTEX_H
#define SINEW_SYNC_MUTEX_H

#include "sync/gate.h"

/* Queue `guest`, whose condition was signalled and which must own `m` to go on: it is claimed with
 * 0 when it does, or with SNI_GATE_AGAIN. */
void sni_mutex_adopt(sn_mutex *m, struct sni_guest *guest, struct sni_wakes *wakes);

/* As `enter` of a mutex's kind: take guest->mutex, or be queued for it. */
int sni_mutex_enter(struct sni_guest *guest);

/* As `refuse`. */
void sni_mutex_refuse(struct sni_guest *guest, int result);

bool sni_mutex_is_held_by(const sn_mutex *m, uintptr_t who);

/* For reports: who holds it at this moment, or 0. */
uintptr_t sni_mutex_holder(const sn_mutex *m);

/* Unlock, in the name of `who`. Returns 0; -EPERM (misuse) if that one does not hold it. */
int sni_mutex_unlock_as(sn_mutex *m, uintptr_t who);

#endif
