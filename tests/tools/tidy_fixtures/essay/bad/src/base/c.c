/* SPDX-License-Identifier: MIT */
#include <stddef.h>
/* too late,
 * too late */
