/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
#include "base/list.h"
#include "mutex_priv.h"
#include "sync/mutex.h"

#include <net/if.h>
#include <sinew/sync.h>
/* #include "plat/plat.h" would be wrong */
