/* SPDX-License-Identifier: MIT */
/* Other ways to spawn, to wait, and other handles. */
#include <sinew/sinew.h>

int work(void *arg);

typedef struct waiter {
    sn_coro coro;
    sn_task *other;
    sn_join_state join;
} waiter;

SN_CORO(waiter, self)
{
    int rc;
    SN_BEGIN(self);
    SN_AWAIT_INTO(rc, sn_join_op(&self->join, self->other, NULL));
    SN_RETURN(rc);
    SN_END();
}

int a_coroutine_joins_the_first(void)
{
    waiter frame = {.other = sn_spawn(work, NULL)};
    return sn_join(sn_spawn_coro(waiter, &frame), NULL);
}

int a_future(sn_deadline at)
{
    sn_sleep_state nap;
    sn_task *t = sn_spawn_future(sn_sleep_op(&nap, at), &nap);
    return sn_join(t, NULL);
}

int selected_then_joined(sn_chan *ch)
{
    int value;
    sn_task *t = sn_spawn(work, NULL);
    sn_case cases[] = {sn_case_join(t), sn_case_recv(ch, &value)};
    int rc = sn_select(cases, 2, 0, SN_FOREVER);
    return rc == 0 ? sn_join(t, NULL) : sn_cancel(t, NULL);
}

int with_how_it_ended(void)
{
    sn_exit how = {.kind = SN_EXIT_RETURNED}; /* gcc does not know that a join fills it in */
    int rc = sn_join(sn_spawn(work, NULL), &how);
    return how.kind == SN_EXIT_PANICKED ? -1 : rc;
}

int from_outside(void)
{
    sn_runtime *rt;
    int rc = sn_runtime_create(&rt, NULL);
    if (rc < 0)
        return rc;
    sn_task *t = sn_runtime_spawn(rt, work, NULL);
    if (t != NULL)
        rc = sn_join(t, NULL);
    sn_runtime_shutdown(rt, SN_FOREVER);
    sn_runtime_destroy(rt);
    return rc;
}

static int serve(void *arg)
{
    sn_conn *c = arg;
    char byte;
    while (sn_read(c, &byte, 1, SN_FOREVER) > 0)
        if (sn_write_all(c, &byte, 1, NULL, SN_FOREVER) < 0)
            break;
    return sn_close(c);
}

int served(const char *addr)
{
    sn_listener *l;
    sn_conn *c;
    int rc = sn_listen(&l, addr, NULL);
    if (rc < 0)
        return rc;
    while ((rc = sn_accept(l, &c, NULL, SN_FOREVER)) == 0)
        if (sn_spawn_detached(serve, c) < 0)
            sn_close(c);
    sn_listener_close(l);
    return rc;
}

int reconnected(const char *addr, int tries)
{
    sn_conn *c = NULL;
    int rc = -1;
    for (int i = 0; i < tries && rc < 0; i++) {
        rc = sn_connect(&c, addr, SN_FOREVER);
        if (rc == 0 && (rc = sn_write_all(c, "?", 1, NULL, SN_FOREVER)) < 0)
            sn_close(c);
    }
    return rc < 0 ? rc : sn_close(c);
}

int shared_channel(void)
{
    sn_chan *ch;
    int rc = sn_chan_create(&ch, sizeof(int), 1, NULL);
    if (rc < 0)
        return rc;
    if (sn_chan_acquire(ch, SN_CHAN_BOTH) == 0) {
        sn_chan_destroy(ch); /* the creator's reference: ours is still good */
        rc = sn_chan_send(ch, &rc, SN_NOWAIT);
        sn_chan_release(ch, SN_CHAN_SENDER);
        sn_chan_release(ch, SN_CHAN_RECEIVER);
    }
    return rc;
}
