/* SPDX-License-Identifier: MIT */
#ifdef __x86_64__
#endif
