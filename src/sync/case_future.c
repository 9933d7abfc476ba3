/* SPDX-License-Identifier: MIT */
/* case_future.c - a future as a case of a select, and waiting for one alone.
 *
 * To look is to poll. What the future's waker claims, and why a future that loses is as it was, is
 * told in select.c and nudge.c. */
#include "future/future_priv.h"
#include "wait/case.h"

#include <sinew/await.h>
#include <sinew/errno.h>
#include <sinew/select.h>

static bool look(struct sni_case *c, const sn_waker *waker, int *result)
{
    sn_cx cx = {waker};
    sn_poll p = sn_future_poll(c->at, &cx);
    if (sn_poll_pending(p))
        return false;
    *result = p.value;
    return true;
}

/* It lies on the stack of the fiber, most likely, and that goes away. Nobody else will drop it. */
static void end(struct sni_case *c, bool abandoned)
{
    sn_future *fut = c->at;
    if (abandoned && fut->state_ <= SNI_FUTURE_SUSPENDED)
        (void)sn_future_drop(fut);
}

static const struct sni_outside outside = {.look = look, .end = end, .is_future = true};
static const struct sni_case_kind kind = {.outside = &outside, .name = "future"};

sn_case sn_case_future(sn_future *fut)
{
    return (sn_case){.kind_ = &kind, .at_ = fut};
}

int sn_await(sn_future *fut, sn_deadline until)
{
    if (fut == NULL)
        return -EINVAL;
    sn_case c = sn_case_future(fut);
    int rc = sn_select(&c, 1, 0, until);
    return rc < 0 ? rc : c.result;
}
