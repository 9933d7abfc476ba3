/* SPDX-License-Identifier: MIT */
#ifdef __unix__
#endif
