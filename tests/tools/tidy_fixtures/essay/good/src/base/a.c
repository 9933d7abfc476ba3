/* SPDX-License-Identifier: MIT */
/* a.c - one thing,
 * well done. */
