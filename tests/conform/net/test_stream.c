/* SPDX-License-Identifier: MIT */
/* Reading and writing connections (R82): lengths, ends, resets, deadlines, pieces. */
#include "suite.h"

#include <stdlib.h>

static void any_pair(sn_conn *ends[2], bool tcp)
{
    if (tcp)
        tcp_pair(ends);
    else
        CHECK_EQ(sn_conn_pair(ends), 0);
}

/* Run `body` over TCP and over a Unix pair. */
static void over_both(void (*body)(sn_conn *ends[2]))
{
    for (int tcp = 0; tcp < 2; tcp++) {
        sn_conn *ends[2];
        any_pair(ends, tcp != 0);
        body(ends);
    }
}

/* ---- bytes ------------------------------------------------------------------------------- */

static void bytes_come(sn_conn *ends[2])
{
    char buf[16];
    CHECK_EQ(x_write(ends[0], "a", 1, SN_FOREVER), 1);
    CHECK_EQ(x_read(ends[1], buf, sizeof(buf), SN_FOREVER), 1);
    CHECK_EQ(buf[0], 'a');
    CHECK_EQ(x_write(ends[1], "hello", 5, SN_FOREVER), 5);
    CHECK_EQ(x_read(ends[0], buf, 2, SN_FOREVER), 2);
    CHECK_EQ(x_read(ends[0], buf + 2, 14, SN_FOREVER), 3);
    CHECK_MEM_EQ(buf, "hello", 5);
    close_pair(ends);
}

NET_TEST(bytes_come_as_they_went)
{
    over_both(bytes_come);
}

static void nothing_moves(sn_conn *ends[2])
{
    char byte;
    size_t done = 7;
    sn_iov none[2] = {{NULL, 0}, {&byte, 0}};
    CHECK_EQ(x_read(ends[0], &byte, 0, SN_FOREVER), 0);
    CHECK_EQ(x_read(ends[0], NULL, 0, SN_FOREVER), 0);
    CHECK_EQ(x_write(ends[0], NULL, 0, SN_FOREVER), 0);
    CHECK_EQ(sn_read_exact(ends[0], NULL, 0, &done, SN_FOREVER), 0);
    CHECK_EQ(done, 0);
    done = 7;
    CHECK_EQ(sn_write_all(ends[0], NULL, 0, &done, SN_FOREVER), 0);
    CHECK_EQ(done, 0);
    CHECK_EQ(sn_readv(ends[0], NULL, 0, SN_FOREVER), 0);
    CHECK_EQ(sn_readv(ends[0], none, 2, SN_FOREVER), 0);
    CHECK_EQ(sn_writev(ends[0], none, 2, SN_FOREVER), 0);
    close_pair(ends);
}

NET_TEST(no_bytes_are_moved_at_once)
{
    over_both(nothing_moves);
}

