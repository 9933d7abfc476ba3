/* SPDX-License-Identifier: MIT */
/* drivers.h - which driver a runtime's workers wait with. */
#ifndef SINEW_RUNTIME_DRIVERS_H
#define SINEW_RUNTIME_DRIVERS_H

#include "io/driver.h"

#include <sinew/runtime.h>

/* Makes a driver for a worker. Returns 0, or -errno */
typedef int sni_make_driver(struct sni_driver **out);

/* The one that the option asks for, else the environment (SINEW_IO), else the best there is.
 *
 * Returns  0
 *          -EINVAL  the option or the variable names none; a sentence goes to standard error
 *          or why the one that was asked for by name does not work here */
int sni_choose_driver(sn_io_driver asked, sni_make_driver **out);

#endif
