/* SPDX-License-Identifier: MIT */
/* Listening, accepting and connecting (R82): addresses, refusals, full queues, crowds. */
#include "suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- refusals ----------------------------------------------------------------------------- */

NET_TEST(an_address_that_cannot_be_listened_at_is_refused)
{
    sn_listener *l = NULL;
    struct place p = listen_at("127.0.0.1:0", NULL);
    CHECK_EQ(sn_listen(&l, p.addr, NULL), -EADDRINUSE);
    CHECK_EQ(sn_listen(&l, "192.0.2.1:0", NULL), -EADDRNOTAVAIL);
    CHECK_EQ(sn_listen(&l, "localhost:80", NULL), -EINVAL);
    CHECK_EQ(sn_listen(&l, NULL, NULL), -EINVAL);
    CHECK_EQ(sn_listen(NULL, "127.0.0.1:0", NULL), -EINVAL);
    CHECK_EQ(sn_listen(&l, "127.0.0.1:0", &(sn_listen_options){.backlog = -1}), -EINVAL);
    CHECK_EQ(sn_listen(&l, "unix:/no/such/directory/x", NULL), -ENOENT);
    CHECK_EQ(sn_listener_addr(p.listener, NULL), -EINVAL);
    CHECK(l == NULL);
    unlisten(&p);
}

TEST(a_port_that_needs_rights_is_eacces)
{
    sn_listener *l;
    bool is_root = geteuid() == 0;
    CHECK(!is_root || seteuid(65534) == 0);
    int rc = sn_listen(&l, "127.0.0.1:1", NULL);
    CHECK(!is_root || seteuid(0) == 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0); /* again, for LeakSanitizer */
    if (rc == 0)
        SKIP("here anybody may listen anywhere");
    CHECK_EQ(rc, -EACCES);
}

NET_TEST(a_connect_to_nobody_is_refused)
{
    sn_conn *c = NULL;
    char text[SN_ADDR_TEXT_MAX];
    struct place p = listen_at("127.0.0.1:0", NULL);
    unlisten(&p);
    CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(sn_connect(&c, "224.0.0.1:1", SN_FOREVER), -ENETUNREACH);
    CHECK_EQ(sn_connect(&c, "nonsense", SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_connect(&c, NULL, SN_FOREVER), -EINVAL);
    CHECK_EQ(sn_connect(&c, unix_addr(text, "nobody"), SN_FOREVER), -ENOENT);
    p = listen_at(text, NULL);
    unlisten(&p);
    CHECK_EQ(sn_connect(&c, text, SN_FOREVER), -ECONNREFUSED); /* its file stays */
    CHECK(c == NULL);
}

/* The kernel drops what does not fit into the queue, and the other end tries again for minutes. */
NET_TEST(a_connect_that_nobody_takes_ends_at_its_deadline)
{
    enum { MANY = 20 };
    sn_conn *c[MANY];
    struct place p = listen_at("127.0.0.1:0", &(sn_listen_options){.backlog = 1});
    int n = fill_queue(&p, c, MANY); /* the last one ended at its deadline */
    CHECK_EQ(sn_connect(&c[n], p.addr, SN_NOWAIT), -ETIMEDOUT);
    while (n > 0)
        CHECK_EQ(sn_close(c[--n]), 0);
    unlisten(&p);
}

/* ---- accepting ----------------------------------------------------------------------------- */

static int connect_later(void *arg)
{
    sn_conn *c;
    let_them_wait();
    CHECK_EQ(sn_connect(&c, arg, SN_FOREVER), 0);
    CHECK_EQ(x_write(c, "x", 1, SN_FOREVER), 1);
    CHECK_EQ(sn_close(c), 0);
    return 0;
}

static void accept_one(const char *addr)
{
    struct place p = listen_at(addr, NULL);
    struct helper h;
    sn_conn *c;
    char byte;
    CHECK_EQ(x_accept(p.listener, &c, NULL, SN_NOWAIT), -ETIMEDOUT);
    CHECK_EQ(x_accept(p.listener, &c, NULL, soon()), -ETIMEDOUT);
    help(&h, connect_later, p.addr);
    CHECK_EQ(x_accept(p.listener, &c, NULL, SN_FOREVER), 0);
    CHECK_EQ(x_read(c, &byte, 1, SN_FOREVER), 1);
    CHECK_EQ(x_read(c, &byte, 1, SN_FOREVER), 0);
    CHECK_EQ(sn_close(c), 0);
    CHECK_EQ(helped(&h), 0);
    CHECK_EQ(x_accept(p.listener, NULL, NULL, SN_FOREVER), -EINVAL);
    unlisten(&p);
}

NET_TEST(a_connection_is_accepted_whatever_the_address)
{
    char text[SN_ADDR_TEXT_MAX];
    sn_listener *six;
    accept_one("127.0.0.1:0");
    accept_one(unix_addr(text, "here"));
    (void)snprintf(text, sizeof(text), "unix:@sinew test %d", (int)getpid());
    accept_one(text);
    if (sn_listen(&six, "[::1]:0", NULL) == 0) {
        CHECK_EQ(sn_listener_close(six), 0);
        accept_one("[::1]:0");
    }
}

NET_TEST(addresses_of_both_ends_agree)
{
    sn_conn *a, *b;
    sn_addr here, there, peer, listening;
    struct place p = listen_at("127.0.0.1:0", NULL);
    CHECK_EQ(sn_connect(&a, p.addr, SN_FOREVER), 0);
    CHECK_EQ(x_accept(p.listener, &b, &peer, SN_FOREVER), 0);
    CHECK_EQ(sn_conn_local(a, &here), 0);
    CHECK_EQ(sn_conn_peer(b, &there), 0);
    CHECK(sn_addr_equal(&here, &there));
    CHECK(sn_addr_equal(&here, &peer));
    CHECK_EQ(sn_listener_addr(p.listener, &listening), 0);
    CHECK_EQ(sn_conn_peer(a, &there), 0);
    CHECK(sn_addr_equal(&listening, &there));
    CHECK_EQ(sn_conn_local(b, &here), 0);
    CHECK(sn_addr_equal(&listening, &here));
    CHECK_EQ(sn_conn_local(b, NULL), -EINVAL);
    CHECK_EQ(sn_conn_peer(b, NULL), -EINVAL);
    CHECK_EQ(sn_conn_set(a, SN_CONN_LINGER, 0), 0);
    CHECK_EQ(sn_close(a), 0);
    char byte;
    CHECK_EQ(x_read(b, &byte, 1, SN_FOREVER), -ECONNRESET);
    CHECK_EQ(sn_conn_peer(b, &there), -ENOTCONN);
    CHECK_EQ(sn_close(b), 0);
    unlisten(&p);
}

/* ---- options of a listener ------------------------------------------------------------------ */

NET_TEST(listeners_share_a_port_if_both_want_to)
{
    const sn_listen_options share = {.reuse_port = true};
    struct place p = listen_at("127.0.0.1:0", &share);
    struct place q = listen_at(p.addr, &share);
    CHECK_STR_EQ(p.addr, q.addr);
    unlisten(&p);
    unlisten(&q);
}

/* Nobody listens at 127.0.0.1:`port`, nor will: the descriptor is bound there. -1: it is taken. */
static int keep_ipv4_port(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (const struct sockaddr *)&here, sizeof(here)) == 0)
        return fd;
    CHECK_EQ(errno, EADDRINUSE);
    CHECK_EQ(close(fd), 0);
    return -1;
}

