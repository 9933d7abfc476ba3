/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
#include "base/list.h"
#include "plat/plat.h"
#include "elsewhere/x.h"
#include "../base/list.h"
