/* SPDX-License-Identifier: MIT */
#include "base/list.h"
#include <base/list.h>
