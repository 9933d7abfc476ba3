/* SPDX-License-Identifier: MIT */
/* level0.h - everything of Level 0: no heap, no operating system, no libc. */
#ifndef SINEW_LEVEL0_H
#define SINEW_LEVEL0_H

#include <sinew/annotate.h>
#include <sinew/assert.h>
#include <sinew/clock.h>
#include <sinew/combine.h>
#include <sinew/config.h>
#include <sinew/coro.h>
#include <sinew/errno.h>
#include <sinew/future.h>
#include <sinew/version.h>

#endif
