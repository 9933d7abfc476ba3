/* SPDX-License-Identifier: MIT */
/* registers.h - a switch seen from the machine: which registers it keeps.
 *
 * One assembly file for each processor, registers_<processor>.S, chosen as in src/fiber/arch. */
#ifndef SINEW_TESTS_FIBER_REGISTERS_H
#define SINEW_TESTS_FIBER_REGISTERS_H

#include "fiber/context.h"

#include <stdint.h>

enum { REGISTERS_MAX = 32 };

typedef void *switch_fn(struct sni_context *from, struct sni_context *to, void *pass);

/* How many registers a function must preserve, the frame pointer and floating point included. */
extern const uint32_t registers_count;

/* Fill them from `in`, call jump(from, to, pass), and store into `out` what they hold when it
 * returns; returns what it returned. */
void *registers_across(const uint64_t *in, uint64_t *out, switch_fn *jump, struct sni_context *from,
                       struct sni_context *to, void *pass);

#endif
