/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_COMPILER_H
#define SINEW_BASE_COMPILER_H

#ifdef __GNUC__
#endif

#endif
