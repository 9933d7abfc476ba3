/* SPDX-License-Identifier: MIT */

// b.c - another thing,
// in another dress.
