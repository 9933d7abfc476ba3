/* SPDX-License-Identifier: MIT */
#include "local.h"

#include <sinew/sinew.h>
#include <stdio.h>
