/* SPDX-License-Identifier: MIT */
#ifndef SINEW_CONFIG_H
#define SINEW_CONFIG_H

#if defined(__linux__) && defined(__ARM_ARCH_7M__)
#endif
#ifdef __GNUC__
#endif

#endif
