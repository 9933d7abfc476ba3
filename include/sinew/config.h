/* SPDX-License-Identifier: MIT */
/* config.h - what the compiler is asked about the target, in one place.
 *
 * Every other public header works from the SN_ names defined here (and the
 * attributes in annotate.h), so that a port edits one file. */
#ifndef SINEW_CONFIG_H
#define SINEW_CONFIG_H

/* 1 where a C library and an operating system may be assumed, 0 on bare metal
 * and in plain WebAssembly. Level 0 never looks at it; later levels need 1. */
#if defined(__STDC_HOSTED__) && __STDC_HOSTED__ && !defined(__wasm__)
#define SN_HOSTED 1
#else
#define SN_HOSTED 0
#endif

/* The instruction of a loop that waits for somebody else; where the architecture has none, a
 * barrier that makes the compiler look at memory again. */
#if defined(__x86_64__) || defined(__i386__)
#define SN_CPU_PAUSE_() __builtin_ia32_pause()
#elif defined(__aarch64__) || defined(__arm__)
#define SN_CPU_PAUSE_() __asm__ volatile("yield" ::: "memory")
#else
#define SN_CPU_PAUSE_() __asm__ volatile("" ::: "memory")
#endif

#endif
