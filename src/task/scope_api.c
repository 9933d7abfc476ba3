/* SPDX-License-Identifier: MIT */
/* scope_api.c - the public face of scopes that have no children: deadlines and shields around a
 * block, and time-outs around a function, which are nothing else. */
#include "task/scope.h"

#include "base/assert.h"

#include <sinew/cancel.h>
#include <sinew/errno.h>
#include <sinew/time.h>
#include <assert.h>

struct block {
    struct sni_scope scope;
    bool *expired; /* where to tell, or NULL */
    bool is_in;
};

static_assert(sizeof(struct block) <= sizeof(sn_scope), "sn_scope is too small");

sn_scope *sn_scope_enter_(sn_scope *memory, const sn_scope_options *opts)
{
    struct block *b = (struct block *)(void *)memory;
    b->scope.group = NULL;
    b->expired = opts->expired;
    enum sni_scope_kind kind = opts->is_shield_ ? SNI_SCOPE_SHIELD : SNI_SCOPE_OPEN;
    int rc = sni_scope_enter(&b->scope, kind, opts->until_);
    b->is_in = rc == 0;
    if (rc < 0)
        (void)sni_misuse(rc, "a deadline or shield around a block that is not in a fiber");
    return memory;
}

void sn_scope_leave_(sn_scope *memory)
{
    struct block *b = (struct block *)(void *)memory;
    if (b->is_in)
        sni_scope_leave(&b->scope);
    if (b->expired != NULL)
        *b->expired = b->is_in && b->scope.is_source && b->scope.why == -ETIMEDOUT;
}

const char *sn_cancel_reason(void)
{
    int why = sni_scope_why(sni_exec_current());
    if (why == 0)
        return NULL;
    const char *reason = sni_scope_reason();
    if (reason != NULL)
        return reason;
    return why == -ETIMEDOUT ? "a deadline has passed" : "cancelled";
}

sn_deadline sn_scope_deadline(void)
{
    return sn_deadline_at_(sni_scope_until_ns());
}

int sn_timeout(sn_task_fn *fn, void *arg, int64_t ns)
{
    const struct sni_exec *exec = sni_exec_current();
    if (exec == NULL)
        return -EPERM;
    if (exec->fiber == NULL)
        return sni_misuse(-EDEADLK, "a coroutine calls a function that may wait");
    if (fn == NULL)
        return -EINVAL;
    int rc = 0;
    bool is_late = false;
    SN_DEADLINE(sn_after(ns), .expired = &is_late) {
        rc = fn(arg);
    }
    return rc < 0 && is_late ? -ETIMEDOUT : rc;
}
