/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
/* nothing of __linux__ here */
static const char text[] = "__linux__";
#ifdef __cplusplus
#endif
#define SN__linux__x 1
