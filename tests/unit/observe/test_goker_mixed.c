/* SPDX-License-Identifier: MIT */
/* Programs of the goker collection that hang between a lock and a channel (R160): who holds the
 * lock waits at the channel, and who would serve it there waits for the lock. */
#include "unit/observe/goker.h"

static int write_frame(UNUSED void *arg)
{
    lock(0);
    if (is_fixed)
        unlock(0);
    int rc = send(0); /* reset the idle timer */
    if (!is_fixed)
        unlock(0);
    return rc;
}

static int monitor_idle(UNUSED void *arg)
{
    reach(0);
    await(1);
    lock(0);
    unlock(0);
    return recv(0);
}

/* The monitor wants the lock before it receives, and gets it before or after the other: that one
 * comes first here. */
PROGRAM(kubernetes_6632_a_frame_is_sent_under_the_lock_that_the_monitor_wants, "write_frame",
        "monitor_idle")
{
    chan(0, 0);
    GO(monitor_idle);
    await(0);
    GO(write_frame);
    while (!is_fixed && sn_mutex_lock(&mu[0], SN_NOWAIT) == 0) {
        unlock(0);
        CHECK_EQ(sn_sleep(SN_US(50)), 0);
    }
    reach(1);
    return 0;
}

static int notify_handler(UNUSED void *arg)
{
    lock(0); /* the handler wants what its caller has */
    unlock(0);
    return recv(0);
}

PROGRAM(istio_16224_a_notification_is_sent_under_the_lock_of_its_handler, "notify_handler", "main")
{
    chan(0, is_fixed ? 1 : 0);
    lock(0);
    sn_task *t = sn_spawn(notify_handler, NULL, .name = "notify_handler");
    CHECK_EQ(send(0), 0);
    unlock(0);
    return sn_join(t, NULL);
}

static int health_monitor(UNUSED void *arg)
{
    await(0);
    lock(0);
    unlock(0);
    return recv(0) == -EPIPE ? 0 : -EINVAL;
}

PROGRAM(moby_28462_a_monitor_is_stopped_by_who_holds_its_lock, "health_monitor", "main")
{
    chan(0, 0);
    GO(health_monitor);
    lock(0);
    reach(0);
    int rc = is_fixed ? sn_chan_close(ch[0]) : send(0); /* to close waits for nobody */
    unlock(0);
    return rc;
}

static int distribute(UNUSED void *arg)
{
    lock(0);
    reach(0);
    int rc = is_fixed ? send_unless(0, 1) : send(0);
    unlock(0);
    return rc < 0 ? rc : 0;
}

static int stop_watching(UNUSED void *arg)
{
    await(0);
    if (is_fixed)
        CHECK_EQ(sn_chan_close(ch[1]), 0);
    lock(0);
    unlock(0);
    return 0;
}

PROGRAM(kubernetes_1321_an_event_is_distributed_to_a_watcher_that_stops, "distribute",
        "stop_watching")
{
    chan(0, 0);
    chan(1, 0);
    GO(distribute);
    GO(stop_watching);
    return 0;
}

static int keep_tokens(UNUSED void *arg)
{
    await(0);
    lock(0); /* the callback that deletes what is old */
    unlock(0);
    return recv(0);
}

PROGRAM(etcd_7492_a_token_is_added_under_the_lock_of_its_keeper, "keep_tokens", "main")
{
    chan(0, 0);
    GO(keep_tokens);
    lock(0);
    reach(0);
    if (is_fixed)
        unlock(0);
    int rc = send(0);
    if (!is_fixed)
        unlock(0);
    return rc;
}

static int broadcast_updates(UNUSED void *arg)
{
    await(0);
    lock(0);
    unlock(0);
    return sn_chan_close(ch[0]);
}

PROGRAM(etcd_6873_a_broadcast_is_stopped_by_who_holds_its_lock, "broadcast_updates", "main")
{
    chan(0, 0);
    GO(broadcast_updates);
    lock(0);
    reach(0);
    if (is_fixed)
        unlock(0);
    int rc = recv(0);
    if (!is_fixed)
        unlock(0);
    return rc == -EPIPE ? 0 : rc;
}

static int watch_addr_updates(UNUSED void *arg)
{
    lock(0);
    meet_here();
    int rc = is_fixed ? sn_chan_send(ch[0], &(int){1}, SN_NOWAIT) : send(0);
    unlock(0);
    return rc == -ETIMEDOUT ? 0 : rc;
}

static int tear_down(UNUSED void *arg)
{
    meet_here();
    lock(0);
    unlock(0);
    int value;
    int rc = sn_chan_recv(ch[0], &value, SN_NOWAIT);
    return rc == -ETIMEDOUT ? 0 : rc;
}

PROGRAM(grpc_1353_addresses_are_notified_under_the_lock_of_the_balancer, "watch_addr_updates",
        "tear_down")
{
    chan(0, 0);
    GO(watch_addr_updates);
    GO(tear_down);
    return 0;
}

static int pop_event(UNUSED void *arg)
{
    lock(0);
    while (!flag)
        CHECK_EQ(sn_cond_wait(&cond, &mu[0], SN_FOREVER), 0);
    unlock(0);
    return 0;
}

static int stop_queue(UNUSED void *arg)
{
    int rc = recv(0); /* the stop */
    if (is_fixed) {
        lock(0);
        flag = true;
        CHECK_EQ(sn_cond_broadcast(&cond), 0);
        unlock(0);
    }
    return rc == -EPIPE ? 0 : rc;
}

PROGRAM(kubernetes_11298_a_stop_does_not_wake_who_waits_at_the_condition, "pop_event")
{
    chan(0, 0);
    GO(pop_event);
    GO(stop_queue);
    return sn_chan_close(ch[0]);
}
