/* SPDX-License-Identifier: MIT */
/* test_chan.c - src/sync/chan_core.c and select.c, all interleavings of a few calls (R91, R92):
 * what was sent is received once or still its sender's, whoever waits is served or told, whatever
 * the deadlines do; what was freed is not touched; and two selects that meet from both sides
 * neither deadlock nor both lose.
 *
 * A wait that is never ended shows as a deadlock. A deadline comes when the search likes. */
#include "model/model.h"

#include "harness.h"
#include "sync/chan.h"

#include <sinew/chan.h>
#include <sinew/errno.h>
#include <sinew/select.h>

enum { NOT_YET = 7777, CHANNELS = 2 };

static sn_chan *ch[CHANNELS];
static int results[MODEL_THREADS_MAX][2]; /* what each thread's calls returned */
static int values[MODEL_THREADS_MAX][2];  /* what it received                  */

#define SOON sn_deadline_at_(1) /* a deadline; the search decides when it has come */

/* The last one first: then each has the same address in all executions, and locks their order. */
static void destroy_all(void)
{
    for (int i = CHANNELS - 1; i >= 0; i--) {
        (void)sn_chan_destroy(ch[i]);
        ch[i] = NULL;
    }
}

static void reset(size_t capacity)
{
    destroy_all(); /* of the last execution; all its threads have ended */
    for (int i = 0; i < CHANNELS; i++) {
        MODEL_CHECK(sn_chan_create(&ch[i], sizeof(int), capacity, NULL) == 0);
    }
    for (int i = 0; i < MODEL_THREADS_MAX; i++)
        for (int k = 0; k < 2; k++) {
            results[i][k] = NOT_YET;
            values[i][k] = NOT_YET;
        }
}

static void reset_rendezvous(void)
{
    reset(0);
}

static void reset_one(void)
{
    reset(1);
}

static void send_nth(int nth, sn_chan *to, sn_deadline until)
{
    unsigned self = model_self();
    int v = (int)self * 10 + nth;
    results[self][nth] = sn_chan_send(to, &v, until);
    v = -1; /* the frame is used for something else */
}

static void recv_nth(int nth, sn_chan *from, sn_deadline until)
{
    unsigned self = model_self();
    int v = -1;
    results[self][nth] = sn_chan_recv(from, &v, until);
    if (results[self][nth] == 0)
        values[self][nth] = v;
}

/* How often `v` was received. */
static int times(int v)
{
    int n = 0;
    for (int i = 0; i < MODEL_THREADS_MAX; i++)
        for (int k = 0; k < 2; k++)
            n += values[i][k] == v;
    return n;
}

/* Each send of the thread that was said to have worked arrived once, the others not at all. */
static void check_sends(int thread, int count, int still_inside)
{
    for (int k = 0; k < count; k++) {
        int rc = results[thread][k];
        MODEL_CHECK(rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE);
        MODEL_CHECK(times(thread * 10 + k) == (rc == 0) ||
                    (rc == 0 && still_inside > 0 && times(thread * 10 + k) == 0));
    }
}

static int sends_that_worked(int thread, int count)
{
    int n = 0;
    for (int k = 0; k < count; k++)
        n += results[thread][k] == 0;
    return n;
}

static int received_by_all(void)
{
    int n = 0;
    for (int i = 0; i < MODEL_THREADS_MAX; i++)
        for (int k = 0; k < 2; k++)
            n += values[i][k] != NOT_YET;
    return n;
}

static void check_nothing_lost(int senders, int count)
{
    int sent = 0, inside = (int)sn_chan_len(ch[0]);
    for (int i = 0; i < senders; i++) {
        check_sends(i, count, inside);
        sent += sends_that_worked(i, count);
    }
    MODEL_CHECK(sent == received_by_all() + inside);
}

/* ---- two that are patient ------------------------------------------------------------------- */

static void send_two(void)
{
    send_nth(0, ch[0], SN_FOREVER);
    send_nth(1, ch[0], SN_FOREVER);
}

static void recv_two(void)
{
    recv_nth(0, ch[0], SN_FOREVER);
    recv_nth(1, ch[0], SN_FOREVER);
}

static void check_in_order(void)
{
    MODEL_CHECK(results[0][0] == 0 && results[0][1] == 0);
    MODEL_CHECK(values[1][0] == 0 && values[1][1] == 1);
}

static const struct model two_in_order = {reset_one, {send_two, recv_two}, check_in_order};
static const struct model two_meetings = {reset_rendezvous, {send_two, recv_two}, check_in_order};

TEST(chan_values_pass_in_order_and_nobody_sleeps_for_ever, .limit_s = 60)
{
    model_holds(&two_in_order, &(struct model_options){.preemptions = 3, .random = 5000});
    model_holds(&two_meetings, &(struct model_options){.preemptions = 3, .random = 5000});
    model_holds(&two_in_order, &(struct model_options){.store_buffers = true});
    model_holds(&two_meetings, &(struct model_options){.store_buffers = true});
    destroy_all();
}

