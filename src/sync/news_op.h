/* SPDX-License-Identifier: MIT */
/* news_op.h - waiting for news (a broadcast, a watch) as a future. */
#ifndef SINEW_SYNC_NEWS_OP_H
#define SINEW_SYNC_NEWS_OP_H

#include "sync/source.h"

#include <sinew/chan.h>
#include <sinew/select.h>

/* Make `op` a future that attempts what `c`, a case of a kind that is_news, attempts.
 *
 * Returns  the future in `op`; its result is that of the case, or -EBADF (misuse) */
sn_future *sni_news_op(sn_news_op *op, const sn_case *c);

#endif
