/* SPDX-License-Identifier: MIT */
#if defined(__linux__) && defined(__ARM_ARCH_7M__)
#endif
#ifdef __GNUC__
#endif
