/* SPDX-License-Identifier: MIT */
/* Datagrams (R82): UDP and Unix, connected and not, lengths, refusals, crowds. */
#include "suite.h"

#include <stdio.h>

static sn_dgram *open_at(const char *addr)
{
    sn_dgram *d;
    CHECK_EQ(sn_dgram_open(&d, addr), 0);
    return d;
}

NET_TEST(a_datagram_comes_with_its_sender)
{
    sn_dgram *a = open_at("127.0.0.1:0"), *b = open_at("127.0.0.1:0");
    sn_addr at_a, at_b, from;
    char buf[8];
    CHECK_EQ(sn_dgram_addr(a, &at_a), 0);
    CHECK_EQ(sn_dgram_addr(b, &at_b), 0);
    CHECK_EQ(x_recv_from(b, buf, 8, &from, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(x_recv_from(b, buf, 8, &from, soon()), -ETIMEDOUT);
    CHECK_EQ(x_send_to(a, "one", 3, &at_b, SN_FOREVER), 3);
    CHECK_EQ(x_send_to(a, "two!", 4, &at_b, SN_FOREVER), 4);
    CHECK_EQ(x_recv_from(b, buf, 8, &from, SN_FOREVER), 3);
    CHECK(sn_addr_equal(&from, &at_a));
    CHECK_EQ(x_recv_from(b, buf, 8, NULL, SN_FOREVER), 4);
    CHECK_MEM_EQ(buf, "two!", 4);
    CHECK_EQ(sn_dgram_close(a), 0);
    CHECK_EQ(sn_dgram_close(b), 0);
}

NET_TEST(a_datagram_has_its_length_whatever_the_room)
{
    sn_dgram *g[2];
    char buf[8];
    sn_addr from;
    CHECK_EQ(sn_dgram_pair(g), 0);
    sn_dgram *udp = open_at("127.0.0.1:0");
    char text[SN_ADDR_TEXT_MAX];
    CHECK_EQ(sn_dgram_connect(udp, dgram_addr(text, udp)), 0); /* with itself */
    for (int i = 0; i < 2; i++) {
        sn_dgram *out = i == 0 ? g[0] : udp, *in = i == 0 ? g[1] : udp;
        CHECK_EQ(x_send_to(out, "0123456789", 10, NULL, SN_FOREVER), 10);
        CHECK_EQ(x_send_to(out, NULL, 0, NULL, SN_FOREVER), 0);
        CHECK_EQ(x_send_to(out, "abc", 3, NULL, SN_FOREVER), 3);
        CHECK_EQ(x_send_to(out, "x", 1, NULL, SN_FOREVER), 1);
        CHECK_EQ(x_recv_from(in, buf, 4, &from, SN_FOREVER), 10);
        CHECK_MEM_EQ(buf, "0123", 4);
        CHECK_EQ(x_recv_from(in, buf, 8, &from, SN_FOREVER), 0);
        CHECK_EQ(x_recv_from(in, NULL, 0, &from, SN_FOREVER), 3);
        CHECK_EQ(x_recv_from(in, buf, 8, &from, SN_FOREVER), 1);
        CHECK_EQ(sn_addr_kind_of(&from), i == 0 ? SN_ADDR_NONE : SN_ADDR_IPV4);
        CHECK_EQ(sn_dgram_close(out), 0);
    }
    CHECK_EQ(sn_dgram_close(g[1]), 0);
}

NET_TEST(what_cannot_be_sent_or_received_is_refused)
{
    static char large[70000];
    sn_dgram *d = open_at("127.0.0.1:0"), *e = NULL;
    sn_addr self, none = {0};
    char text[SN_ADDR_TEXT_MAX];
    CHECK_EQ(sn_dgram_addr(d, &self), 0);
    CHECK_EQ(x_send_to(d, "x", 1, NULL, SN_FOREVER), -EDESTADDRREQ);
    CHECK_EQ(x_send_to(d, large, sizeof(large), &self, SN_FOREVER), -EMSGSIZE);
    CHECK_EQ(x_send_to(d, "x", 1, &none, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_send_to(d, NULL, 1, &self, SN_FOREVER), -EINVAL);
    CHECK_EQ(x_recv_from(d, NULL, 1, NULL, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_dgram_connect(d, "nonsense"), -EINVAL);
    CHECK_EQ(sn_dgram_connect(d, NULL), -EINVAL);
    CHECK_EQ(sn_dgram_addr(d, NULL), -EINVAL);
    CHECK_EQ(sn_dgram_open(&e, dgram_addr(text, d)), -EADDRINUSE);
    CHECK_EQ(sn_dgram_open(&e, "192.0.2.1:0"), -EADDRNOTAVAIL);
    CHECK_EQ(sn_dgram_open(&e, NULL), -EINVAL);
    CHECK_EQ(sn_dgram_open(NULL, "127.0.0.1:0"), -EINVAL);
    CHECK_EQ(sn_dgram_pair(NULL), -EINVAL);
    CHECK(e == NULL);
    CHECK_EQ(sn_dgram_close(d), 0);
}

NET_TEST(a_connected_socket_hears_only_its_peer)
{
    sn_dgram *a = open_at("127.0.0.1:0"), *b = open_at("127.0.0.1:0"), *c = open_at("127.0.0.1:0");
    char text[SN_ADDR_TEXT_MAX], buf[8];
    sn_addr at_a, from, at_b;
    CHECK_EQ(sn_dgram_addr(a, &at_a), 0);
    CHECK_EQ(sn_dgram_addr(b, &at_b), 0);
    CHECK_EQ(sn_dgram_connect(a, dgram_addr(text, b)), 0);
    CHECK_EQ(x_send_to(c, "no", 2, &at_a, SN_FOREVER), 2);
    CHECK_EQ(x_send_to(b, "yes", 3, &at_a, SN_FOREVER), 3);
    CHECK_EQ(x_recv_from(a, buf, 8, &from, SN_FOREVER), 3);
    CHECK(sn_addr_equal(&from, &at_b));
    CHECK_EQ(x_recv_from(a, buf, 8, &from, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(x_send_to(a, "back", 4, NULL, SN_FOREVER), 4);
    CHECK_EQ(x_recv_from(b, buf, 8, &from, SN_FOREVER), 4);
    CHECK_EQ(sn_dgram_close(a), 0);
    CHECK_EQ(sn_dgram_close(b), 0);
    CHECK_EQ(sn_dgram_close(c), 0);
}

static int send_to_peer(void *arg)
{
    let_them_wait();
    CHECK_EQ(x_send_to(arg, "x", 1, NULL, SN_FOREVER), 1);
    return 0;
}

/* On the loopback the answer that nobody is there comes at once. */
NET_TEST(who_sends_to_nobody_learns_that_it_is_refused)
{
    sn_dgram *a = open_at("127.0.0.1:0"), *b = open_at("127.0.0.1:0");
    char text[SN_ADDR_TEXT_MAX], buf[8];
    struct helper h;
    CHECK_EQ(sn_dgram_connect(a, dgram_addr(text, b)), 0);
    CHECK_EQ(sn_dgram_close(b), 0);
    CHECK_EQ(x_send_to(a, "x", 1, NULL, SN_FOREVER), 1);
    CHECK_EQ(x_recv_from(a, buf, 8, NULL, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(x_recv_from(a, buf, 8, NULL, SN_NOWAIT), -ETIMEDOUT); /* said once */
    help(&h, send_to_peer, a);
    CHECK_EQ(x_recv_from(a, buf, 8, NULL, SN_FOREVER), -ECONNREFUSED); /* while it waits */
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(x_send_to(a, "x", 1, NULL, SN_FOREVER), 1);
    CHECK_EQ(x_send_to(a, "x", 1, NULL, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(sn_dgram_close(a), 0);
}

/* ---- Unix ------------------------------------------------------------------------------------ */

NET_TEST(unix_datagrams_come_with_their_path)
{
    char path_a[SN_ADDR_TEXT_MAX], path_b[SN_ADDR_TEXT_MAX], text[SN_ADDR_TEXT_MAX], buf[8];
    sn_dgram *a = open_at(unix_addr(path_a, "a")), *b = open_at(unix_addr(path_b, "b"));
    sn_addr to, from;
    CHECK_EQ(sn_addr_parse(path_b, &to), 0);
    CHECK_EQ(x_send_to(a, "abc", 3, &to, SN_FOREVER), 3);
    CHECK_EQ(x_recv_from(b, buf, 8, &from, SN_FOREVER), 3);
    CHECK_GT(sn_addr_format(&from, text, sizeof(text)), 0);
    CHECK_STR_EQ(text, path_a);
    CHECK_STR_EQ(dgram_addr(text, b), path_b);
    CHECK_EQ(sn_dgram_connect(a, path_b), 0);
    CHECK_EQ(x_send_to(a, "d", 1, NULL, SN_FOREVER), 1);
    CHECK_EQ(x_recv_from(b, buf, 8, NULL, SN_FOREVER), 1);
    CHECK_EQ(sn_dgram_close(b), 0);
    CHECK_EQ(x_send_to(a, "d", 1, NULL, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(x_send_to(a, "d", 1, &to, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(sn_dgram_close(a), 0);
}

enum { ROUNDS = 60 }; /* more than a Unix socket keeps */

struct stream_of {
    sn_dgram *from;
    const sn_addr *to;
};

static int send_numbers(void *arg)
{
    struct stream_of *s = arg;
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(x_send_to(s->from, &i, sizeof(i), s->to, SN_FOREVER), sizeof(i));
    return 0;
}

/* Whose queue is full makes the sender wait, until there is room: also if the sender is not
 * connected, though nothing tells then. */
NET_TEST(a_full_queue_makes_the_sender_wait_and_nothing_is_lost)
{
    char path[SN_ADDR_TEXT_MAX];
    sn_addr to;
    for (int connected = 0; connected < 2; connected++) {
        char name[8] = {'f', (char)('0' + connected)}, other[8] = {'s', (char)('0' + connected)};
        sn_dgram *in = open_at(unix_addr(path, name));
        CHECK_EQ(sn_addr_parse(path, &to), 0);
        sn_dgram *out = open_at(unix_addr(path, other));
        if (connected)
            CHECK_EQ(sn_dgram_connect(out, unix_addr(path, name)), 0);
        struct stream_of s = {out, connected ? NULL : &to};
        struct helper h;
        help(&h, send_numbers, &s);
        let_them_wait();
        for (int i = 0; i < ROUNDS; i++) {
            int number;
            CHECK_EQ(x_recv_from(in, &number, sizeof(number), NULL, SN_FOREVER), sizeof(number));
            CHECK_EQ(number, i);
        }
        CHECK_EQ(helped(&h), 0);
        ptrdiff_t rc;
        int sent = 0;
        while ((rc = x_send_to(out, "x", 1, s.to, soon())) == 1)
            CHECK_LT(sent++, 100000);
        CHECK_EQ(rc, -ETIMEDOUT);
        CHECK_EQ(x_send_to(out, "x", 1, s.to, SN_NOWAIT), -ETIMEDOUT);
        CHECK_EQ(sn_dgram_close(in), 0);
        CHECK_EQ(sn_dgram_close(out), 0);
    }
}

static int send_one_more(void *arg)
{
    struct stream_of *s = arg;
    return (int)x_send_to(s->from, "x", 1, s->to, SN_FOREVER);
}

/* Then not even the sender's own buffer tells when there is room. */
NET_TEST(a_queue_that_others_have_filled_makes_the_sender_wait)
{
    char path[SN_ADDR_TEXT_MAX], byte;
    sn_addr to;
    sn_dgram *in = open_at(unix_addr(path, "in"));
    CHECK_EQ(sn_addr_parse(path, &to), 0);
    sn_dgram *filler = open_at(unix_addr(path, "filler")), *out = open_at(unix_addr(path, "out"));
    int filled = 0;
    while (x_send_to(filler, "f", 1, &to, SN_NOWAIT) == 1)
        CHECK_LT(filled++, 100000);
    struct stream_of s = {out, &to};
    struct helper h;
    help(&h, send_one_more, &s);
    let_them_wait();
    for (int i = 0; i <= filled; i++)
        CHECK_EQ(x_recv_from(in, &byte, 1, NULL, SN_FOREVER), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(helped(&h), 1);
    CHECK_EQ(sn_dgram_close(in), 0);
    CHECK_EQ(sn_dgram_close(out), 0);
    CHECK_EQ(sn_dgram_close(filler), 0);
}

NET_TEST(a_close_ends_the_wait_of_a_sender)
{
    char path[SN_ADDR_TEXT_MAX];
    sn_addr to;
    sn_dgram *in = open_at(unix_addr(path, "in"));
    CHECK_EQ(sn_addr_parse(path, &to), 0);
    sn_dgram *out = open_at(unix_addr(path, "out"));
    int sent = 0;
    while (x_send_to(out, "x", 1, &to, SN_NOWAIT) == 1)
        CHECK_LT(sent++, 100000);
    struct stream_of s = {out, &to};
    struct helper h;
    help(&h, send_one_more, &s);
    let_them_wait();
    CHECK_EQ(sn_dgram_close(out), 0);
    CHECK_EQ(helped(&h), -EBADF);
    CHECK_EQ(sn_dgram_close(in), 0);
}

/* ---- a crowd --------------------------------------------------------------------------------- */

enum { READERS = 100 };

static int receive_number(void *arg)
{
    int number;
    CHECK_EQ(x_recv_from(arg, &number, sizeof(number), NULL, SN_FOREVER), sizeof(number));
    return number;
}

NET_TEST(of_a_hundred_readers_each_gets_one_datagram)
{
    static struct helper h[READERS];
    sn_dgram *in = open_at("127.0.0.1:0"), *out = open_at("127.0.0.1:0");
    sn_addr to;
    CHECK_EQ(sn_dgram_addr(in, &to), 0);
    for (int i = 0; i < READERS; i++)
        help(&h[i], receive_number, in);
    for (int i = 0; i < READERS; i++)
        CHECK_EQ(x_send_to(out, &i, sizeof(i), &to, SN_FOREVER), sizeof(i));
    int seen[READERS] = {0};
    for (int i = 0; i < READERS; i++)
        seen[helped(&h[i])]++;
    for (int i = 0; i < READERS; i++)
        CHECK_EQ(seen[i], 1);
    CHECK_EQ(sn_dgram_close(in), 0);
    CHECK_EQ(sn_dgram_close(out), 0);
}