static void nonsense(sn_conn *ends[2])
{
    sn_iov iov = {NULL, 0};
    size_t done = 7;
    CHECK_EQ(x_read(ends[0], NULL, 1, SN_NOWAIT), -EINVAL);
    CHECK_EQ(x_write(ends[0], NULL, 1, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_read_exact(ends[0], NULL, 1, &done, SN_NOWAIT), -EINVAL);
    CHECK_EQ(done, 0);
    CHECK_EQ(sn_write_all(ends[0], NULL, 1, NULL, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_readv(ends[0], NULL, 1, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_readv(ends[0], &iov, -1, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_writev(ends[0], &iov, SN_IOV_MAX + 1, SN_NOWAIT), -EINVAL);
    CHECK_EQ(sn_shutdown(ends[0], (sn_shut)3), -EINVAL);
    CHECK_EQ(x_conn_wait(ends[0], 0, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_conn_wait(ends[0], SN_URGENT, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_conn_wait(ends[0], 64, SN_FOREVER), -EINVAL);
    close_pair(ends);
}

NET_TEST(what_makes_no_sense_is_einval)
{
    over_both(nonsense);
    CHECK_EQ(sn_conn_pair(NULL), -EINVAL);
    CHECK_EQ(sn_connect(NULL, "127.0.0.1:1", SN_NOWAIT), -EINVAL);
}

/* ---- a lot of bytes ------------------------------------------------------------------------ */

enum { MUCH = 10 << 20 };

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 31 + (i >> 9));
}

static int write_much(void *arg)
{
    sn_conn *conn = arg;
    unsigned char *data = malloc(MUCH);
    CHECK(data != NULL);
    for (size_t i = 0; i < MUCH; i++)
        data[i] = byte_at(i);
    size_t at = 0;
    while (at < MUCH / 2) { /* counts may come out short */
        ptrdiff_t n = x_write(conn, data + at, MUCH / 2 - at, SN_FOREVER);
        CHECK_GT(n, 0);
        at += (size_t)n;
    }
    size_t done;
    CHECK_EQ(sn_write_all(conn, data + at, MUCH - at, &done, SN_FOREVER), 0);
    CHECK_EQ(done, MUCH - at);
    free(data);
    return 0;
}

static void much_comes(sn_conn *ends[2])
{
    struct helper writer;
    unsigned char *data = malloc(MUCH);
    CHECK(data != NULL);
    help(&writer, write_much, ends[0]);
    size_t done;
    CHECK_EQ(sn_read_exact(ends[1], data, MUCH / 2, &done, SN_FOREVER), 0);
    CHECK_EQ(done, MUCH / 2);
    while (done < MUCH) {
        ptrdiff_t n = x_read(ends[1], data + done, MUCH - done, SN_FOREVER);
        CHECK_GT(n, 0);
        done += (size_t)n;
    }
    for (size_t i = 0; i < MUCH; i++)
        if (data[i] != byte_at(i))
            FAIL("byte %zu is not as it went", i);
    CHECK_EQ(helped(&writer), 0);
    free(data);
    close_pair(ends);
}

NET_TEST(ten_megabytes_come_as_they_went)
{
    over_both(much_comes);
}

static int echo(void *arg)
{
    sn_conn *conn = arg;
    char buf[64];
    for (;;) {
        ptrdiff_t n = x_read(conn, buf, sizeof(buf), SN_FOREVER);
        if (n <= 0)
            return (int)n;
        CHECK_EQ(sn_write_all(conn, buf, (size_t)n, NULL, SN_FOREVER), 0);
    }
}

static void questions_are_answered(sn_conn *ends[2])
{
    struct helper h;
    help(&h, echo, ends[1]);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t back = 0;
        CHECK_EQ(x_write(ends[0], &i, sizeof(i), SN_FOREVER), sizeof(i));
        CHECK_EQ(sn_read_exact(ends[0], &back, sizeof(back), NULL, SN_FOREVER), 0);
        CHECK_EQ(back, i);
    }
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    CHECK_EQ(helped(&h), 0);
    close_pair(ends);
}

NET_TEST(three_hundred_questions_are_answered)
{
    over_both(questions_are_answered);
}

/* ---- pieces -------------------------------------------------------------------------------- */

static void pieces_come(sn_conn *ends[2])
{
    char a[3] = "abc", b[4] = "defg", c[8] = {0}, d[8] = {0};
    const sn_iov out[3] = {{a, 3}, {NULL, 0}, {b, 4}};
    const sn_iov in[2] = {{c, 2}, {d, 8}};
    CHECK_EQ(sn_writev(ends[0], out, 3, SN_FOREVER), 7);
    CHECK_EQ(sn_readv(ends[1], in, 2, SN_FOREVER), 7);
    CHECK_STR_EQ(c, "ab");
    CHECK_STR_EQ(d, "cdefg");
    CHECK_EQ(sn_readv(ends[1], in, 2, soon()), -ETIMEDOUT);
    close_pair(ends);
}

FIBER_TEST(pieces_come_as_they_went)
{
    over_both(pieces_come);
}

static int write_pieces(void *arg)
{
    static char bytes[SN_IOV_MAX];
    sn_iov iov[SN_IOV_MAX];
    for (int i = 0; i < SN_IOV_MAX; i++) {
        bytes[i] = (char)i;
        iov[i] = (sn_iov){&bytes[i], 1};
    }
    let_them_wait();
    CHECK_EQ(sn_writev(arg, iov, SN_IOV_MAX, SN_FOREVER), SN_IOV_MAX);
    return 0;
}

FIBER_TEST(a_thousand_pieces_go_at_once)
{
    sn_conn *ends[2];
    struct helper h;
    CHECK_EQ(sn_conn_pair(ends), 0);
    help(&h, write_pieces, ends[0]);
    char got[SN_IOV_MAX] = {0};
    sn_iov in[2] = {{got, 24}, {got + 24, SN_IOV_MAX - 24}};
    ptrdiff_t n = sn_readv(ends[1], in, 2, SN_FOREVER);
    CHECK_GT(n, 0);
    CHECK_EQ(sn_read_exact(ends[1], got + n, SN_IOV_MAX - (size_t)n, NULL, SN_FOREVER), 0);
    for (int i = 0; i < SN_IOV_MAX; i++)
        CHECK_EQ(got[i], (char)i);
    CHECK_EQ(helped(&h), 0);
    close_pair(ends);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static int write_and_shut(void *arg)
{
    let_them_wait();
    CHECK_EQ(x_write(arg, "abc", 3, SN_FOREVER), 3);
    CHECK_EQ(sn_shutdown(arg, SN_SHUT_WRITE), 0);
    return 0;
}

/* The end comes with the last bytes: who has read less than asked must still learn of it. */
static void half_closed(sn_conn *ends[2])
{
    struct helper h;
    char buf[16];
    help(&h, write_and_shut, ends[0]);
    CHECK_EQ(x_read(ends[1], buf, sizeof(buf), SN_FOREVER), 3);
    CHECK_EQ(x_read(ends[1], buf, sizeof(buf), SN_FOREVER), 0);
    CHECK_EQ(x_read(ends[1], buf, sizeof(buf), SN_FOREVER), 0);
    CHECK_EQ(helped(&h), 0);
    size_t done;
    CHECK_EQ(sn_read_exact(ends[1], buf, 4, &done, SN_FOREVER), -EPIPE);
    CHECK_EQ(done, 0);
    /* The other direction is open. */
    CHECK_EQ(x_write(ends[1], "xyz", 3, SN_FOREVER), 3);
    CHECK_EQ(x_read(ends[0], buf, sizeof(buf), SN_FOREVER), 3);
    CHECK_EQ(x_write(ends[0], "more", 4, SN_FOREVER), -EPIPE);
    close_pair(ends);
}

NET_TEST(a_half_closed_connection_is_read_to_its_end_and_still_written)
{
    over_both(half_closed);
}

static int write_and_close(void *arg)
{
    let_them_wait();
    CHECK_EQ(x_write(arg, "abc", 3, SN_FOREVER), 3);
    CHECK_EQ(sn_close(arg), 0);
    return 0;
}

static void read_exact_to_the_end(sn_conn *ends[2])
{
    struct helper h;
    char buf[16];
    size_t done = 0;
    help(&h, write_and_close, ends[0]);
    CHECK_EQ(sn_read_exact(ends[1], buf, 10, &done, SN_FOREVER), -EPIPE);
    CHECK_EQ(done, 3);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
}

FIBER_TEST(an_end_before_the_last_byte_is_epipe_and_done_tells)
{
    over_both(read_exact_to_the_end);
}

static void shut_by_oneself(sn_conn *ends[2])
{
    char byte;
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_READ), 0);
    CHECK_EQ(x_read(ends[0], &byte, 1, SN_FOREVER), 0);
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_BOTH), 0);
    CHECK_EQ(x_read(ends[0], &byte, 1, SN_FOREVER), 0);
    CHECK_EQ(x_write(ends[0], "x", 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(x_read(ends[1], &byte, 1, SN_FOREVER), 0);
    close_pair(ends);
}

NET_TEST(what_was_shut_down_is_at_its_end)
{
    over_both(shut_by_oneself);
}

static int read_a_byte(void *arg)
{
    char byte;
    return (int)x_read(arg, &byte, 1, SN_FOREVER);
}

static void shut_while_read(sn_conn *ends[2])
{
    struct helper h;
    help(&h, read_a_byte, ends[0]);
    let_them_wait();
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_BOTH), 0);
    CHECK_EQ(helped(&h), 0);
    close_pair(ends);
}

