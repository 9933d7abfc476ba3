/* SPDX-License-Identifier: MIT */
/* Programs of the goker collection that hang at channels (R160): nobody receives any more, nobody
 * sends, nobody closes, nobody cancels. "Later" is an event, so that nothing depends on speed. */
#include "unit/observe/goker.h"

/* --- nobody receives any more --- */

static int finish_request(UNUSED void *arg)
{
    await(0); /* it takes longer than anybody has time */
    return send(0);
}

PROGRAM(kubernetes_5316_the_result_comes_after_the_timeout, "finish_request")
{
    int value;
    chan(0, is_fixed ? 1 : 0);
    GO(finish_request);
    CHECK_EQ(sn_chan_recv(ch[0], &value, SN_NOWAIT), -ETIMEDOUT);
    reach(0);
    return 0;
}

static int promise(UNUSED void *arg)
{
    return send(0);
}

PROGRAM(moby_4395_the_error_of_a_promise_is_received_by_nobody, "promise")
{
    chan(0, is_fixed ? 1 : 0);
    GO(promise);
    return 0;
}

static int probe(UNUSED void *arg)
{
    await(0);
    return send(0);
}

static int monitor(UNUSED void *arg)
{
    int winner = recv_either(0, 1);
    CHECK_EQ(winner, 1); /* told to stop, so the probe's result is not awaited */
    reach(0);
    return 0;
}

PROGRAM(moby_33781_a_probe_reports_to_a_monitor_that_stopped, "probe")
{
    chan(0, is_fixed ? 1 : 0);
    chan(1, 0);
    GO(monitor);
    GO(probe);
    return sn_chan_close(ch[1]);
}

static int bench_loop(UNUSED void *arg)
{
    await(0);
    if (is_fixed)
        return send_unless(0, 1) >= 0 ? 0 : -EINVAL;
    return send(0);
}

PROGRAM(grpc_660_a_benchmark_counts_for_who_is_gone, "bench_loop")
{
    chan(0, 0);
    chan(1, 0);
    GO(bench_loop);
    CHECK_EQ(sn_chan_close(ch[1]), 0);
    reach(0);
    return 0;
}

static int write_progress(UNUSED void *arg)
{
    for (int i = 0; i < 3; i++)
        if (send(0) < 0)
            break;
    return sn_chan_close(ch[0]);
}

PROGRAM(moby_21233_progress_is_sent_after_the_reader_has_left, "write_progress")
{
    chan(0, 0);
    GO(write_progress);
    CHECK_EQ(recv(0), 0);
    while (is_fixed && recv(0) == 0)
        continue; /* to the end */
    return 0;
}

PROGRAM(cockroach_24808_a_start_sends_twice_before_anybody_receives, "main")
{
    chan(0, is_fixed ? 2 : 1);
    CHECK_EQ(send(0), 0);
    return send(0);
}

static int run_producer(UNUSED void *arg)
{
    while (send(0) == 0)
        continue;
    return 0;
}

PROGRAM(cockroach_35931_a_consumer_ends_and_its_producer_is_not_told, "run_producer")
{
    chan(0, 1);
    GO(run_producer);
    CHECK_EQ(recv(0), 0);
    return is_fixed ? sn_chan_close(ch[0]) : 0;
}

static int ask_status(UNUSED void *arg)
{
    await(0);
    return is_fixed ? (send_unless(0, 1) >= 0 ? 0 : -EINVAL) : send(0);
}

static int run_node(UNUSED void *arg)
{
    int winner = recv_either(0, 2);
    CHECK_EQ(winner, 1);
    CHECK_EQ(sn_chan_close(ch[1]), 0); /* done */
    reach(0);
    return 0;
}

PROGRAM(etcd_6857_a_status_is_asked_of_a_node_that_stopped, "ask_status")
{
    chan(0, 0);
    chan(1, 0);
    chan(2, 0);
    GO(run_node);
    GO(ask_status);
    return sn_chan_close(ch[2]);
}

static int watch_etcd(UNUSED void *arg)
{
    if (is_fixed)
        return send_unless(0, 1) >= 0 ? 0 : -EINVAL;
    return send(0);
}

PROGRAM(kubernetes_25331_an_error_is_sent_where_the_results_are_full, "watch_etcd")
{
    chan(0, 1);
    chan(1, 0);
    CHECK_EQ(send(0), 0); /* full, and its reader has stopped */
    GO(watch_etcd);
    return sn_chan_close(ch[1]);
}

static int dispatch_events(UNUSED void *arg)
{
    for (int i = 0; i < 3; i++)
        if (send(0) < 0)
            return 0;
    return 0;
}

PROGRAM(kubernetes_38669_a_watcher_with_a_full_buffer_stops_everybody, "dispatch_events", "main")
{
    chan(0, is_fixed ? 3 : 2);
    sn_task *t = sn_spawn(dispatch_events, NULL, .name = "dispatch_events");
    return sn_join(t, NULL); /* and reads what there is afterwards */
}

/* --- nobody sends --- */

