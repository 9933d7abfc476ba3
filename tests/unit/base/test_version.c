/* SPDX-License-Identifier: MIT */
/* The version: what the library says is what the header says. */
#include "harness.h"

#include <sinew/sinew.h>

TEST(the_library_reports_the_version_of_its_headers)
{
    CHECK_EQ(sn_version(), SN_VERSION);
    CHECK_EQ(SN_VERSION, SN_VERSION_MAJOR * 65536 + SN_VERSION_MINOR * 256 + SN_VERSION_PATCH);
}
