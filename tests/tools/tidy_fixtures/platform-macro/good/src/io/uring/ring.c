/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
#if defined(__linux__) && defined(__ARM_ARCH_7M__)
#endif
