/* SPDX-License-Identifier: MIT */
/* drivers.h - which driver a runtime's workers wait with. */
#ifndef SINEW_RUNTIME_DRIVERS_H
#define SINEW_RUNTIME_DRIVERS_H

#include "io/driver.h"

#include <sinew/runtime.h>

/* What was chosen; a part of the runtime. */
struct sni_driver_choice {
    sn_io_driver asked;        /* immutable                                          */
    bool sqpoll;               /* immutable                                          */
    SNI_ATOMIC(uint32_t) told; /* any worker: bits of those that were refused, and told of */
};

/* Make a driver for a worker, by the choice `arg`. Returns 0, or -errno */
int sni_make_driver(void *arg, struct sni_driver **out);

/* Choose the one that the option asks for, else the environment (SINEW_IO), else the best there
 * is when it is needed.
 *
 * Returns  0
 *          -EINVAL  the option or the variable names none; a sentence goes to standard error
 *          or why the one that was asked for by name does not work here */
int sni_choose_driver(sn_io_driver asked, bool sqpoll, struct sni_driver_choice *choice);

#endif
