/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_ATOMIC_H
#define SINEW_BASE_ATOMIC_H

#define SNI_ORDER_relaxed __ATOMIC_RELAXED



#define sni_atomic_spin(a) sni_atomic_load(a, relaxed)

#endif