/* ---- deadlines and a close ------------------------------------------------------------------ */

static void send_soon(void)
{
    send_nth(0, ch[0], SOON);
}

static void recv_soon(void)
{
    recv_nth(0, ch[0], SOON);
}

static void close_first(void)
{
    (void)sn_chan_close(ch[0]);
}

static void check_two_senders(void)
{
    check_nothing_lost(2, 1);
}

static void check_one_sender(void)
{
    check_nothing_lost(1, 1);
}

static const struct model late_meeting = {
    reset_rendezvous, {send_soon, recv_soon}, check_one_sender};
static const struct model late_senders = {
    reset_rendezvous, {send_soon, send_soon, recv_soon}, check_two_senders};
static const struct model late_in_one = {
    reset_one, {send_soon, send_soon, recv_soon}, check_two_senders};

TEST(chan_a_deadline_that_comes_too_late_loses_nothing, .limit_s = 60)
{
    model_holds(&late_meeting, &(struct model_options){.preemptions = 4, .random = 5000});
    model_holds(&late_senders, &(struct model_options){.random = 20000});
    model_holds(&late_in_one, &(struct model_options){.random = 20000});
    model_holds(&late_meeting, &(struct model_options){.store_buffers = true});
    destroy_all();
}

static void send_patiently(void)
{
    send_nth(0, ch[0], SN_FOREVER);
}

static void recv_patiently(void)
{
    recv_nth(0, ch[0], SN_FOREVER);
}

static void check_two_sends(void)
{
    check_nothing_lost(1, 2);
}

static const struct model closing = {
    reset_rendezvous, {send_patiently, recv_patiently, close_first}, check_one_sender};
static const struct model closing_one = {
    reset_one, {send_two, recv_patiently, close_first}, check_two_sends};

static void check_closed(void)
{
    check_nothing_lost(1, 1);
    MODEL_CHECK((results[0][0] == 0) == (results[1][0] == 0));
    MODEL_CHECK(results[1][0] == 0 || results[1][0] == -EPIPE);
}

TEST(chan_a_close_meets_those_who_wait, .limit_s = 60)
{
    struct model met = closing;
    met.check = check_closed;
    model_holds(&met, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&met, &(struct model_options){.store_buffers = true});
    model_holds(&closing_one, &(struct model_options){.random = 20000});
    destroy_all();
}

/* ---- the last reference --------------------------------------------------------------------- */

static void reset_held_by_three(void)
{
    reset(0);
    MODEL_CHECK(sn_chan_acquire(ch[0], SN_CHAN_RECEIVER) == 0);
}

/* Afterwards the memory is another one's, who locks it for good: who comes late waits for ever. */
static void release(sn_chan_side side)
{
    struct sni_chan *c = sni_chan_find(ch[0]);
    MODEL_CHECK(c != NULL);
    MODEL_CHECK(sn_chan_release(ch[0], side) == 0);
    if (c->magic != SNI_CHAN_MAGIC)
        (void)sni_brief_try(&c->source.lock);
}

static void recv_and_release(void)
{
    recv_nth(0, ch[0], SN_FOREVER);
    release(SN_CHAN_RECEIVER);
}

static void recv_soon_and_release(void)
{
    recv_nth(0, ch[0], SOON);
    release(SN_CHAN_RECEIVER);
}

static void release_sender(void)
{
    release(SN_CHAN_SENDER);
}

static void check_freed(void)
{
    MODEL_CHECK(results[1][0] == -EPIPE);
    MODEL_CHECK(results[2][0] == -EPIPE || results[2][0] == -ETIMEDOUT);
    MODEL_CHECK(sni_chan_find(ch[0]) == NULL);
    ch[0] = NULL; /* there is nothing to destroy */
}

static const struct model last_references = {
    reset_held_by_three, {release_sender, recv_and_release, recv_soon_and_release}, check_freed};

TEST(chan_who_gives_up_its_reference_does_not_touch_what_others_have_freed, .limit_s = 120)
{
    model_holds(&last_references, &(struct model_options){.preemptions = 2, .random = 20000});
    model_holds(&last_references,
                &(struct model_options){.preemptions = 1, .store_buffers = true, .random = 2000});
    destroy_all();
}

/* ---- select --------------------------------------------------------------------------------- */

static void send_to_first(void)
{
    send_nth(0, ch[0], SOON);
}

static void send_to_second_soon(void)
{
    send_nth(0, ch[1], SOON);
}

