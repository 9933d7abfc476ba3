/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_BITS_H
#define SINEW_BASE_BITS_H

#if defined(__riscv)
#endif

#endif
