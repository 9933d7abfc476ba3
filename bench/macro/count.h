/* SPDX-License-Identifier: MIT */
/* count.h - which part of a program callgrind counts.
 *
 * Under `valgrind --tool=callgrind --collect-atstart=no` only what lies between two toggles of one
 * thread is counted; elsewhere a toggle is some instructions without effect, and where valgrind's
 * headers are missing it is nothing at all (COUNT_IS_POSSIBLE). By switches and not by the name of
 * a function, because a fiber's stack is not the one that its caller was entered on. */
#ifndef SINEW_BENCH_COUNT_H
#define SINEW_BENCH_COUNT_H

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif

#ifdef CALLGRIND_TOGGLE_COLLECT
#define COUNT_IS_POSSIBLE 1
#define COUNT_TOGGLE()    CALLGRIND_TOGGLE_COLLECT
#else
#define COUNT_IS_POSSIBLE 0
#define COUNT_TOGGLE()    ((void)0)
#endif

#endif
