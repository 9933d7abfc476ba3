/* SPDX-License-Identifier: MIT */
/* The row of the poll driver; see conform.h. */
#include "conform/conform.h"
#include "io/poll/poll.h"

const struct conform_driver conform_driver = {.name = "poll", .create = sni_poll_create};
