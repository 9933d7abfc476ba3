/* SPDX-License-Identifier: MIT */
/* a.c - short. */
#include <stddef.h>
