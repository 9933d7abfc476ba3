/* SPDX-License-Identifier: MIT */
#ifndef SINEW_NET_H
#define SINEW_NET_H

#include <sys/socket.h>
#include <errno.h>

#endif
