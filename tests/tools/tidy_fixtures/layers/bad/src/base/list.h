/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_LIST_H
#define SINEW_BASE_LIST_H

#include "sync/mutex.h"

#endif
