/* SPDX-License-Identifier: MIT */
#include "plat/plat.h"
