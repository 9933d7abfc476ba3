/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
#if __clang_major__ > 18
#endif
#if __has_feature(x)
#endif
