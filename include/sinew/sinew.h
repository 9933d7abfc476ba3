/* SPDX-License-Identifier: MIT */
/* sinew.h - the whole of Sinew. Programs without an operating system include level0.h. */
#ifndef SINEW_SINEW_H
#define SINEW_SINEW_H

#include <sinew/addr.h>
#include <sinew/await.h>
#include <sinew/cancel.h>
#include <sinew/chan.h>
#include <sinew/group.h>
#include <sinew/io.h>
#include <sinew/level0.h>
#include <sinew/local.h>
#include <sinew/net.h>
#include <sinew/observe.h>
#include <sinew/runtime.h>
#include <sinew/select.h>
#include <sinew/sync.h>
#include <sinew/task.h>
#include <sinew/time.h>

#endif