NET_TEST(a_shutdown_ends_a_read_that_waits)
{
    over_both(shut_while_read);
}

/* ---- broken ---------------------------------------------------------------------------------- */

/* No SIGPIPE either: its action is the default, and this process goes on. */
static void write_to_nobody(sn_conn *ends[2])
{
    char buf[1024] = {0};
    ptrdiff_t n = 0;
    CHECK_EQ(sn_close(ends[1]), 0);
    for (int i = 0; i < 1000 && n >= 0; i++) /* TCP learns of it by the answer to the first */
        n = x_write(ends[0], buf, sizeof(buf), SN_FOREVER);
    CHECK(n == -EPIPE || n == -ECONNRESET);
    CHECK_EQ(x_write(ends[0], buf, sizeof(buf), SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_write_all(ends[0], buf, sizeof(buf), NULL, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_writev(ends[0], &(sn_iov){buf, 1}, 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_close(ends[0]), 0);
}

NET_TEST(writing_to_a_closed_peer_is_epipe_and_raises_no_signal)
{
    over_both(write_to_nobody);
}

static int abort_conn(void *arg)
{
    let_them_wait();
    CHECK_EQ(sn_conn_set(arg, SN_CONN_LINGER, 0), 0);
    CHECK_EQ(sn_close(arg), 0);
    return 0;
}

NET_TEST(a_reset_by_the_peer_ends_a_read_that_waits)
{
    sn_conn *ends[2];
    struct helper h;
    char byte;
    tcp_pair(ends);
    help(&h, abort_conn, ends[0]);
    CHECK_EQ(x_read(ends[1], &byte, 1, SN_FOREVER), -ECONNRESET);
    CHECK_EQ(x_read(ends[1], &byte, 1, SN_FOREVER), 0);
    CHECK_EQ(x_write(ends[1], &byte, 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
}

static int fill_and_wait(void *arg)
{
    static const char zeros[1 << 16];
    ptrdiff_t n;
    do
        n = x_write(arg, zeros, sizeof(zeros), SN_FOREVER);
    while (n > 0);
    return (int)n;
}

NET_TEST(a_reset_by_the_peer_ends_a_write_that_waits)
{
    sn_conn *ends[2];
    struct helper h;
    tcp_pair(ends);
    help(&h, fill_and_wait, ends[1]);
    let_them_wait();
    CHECK_EQ(sn_conn_set(ends[0], SN_CONN_LINGER, 0), 0);
    CHECK_EQ(sn_close(ends[0]), 0);
    int rc = helped(&h);
    CHECK(rc == -ECONNRESET || rc == -EPIPE);
    CHECK_EQ(sn_close(ends[1]), 0);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void past(sn_conn *ends[2])
{
    char buf[8];
    CHECK_EQ(x_read(ends[0], buf, 1, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(x_read(ends[0], buf, 1, sn_after(-SN_S(1))), -ETIMEDOUT);
    CHECK_EQ(x_write(ends[0], "abc", 3, SN_NOWAIT), 3); /* what need not wait is done */
    CHECK_EQ(x_read(ends[1], buf, 8, SN_FOREVER), 3);
    CHECK_EQ(x_read(ends[1], buf, 8, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(x_write(ends[0], "de", 2, SN_NOWAIT), 2);
    CHECK_EQ(x_read(ends[1], buf, 8, SN_NOWAIT), 2); /* also after a read that came out short */
    CHECK_EQ(sn_read_exact(ends[1], buf, 8, NULL, SN_NOWAIT), -ETIMEDOUT);
    close_pair(ends);
}

NET_TEST(past_a_deadline_only_what_need_not_wait_is_done)
{
    over_both(past);
}

static void passes(sn_conn *ends[2])
{
    char buf[8];
    sn_deadline until = soon();
    CHECK_EQ(x_read(ends[0], buf, 1, until), -ETIMEDOUT);
    CHECK_GE(sn_now(), until.ns);
    until = soon();
    CHECK_EQ(sn_readv(ends[0], &(sn_iov){buf, 1}, 1, until), -ETIMEDOUT);
    CHECK_GE(sn_now(), until.ns);
    size_t done = 0;
    CHECK_EQ(x_write(ends[0], "abc", 3, SN_FOREVER), 3);
    CHECK_EQ(sn_read_exact(ends[1], buf, 8, &done, soon()), -ETIMEDOUT);
    CHECK_EQ(done, 3);
    /* It can be used after that. */
    CHECK_EQ(x_write(ends[0], "d", 1, SN_FOREVER), 1);
    CHECK_EQ(x_read(ends[1], buf, 8, SN_FOREVER), 1);
    CHECK_EQ(buf[0], 'd');
    close_pair(ends);
}

NET_TEST(a_deadline_ends_a_wait_and_done_tells)
{
    over_both(passes);
}

static void full(sn_conn *ends[2])
{
    enum { BYTES = 64 << 20 };
    char *data = calloc(1, BYTES);
    CHECK(data != NULL);
    size_t done = 0;
    CHECK_EQ(sn_write_all(ends[0], data, BYTES, &done, soon()), -ETIMEDOUT);
    CHECK_GT(done, 0);
    CHECK_LT(done, BYTES);
    ptrdiff_t n;
    while ((n = x_write(ends[0], data, 1, SN_NOWAIT)) > 0)
        done += (size_t)n;
    CHECK_EQ(n, -ETIMEDOUT);
    while ((n = x_write(ends[0], data, 1, soon())) > 0) /* TCP may still make room */
        done += (size_t)n;
    CHECK_EQ(n, -ETIMEDOUT);
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    size_t came = 0; /* what was done, and no more */
    while ((n = x_read(ends[1], data, BYTES, SN_FOREVER)) > 0)
        came += (size_t)n;
    CHECK_EQ(n, 0);
    CHECK_EQ(came, done);
    free(data);
    close_pair(ends);
}

NET_TEST(a_deadline_ends_a_write_and_what_was_done_comes)
{
    over_both(full);
}

static int read_for_a_while(void *arg)
{
    unsigned char buf[3];
    int sum = 0;
    for (;;) {
        ptrdiff_t n = x_read(arg, buf, sizeof(buf), sn_after(SN_US(50)));
        if (n == 0)
            return sum;
        if (n == -ETIMEDOUT)
            continue;
        CHECK_GT(n, 0);
        for (ptrdiff_t i = 0; i < n; i++)
            sum += buf[i];
    }
}

/* Deadlines race with bytes: none is lost, none comes twice. */
NET_TEST(deadlines_that_race_with_bytes_lose_none)
{
    sn_conn *ends[2];
    struct helper readers[3];
    CHECK_EQ(sn_conn_pair(ends), 0);
    for (int i = 0; i < 3; i++)
        help(&readers[i], read_for_a_while, ends[1]);
    int sum = 0;
    for (int i = 0; i < 600; i++) {
        unsigned char byte = (unsigned char)i;
        CHECK_EQ(x_write(ends[0], &byte, 1, SN_FOREVER), 1);
        sum += byte;
        if (i % 7 == 0)
            CHECK_EQ(sn_sleep(SN_US(70)), 0);
    }
    CHECK_EQ(sn_shutdown(ends[0], SN_SHUT_WRITE), 0);
    for (int i = 0; i < 3; i++)
        sum -= helped(&readers[i]);
    CHECK_EQ(sum, 0);
    close_pair(ends);
}

/* ---- both directions at once ----------------------------------------------------------------- */

static int write_some(void *arg)
{
    for (int i = 0; i < 200; i++)
        CHECK_EQ(sn_write_all(arg, "0123456789", 10, NULL, SN_FOREVER), 0);
    return 0;
}

static int read_some(void *arg)
{
    char buf[10];
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(sn_read_exact(arg, buf, 10, NULL, SN_FOREVER), 0);
        CHECK_MEM_EQ(buf, "0123456789", 10);
    }
    return 0;
}

static void both_ways(sn_conn *ends[2])
{
    struct helper h[4];
    for (int i = 0; i < 2; i++) {
        help(&h[i], read_some, ends[i]);
        help(&h[2 + i], write_some, ends[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(helped(&h[i]), 0);
    close_pair(ends);
}

FIBER_TEST(one_reads_while_another_writes)
{
    over_both(both_ways);
}

/* ---- waiting without a buffer ---------------------------------------------------------------- */

static int write_later(void *arg)
{
    let_them_wait();
    CHECK_EQ(x_write(arg, "x", 1, SN_FOREVER), 1);
    return 0;
}

static void waiting(sn_conn *ends[2])
{
    struct helper h;
    char buf[8];
    CHECK_EQ(x_conn_wait(ends[0], SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    CHECK_EQ(x_conn_wait(ends[0], SN_READABLE | SN_WRITABLE, SN_FOREVER), SN_WRITABLE);
    CHECK_EQ(x_conn_wait(ends[0], SN_READABLE, soon()), -ETIMEDOUT);
    help(&h, write_later, ends[1]);
    CHECK_EQ(x_conn_wait(ends[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(x_conn_wait(ends[0], SN_READABLE, SN_FOREVER), SN_READABLE); /* nobody has read it */
    CHECK_EQ(x_read(ends[0], buf, 8, SN_NOWAIT), 1);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
    CHECK_EQ(x_conn_wait(ends[0], SN_READABLE, SN_FOREVER), SN_READABLE);
    CHECK_EQ(x_read(ends[0], buf, 8, SN_NOWAIT), 0);
    CHECK_EQ(sn_close(ends[0]), 0);
}

NET_TEST(waiting_for_a_connection_takes_nothing_from_it)
{
    over_both(waiting);
}

/* Whoever asks and does not wait gets what is there. */
FIBER_TEST(a_wait_past_its_deadline_tells_what_is_there)
{
    sn_conn *ends[2];
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_conn_wait(ends[0], SN_READABLE, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(sn_conn_wait(ends[0], SN_WRITABLE, SN_NOWAIT), SN_WRITABLE);
    CHECK_EQ(x_write(ends[1], "x", 1, SN_FOREVER), 1);
    CHECK_EQ(sn_conn_wait(ends[0], SN_READABLE, SN_NOWAIT), SN_READABLE);
    close_pair(ends);
}

/* ---- limits of the short cut --------------------------------------------------------------------
 * A read that came out short is taken for the last of what is there. Not so where the kernel cuts
 * for another reason: before what came with descriptors, or at urgent data. */

static int write_with_fd(void *arg)
{
    int fd = 0;
    let_them_wait();
    CHECK_EQ(sn_send_fds(arg, "a", 1, &fd, 1, SN_FOREVER), 1);
    CHECK_EQ(x_write(arg, "bc", 2, SN_FOREVER), 2);
    return 0;
}

NET_TEST(bytes_behind_a_descriptor_come_although_the_read_was_short)
{
    sn_conn *ends[2];
    struct helper h;
    char buf[8];
    CHECK_EQ(sn_conn_pair(ends), 0);
    help(&h, write_with_fd, ends[0]);
    size_t n = 0;
    while (n < 3) {
        ptrdiff_t got = x_read(ends[1], buf + n, 8 - n, SN_FOREVER);
        CHECK_GT(got, 0);
        n += (size_t)got;
    }
    CHECK_MEM_EQ(buf, "abc", 3);
    CHECK_EQ(helped(&h), 0);
    close_pair(ends);
}