/* Receive from one of two channels, into one place. */
static void select_recv_or_give_up(void)
{
    unsigned self = model_self();
    int v = -1;
    sn_case cases[2] = {sn_case_recv(ch[0], &v), sn_case_recv(ch[1], &v)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SOON);
    results[self][0] = i;
    if (i >= 0)
        values[self][0] = v;
    else
        MODEL_CHECK(i == -ETIMEDOUT);
}

static void check_at_most_one_won(void)
{
    for (int i = 1; i <= 2; i++)
        MODEL_CHECK(times(i * 10) == (results[i][0] == 0));
    MODEL_CHECK(received_by_all() == (results[0][0] >= 0));
    if (results[0][0] >= 0)
        MODEL_CHECK(values[0][0] == (results[0][0] + 1) * 10);
}

static const struct model impatient_select = {
    reset_rendezvous,
    {select_recv_or_give_up, send_to_first, send_to_second_soon},
    check_at_most_one_won};

TEST(select_one_case_takes_place_and_the_loser_keeps_its_value, .limit_s = 120)
{
    model_holds(&impatient_select, &(struct model_options){.preemptions = 2, .random = 50000});
}

/* Two selects on one rendezvous, each on both sides. */
static void select_both_sides(void)
{
    unsigned self = model_self();
    int mine = (int)self * 10, got = -1;
    sn_case cases[2] = {sn_case_send(ch[0], &mine), sn_case_recv(ch[0], &got)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER);
    MODEL_CHECK(i >= 0 && cases[i].result == 0);
    results[self][0] = i;
    if (i == 1)
        values[self][0] = got;
}

static void check_they_met(void)
{
    int sender = results[0][0] == 0 ? 0 : 1;
    MODEL_CHECK(results[sender][0] == 0 && results[1 - sender][0] == 1);
    MODEL_CHECK(values[1 - sender][0] == sender * 10);
}

static const struct model both_sides = {
    reset_rendezvous, {select_both_sides, select_both_sides}, check_they_met};

/* Crosswise over two channels: each sends where the other one receives. */
static void select_crosswise(sn_chan *to, sn_chan *from)
{
    unsigned self = model_self();
    int mine = (int)self * 10, got = -1;
    sn_case cases[2] = {sn_case_send(to, &mine), sn_case_recv(from, &got)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SN_FOREVER);
    MODEL_CHECK(i >= 0 && cases[i].result == 0);
    results[self][0] = i;
    if (i == 1)
        values[self][0] = got;
}

static void select_forwards(void)
{
    select_crosswise(ch[0], ch[1]);
}

static void select_backwards(void)
{
    select_crosswise(ch[1], ch[0]);
}

static const struct model crosswise = {
    reset_rendezvous, {select_forwards, select_backwards}, check_they_met};

/* And somebody who comes between. */
static void check_two_of_three(void)
{
    int sent = (results[0][0] == 0) + (results[1][0] == 0);
    MODEL_CHECK(sent == received_by_all());
    for (int i = 0; i < 2; i++)
        MODEL_CHECK(times(i * 10) == (results[i][0] == 0));
    MODEL_CHECK(results[2][0] == -ETIMEDOUT || sent >= 1);
}

static void select_both_sides_soon(void)
{
    unsigned self = model_self();
    int mine = (int)self * 10, got = -1;
    sn_case cases[2] = {sn_case_send(ch[0], &mine), sn_case_recv(ch[0], &got)};
    int i = sn_select(cases, 2, SN_SELECT_ORDERED, SOON);
    results[self][0] = i;
    if (i == 1)
        values[self][0] = got;
}

static const struct model three_of_them = {
    reset_rendezvous,
    {select_both_sides_soon, select_both_sides_soon, recv_soon},
    check_two_of_three};

TEST(select_two_that_meet_from_both_sides_both_win, .limit_s = 120)
{
    model_holds(&both_sides, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&crosswise, &(struct model_options){.preemptions = 3, .random = 20000});
    model_holds(&crosswise, &(struct model_options){.store_buffers = true});
}

TEST(select_a_third_one_comes_between_and_nothing_is_lost, .limit_s = 120)
{
    model_holds(&three_of_them, &(struct model_options){.preemptions = 2, .random = 50000});
}

/* ---- planted --------------------------------------------------------------------------------
 * That the lock of a channel excludes, and what it orders, is shown for the clockwork, which has
 * the same (test_sleep.c): here two inside at once only make lists that never end. */

TEST(chan_a_claim_without_compare_and_swap_is_found, .limit_s = 60, .leaks_memory = true)
{
    model_finds(
        &late_meeting,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_take_"}, "");
}

TEST(select_a_claim_without_compare_and_swap_is_found, .limit_s = 60, .leaks_memory = true)
{
    model_finds(
        &impatient_select,
        &(struct model_options){.plant = MODEL_PLANT_SPLIT_RMW, .function = "sni_wait_take_"}, "");
}
