/* SPDX-License-Identifier: MIT */
/* The row of the epoll driver; see conform.h. */
#include "conform/conform.h"
#include "io/epoll/epoll.h"

const struct conform_driver conform_driver = {.name = "epoll", .create = sni_epoll_create};