static int run_pipe(UNUSED void *arg)
{
    bool failed = true;
    if (failed && !is_fixed)
        return 0;
    return send(0);
}

PROGRAM(moby_33293_an_error_path_forgets_to_send, "main")
{
    chan(0, 1);
    GO(run_pipe);
    return recv(0);
}

static int collect_checks(UNUSED void *arg)
{
    bool is_consistent = false;
    if (is_consistent)
        return send(0);
    return is_fixed ? sn_chan_close(ch[0]) : 0;
}

PROGRAM(cockroach_25456_a_check_that_is_not_needed_is_awaited, "main")
{
    chan(0, 0);
    GO(collect_checks);
    int rc = recv(0);
    return rc == -EPIPE ? 0 : rc;
}

static int read_stream(UNUSED void *arg)
{
    int rc = recv(0);
    return rc == 0 || rc == -EPIPE ? 0 : rc;
}

PROGRAM(grpc_1275_a_stream_is_read_whose_transport_is_closed, "read_stream")
{
    chan(0, 1);
    GO(read_stream);
    if (is_fixed)
        CHECK_EQ(send(0), 0); /* the error of the transport */
    return 0;
}

/* --- nobody closes --- */

static int poll_condition(UNUSED void *arg)
{
    while (recv(0) == 0)
        continue;
    return 0;
}

PROGRAM(kubernetes_70277_a_poller_is_left_whose_channel_is_never_closed, "poll_condition")
{
    chan(0, 0);
    GO(poll_condition);
    CHECK_EQ(send(0), 0);
    return is_fixed ? sn_chan_close(ch[0]) : 0;
}

static int watch_addresses(UNUSED void *arg)
{
    while (recv(0) == 0)
        continue;
    return send(1);
}

PROGRAM(grpc_1424_an_address_list_without_end_is_waited_out, "watch_addresses", "main")
{
    chan(0, 1);
    chan(1, 1);
    GO(watch_addresses);
    CHECK_EQ(send(0), 0);
    if (is_fixed)
        CHECK_EQ(sn_chan_release(ch[0], SN_CHAN_SENDER), 0); /* the last one closes */
    int rc = recv(1);
    if (is_fixed)
        CHECK_EQ(sn_chan_acquire(ch[0], SN_CHAN_SENDER), -EPIPE);
    if (is_fixed) {
        CHECK_EQ(sn_chan_release(ch[0], SN_CHAN_RECEIVER), 0);
        ch[0] = NULL;
    }
    return rc;
}

/* --- nobody cancels --- */

static int await_done(UNUSED void *arg)
{
    int rc = recv(0); /* the context */
    return rc == -EPIPE ? 0 : rc;
}

PROGRAM(cockroach_13197_a_transaction_is_neither_committed_nor_rolled_back, "await_done")
{
    chan(0, 0);
    GO(await_done);
    return is_fixed ? sn_chan_close(ch[0]) : 0;
}

static int reset_transport(UNUSED void *arg)
{
    int winner = recv_either(0, 1);
    return winner >= 0 ? 0 : winner;
}

PROGRAM(grpc_862_a_dial_that_failed_does_not_cancel_its_context, "reset_transport")
{
    chan(0, 0);
    chan(1, 0);
    GO(reset_transport);
    bool failed = true;
    if (failed && !is_fixed)
        return 0;
    return sn_chan_close(ch[0]);
}

static int begin_commands(UNUSED void *arg)
{
    while (send_unless(0, 1) == 0)
        continue;
    return 0;
}

PROGRAM(cockroach_10790_the_wrong_context_is_watched, "begin_commands")
{
    chan(0, 0);
    chan(1, 0);
    chan(2, 0);
    GO(begin_commands);
    CHECK_EQ(recv(0), 0);
    return sn_chan_close(ch[is_fixed ? 1 : 2]);
}

/* --- each waits for the other --- */

static int raft_to_store(UNUSED void *arg)
{
    if (is_fixed)
        CHECK_EQ(recv(1), 0);
    CHECK_EQ(send(0), 0);
    return is_fixed ? 0 : recv(1);
}

static int store_to_raft(UNUSED void *arg)
{
    CHECK_EQ(send(1), 0);
    return recv(0);
}

PROGRAM(cockroach_2448_two_loops_send_to_each_other_first, "raft_to_store", "store_to_raft")
{
    chan(0, 0);
    chan(1, 0);
    GO(raft_to_store);
    GO(store_to_raft);
    return 0;
}

static int close_connection(UNUSED void *arg)
{
    return recv(0) == -EPIPE ? 0 : -EINVAL; /* until the dispatcher has ended */
}

static int dispatcher(UNUSED void *arg)
{
    if (is_fixed)
        GO(close_connection);
    else
        CHECK_EQ(close_connection(NULL), 0); /* that is itself */
    return sn_chan_close(ch[0]);
}

PROGRAM(syncthing_5795_a_loop_waits_for_its_own_end, "dispatcher")
{
    chan(0, 0);
    GO(dispatcher);
    return 0;
}
