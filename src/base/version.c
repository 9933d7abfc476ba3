/* SPDX-License-Identifier: MIT */
/* version.c - the version compiled into the library, which may differ from the one in the
 * headers a program saw. */
#include <sinew/version.h>

int sn_version(void)
{
    return SN_VERSION;
}
