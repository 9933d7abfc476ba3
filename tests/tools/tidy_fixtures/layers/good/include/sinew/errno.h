/* SPDX-License-Identifier: MIT */
#ifndef SINEW_ERRNO_H
#define SINEW_ERRNO_H

#include <errno.h>
#include <stdint.h>
#include <sinew/config.h>

#endif