NET_TEST(an_ipv6_listener_takes_ipv4_unless_told_otherwise)
{
    sn_listener *l;
    sn_conn *c, *d;
    if (sn_listen(&l, "[::]:0", NULL) < 0)
        SKIP("this system has no IPv6");
    sn_addr where;
    char text[SN_ADDR_TEXT_MAX];
    CHECK_EQ(sn_listener_addr(l, &where), 0);
    (void)snprintf(text, sizeof(text), "127.0.0.1:%d", sn_addr_port(&where));
    CHECK_EQ(sn_connect(&c, text, SN_FOREVER), 0);
    CHECK_EQ(x_accept(l, &d, NULL, SN_FOREVER), 0);
    CHECK_EQ(sn_close(c), 0);
    CHECK_EQ(sn_close(d), 0);
    CHECK_EQ(sn_listener_close(l), 0);
    int fd = -1; /* the port may be another's with IPv4, who would take us: then another port */
    for (int i = 0; i < 50 && fd < 0; i++) {
        CHECK_EQ(sn_listen(&l, "[::]:0", &(sn_listen_options){.only_ipv6 = true}), 0);
        CHECK_EQ(sn_listener_addr(l, &where), 0);
        fd = keep_ipv4_port(sn_addr_port(&where));
        if (fd < 0)
            CHECK_EQ(sn_listener_close(l), 0);
    }
    CHECK_GE(fd, 0);
    (void)snprintf(text, sizeof(text), "127.0.0.1:%d", sn_addr_port(&where));
    CHECK_EQ(sn_connect(&c, text, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(sn_listener_close(l), 0);
    CHECK_EQ(close(fd), 0);
}

NET_TEST(only_a_socket_that_nobody_listens_to_is_replaced)
{
    const sn_listen_options replace = {.replace = true};
    char text[SN_ADDR_TEXT_MAX];
    sn_listener *l;
    struct place p = listen_at(unix_addr(text, "socket"), &replace);
    CHECK_EQ(sn_listen(&l, text, NULL), -EADDRINUSE);
    CHECK_EQ(sn_listen(&l, text, &replace), -EADDRINUSE); /* it is listened to */
    unlisten(&p);
    CHECK_EQ(sn_listen(&l, text, NULL), -EADDRINUSE); /* its file stays */
    p = listen_at(text, &replace);
    unlisten(&p);

    FILE *file = fopen(unix_addr(text, "file") + strlen("unix:"), "w");
    CHECK(file != NULL);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(sn_listen(&l, text, &replace), -EADDRINUSE);
    CHECK_EQ(access(text + strlen("unix:"), F_OK), 0);
}

/* ---- a full queue of a Unix listener -------------------------------------------------------- */

static int connect_unix(void *arg)
{
    sn_conn *c;
    int rc = sn_connect(&c, arg, SN_FOREVER);
    return rc < 0 ? rc : sn_close(c);
}

NET_TEST(a_full_unix_listener_makes_wait_and_then_takes_all)
{
    enum { MANY = 12 };
    char text[SN_ADDR_TEXT_MAX];
    struct helper h[MANY];
    sn_conn *c;
    struct place p = listen_at(unix_addr(text, "full"), &(sn_listen_options){.backlog = 1});
    for (int i = 0; i < MANY; i++)
        help(&h[i], connect_unix, text);
    let_them_wait();
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(x_accept(p.listener, &c, NULL, SN_FOREVER), 0);
        CHECK_EQ(sn_close(c), 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(helped(&h[i]), 0);
    unlisten(&p);
}

NET_TEST(a_connect_to_a_full_unix_listener_ends_at_its_deadline)
{
    enum { MANY = 20 };
    char text[SN_ADDR_TEXT_MAX];
    sn_conn *c[MANY];
    int n = 0, rc = 0;
    struct place p = listen_at(unix_addr(text, "full"), &(sn_listen_options){.backlog = 1});
    while (n < MANY && (rc = sn_connect(&c[n], text, soon())) == 0)
        n++;
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_EQ(sn_connect(&c[n], text, SN_NOWAIT), -ETIMEDOUT);
    while (n > 0)
        CHECK_EQ(sn_close(c[--n]), 0);
    unlisten(&p);
}

/* ---- a crowd --------------------------------------------------------------------------------- */

enum { ACCEPTORS = 200, CONNECTIONS = 50 };

/* Returns the byte that came with the connection, or an error. */
static int accept_and_read(void *arg)
{
    sn_conn *c;
    unsigned char byte;
    int rc = x_accept(arg, &c, NULL, SN_FOREVER);
    if (rc < 0)
        return rc;
    CHECK_EQ(x_read(c, &byte, 1, SN_FOREVER), 1);
    CHECK_EQ(sn_close(c), 0);
    return byte;
}

static void crowd(const char *addr)
{
    static struct helper h[ACCEPTORS];
    sn_conn *c[CONNECTIONS];
    char byte;
    struct place p = listen_at(addr, NULL);
    for (int i = 0; i < ACCEPTORS; i++)
        help(&h[i], accept_and_read, p.listener);
    let_them_wait();
    for (int i = 0; i < CONNECTIONS; i++) {
        CHECK_EQ(sn_connect(&c[i], p.addr, SN_FOREVER), 0);
        byte = (char)i;
        CHECK_EQ(x_write(c[i], &byte, 1, SN_FOREVER), 1);
    }
    for (int i = 0; i < CONNECTIONS; i++) { /* each was read, so each was accepted */
        CHECK_EQ(x_read(c[i], &byte, 1, SN_FOREVER), 0);
        CHECK_EQ(sn_close(c[i]), 0);
    }
    unlisten(&p);
    int seen[CONNECTIONS] = {0};
    int refused = 0;
    for (int i = 0; i < ACCEPTORS; i++) {
        int rc = helped(&h[i]);
        if (rc >= 0)
            seen[rc]++;
        else
            refused += rc == -EBADF;
    }
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK_EQ(seen[i], 1);
    CHECK_EQ(refused, ACCEPTORS - CONNECTIONS);
}

NET_TEST(of_two_hundred_acceptors_each_connection_gets_one)
{
    char text[SN_ADDR_TEXT_MAX];
    crowd("127.0.0.1:0");
    crowd(unix_addr(text, "crowd"));
}

/* ---- races with deadlines ------------------------------------------------------------------- */

static int accept_for_a_while(void *arg)
{
    int n = 0;
    for (;;) {
        sn_conn *c;
        int rc = x_accept(arg, &c, NULL, sn_after(SN_US(50)));
        if (rc == -EBADF)
            return n;
        if (rc == -ETIMEDOUT)
            continue;
        CHECK_EQ(rc, 0);
        CHECK_EQ(sn_close(c), 0);
        n++;
    }
}

NET_TEST(deadlines_that_race_with_connections_lose_none)
{
    enum { N = 100 };
    struct helper h[2];
    struct place p = listen_at("127.0.0.1:0", NULL);
    for (int i = 0; i < 2; i++)
        help(&h[i], accept_for_a_while, p.listener);
    for (int i = 0; i < N; i++) {
        sn_conn *c;
        char byte;
        CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), 0);
        CHECK_EQ(x_read(c, &byte, 1, SN_FOREVER), 0); /* somebody has closed it */
        CHECK_EQ(sn_close(c), 0);
    }
    unlisten(&p);
    CHECK_EQ(helped(&h[0]) + helped(&h[1]), N);
}
