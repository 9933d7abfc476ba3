/* SPDX-License-Identifier: MIT */
/* Sockets where something is lacking or disturbs (R82, R84): no descriptor left, signals; and what
 * must not be taken. */
#include "suite.h"

#include <dirent.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* ---- no descriptor left ---------------------------------------------------------------------- */

static struct rlimit limit_before;

/* From here on nobody gets a descriptor. */
static void take_all(void)
{
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
    int next = dup(0);
    CHECK_EQ(close(next), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = limit_before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void give_back(void)
{
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

static int64_t processor_ns(void)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return SN_S(t.tv_sec) + t.tv_nsec;
}

static int accept_one(void *arg)
{
    sn_conn *c;
    int rc = sn_accept(arg, &c, NULL, SN_FOREVER);
    return rc < 0 ? rc : sn_close(c);
}

/* While there is none, the listener stays readable, which is not to be a busy loop. */
FIBER_TEST(an_acceptor_without_descriptors_waits_quietly_and_loses_nothing)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    struct helper h[3];
    sn_conn *c[3], *d;
    char byte;
    CHECK_EQ(sn_connect(&c[0], p.addr, SN_FOREVER), 0);
    CHECK_EQ(sn_connect(&c[1], p.addr, SN_FOREVER), 0);
    CHECK_EQ(sn_connect(&c[2], p.addr, SN_FOREVER), 0);
    take_all();
    CHECK_EQ(sn_accept(p.listener, &d, NULL, SN_NOWAIT), -EMFILE);
    CHECK_EQ(sn_accept(p.listener, &d, NULL, soon()), -EMFILE);
    for (int i = 0; i < 3; i++)
        help(&h[i], accept_one, p.listener);
    int64_t before = processor_ns(), began = sn_now();
    CHECK_EQ(sn_sleep(SN_MS(300)), 0);
    int64_t took = sn_now() - began; /* of which a busy loop would have had all, or more */
    CHECK_LT(processor_ns() - before, took / 4 * 3);
    give_back();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(helped(&h[i]), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sn_read(c[i], &byte, 1, SN_FOREVER), 0);
        CHECK_EQ(sn_close(c[i]), 0);
    }
    unlisten(&p);
}

/* A coroutine is told instead, and the connection is still there. */
NET_TEST(an_accept_past_its_deadline_without_descriptors_is_emfile)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    sn_conn *c, *d;
    CHECK_EQ(x_accept(p.listener, &d, NULL, soon()), -ETIMEDOUT);
    CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), 0);
    take_all();
    CHECK_EQ(x_accept(p.listener, &d, NULL, SN_NOWAIT), -EMFILE);
    give_back();
    CHECK_EQ(x_accept(p.listener, &d, NULL, SN_FOREVER), 0);
    CHECK_EQ(sn_close(c), 0);
    CHECK_EQ(sn_close(d), 0);
    unlisten(&p);
}

FIBER_TEST(a_close_ends_an_accept_that_has_no_descriptor)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    struct helper h[3];
    sn_conn *c;
    CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), 0);
    take_all();
    for (int i = 0; i < 3; i++)
        help(&h[i], accept_one, p.listener);
    let_them_wait();
    unlisten(&p);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(helped(&h[i]), -EBADF);
    give_back();
    CHECK_EQ(sn_close(c), 0);
}

NET_TEST(without_descriptors_nothing_is_made)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    sn_listener *l;
    sn_conn *c, *pair[2];
    sn_dgram *d, *dgrams[2];
    take_all();
    CHECK_EQ(sn_listen(&l, "127.0.0.1:0", NULL), -EMFILE);
    CHECK_EQ(sn_connect(&c, p.addr, SN_FOREVER), -EMFILE);
    CHECK_EQ(sn_conn_pair(pair), -EMFILE);
    CHECK_EQ(sn_dgram_open(&d, "127.0.0.1:0"), -EMFILE);
    CHECK_EQ(sn_dgram_pair(dgrams), -EMFILE);
    give_back();
    unlisten(&p);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void ignore(int signal)
{
    (void)signal;
}

static int answer(void *arg)
{
    char buf[64];
    ptrdiff_t n;
    while ((n = x_read(arg, buf, sizeof(buf), SN_FOREVER)) > 0)
        CHECK_EQ(sn_write_all(arg, buf, (size_t)n, NULL, SN_FOREVER), 0);
    return (int)n;
}

static int connect_to(void *arg)
{
    sn_conn *c;
    CHECK_EQ(sn_connect(&c, arg, SN_FOREVER), 0);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t back;
        CHECK_EQ(sn_write_all(c, &i, sizeof(i), NULL, SN_FOREVER), 0);
        CHECK_EQ(sn_read_exact(c, &back, sizeof(back), NULL, SN_FOREVER), 0);
        CHECK_EQ(back, i);
        if (i % 10 == 0)
            CHECK_EQ(sn_sleep(SN_US(300)), 0);
    }
    return sn_close(c);
}

NET_TEST(a_storm_of_signals_is_not_noticed)
{
    const struct sigaction action = {.sa_handler = ignore}; /* and calls are not restarted */
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    const struct itimerval often = {{.tv_usec = 100}, {.tv_usec = 100}}, never = {{0}, {0}};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    struct place p = listen_at("127.0.0.1:0", NULL);
    struct helper h[3];
    sn_conn *c;
    sn_dgram *g[2];
    char byte;
    for (int i = 0; i < 3; i++)
        help(&h[i], connect_to, p.addr);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(x_accept(p.listener, &c, NULL, SN_FOREVER), 0);
        CHECK_EQ(answer(c), 0);
        CHECK_EQ(sn_close(c), 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(helped(&h[i]), 0);
    CHECK_EQ(x_accept(p.listener, &c, NULL, soon()), -ETIMEDOUT);
    CHECK_EQ(sn_dgram_pair(g), 0);
    CHECK_EQ(x_recv_from(g[0], &byte, 1, NULL, soon()), -ETIMEDOUT);
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK_EQ(x_wait_fd(fd, SN_READABLE, soon()), -ETIMEDOUT);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(sn_dgram_close(g[0]), 0);
    CHECK_EQ(sn_dgram_close(g[1]), 0);
    unlisten(&p);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
}

/* Whatever writes. The default action would end this process. */
NET_TEST(no_write_raises_sigpipe)
{
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    sn_conn *ends[2];
    sn_dgram *g[2];
    char byte = 0;
    int fd = 0;
    CHECK_EQ(sn_conn_pair(ends), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
    CHECK_EQ(x_write(ends[0], "x", 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_write_all(ends[0], "x", 1, NULL, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_writev(ends[0], &(sn_iov){&byte, 1}, 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_send_fds(ends[0], "x", 1, &fd, 1, SN_FOREVER), -EPIPE);
    CHECK_EQ(sn_close(ends[0]), 0);
    CHECK_EQ(sn_dgram_pair(g), 0);
    CHECK_EQ(sn_dgram_close(g[1]), 0);
    CHECK_EQ(x_send_to(g[0], "x", 1, NULL, SN_FOREVER), -ECONNREFUSED);
    CHECK_EQ(sn_dgram_close(g[0]), 0);
}

static int fill_it(void *arg)
{
    static const char zeros[1 << 16];
    ptrdiff_t n;
    do
        n = x_write(arg, zeros, sizeof(zeros), SN_FOREVER);
    while (n > 0);
    return (int)n;
}

/* Also one that waits when the other end goes. */
NET_TEST(no_write_that_waits_raises_sigpipe)
{
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    sn_conn *ends[2];
    struct helper h;
    CHECK_EQ(sn_conn_pair(ends), 0);
    help(&h, fill_it, ends[0]);
    let_them_wait();
    CHECK_EQ(sn_close(ends[1]), 0);
    int rc = helped(&h);
    CHECK(rc == -EPIPE || rc == -ECONNRESET);
    CHECK_EQ(sn_close(ends[0]), 0);
}

/* ---- threads of the kernel ------------------------------------------------------------------- */

/* Those that io_uring takes for what it cannot wait for otherwise. */
static int kernel_workers(void)
{
    int n = 0;
    const struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)) != NULL) {
        char path[64] = "", name[32] = "";
        CHECK_GT(snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name), 0);
        FILE *comm = fopen(path, "re");
        if (comm == NULL)
            continue;
        n += fgets(name, sizeof(name), comm) != NULL && strncmp(name, "iou-wrk", 7) == 0;
        CHECK_EQ(fclose(comm), 0);
    }
    CHECK_EQ(closedir(tasks), 0);
    return n;
}

static void fill_ends(bool half_closed)
{
    enum { MANY = 8 };
    static char buf[1 << 16];
    sn_conn *ends[MANY][2];
    struct helper h[MANY];
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sn_conn_pair(ends[i]), 0);
        if (half_closed)
            CHECK_EQ(sn_shutdown(ends[i][1], SN_SHUT_WRITE), 0);
        help(&h[i], fill_it, ends[i][0]);
    }
    for (int round = 0; round < 10; round++) {
        let_them_wait();
        CHECK_EQ(kernel_workers(), 0);
        for (int i = 0; i < MANY; i++) /* too little for the next write, or just enough */
            CHECK_GT(x_read(ends[i][1], buf, round % 2 == 0 ? 777 : sizeof(buf), SN_FOREVER), 0);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sn_close(ends[i][1]), 0);
        int rc = helped(&h[i]);
        CHECK(rc == -EPIPE || rc == -ECONNRESET);
        CHECK_EQ(sn_close(ends[i][0]), 0);
    }
}

NET_TEST(writes_to_ends_that_do_not_read_take_no_thread_of_the_kernel)
{
    fill_ends(false);
}

/* The kernel tells of a half-closed end whatever was asked for. */
NET_TEST(writes_to_half_closed_ends_that_do_not_read_take_no_thread_of_the_kernel)
{
    fill_ends(true);
}

/* ---- errors that nobody fetches -------------------------------------------------------------- */

static int fill_up(void *arg)
{
    static const char zeros[1 << 16];
    int rc = 0;
    while (rc == 0)
        rc = sn_write_all(arg, zeros, sizeof(zeros), NULL, sn_after(SN_MS(300)));
    return rc;
}

/* The kernel tells of a time stamp as of an error, until it is fetched: not a busy loop either. */
FIBER_TEST(a_writer_beside_a_time_stamp_that_nobody_fetches_waits_quietly)
{
    struct place p = listen_at("127.0.0.1:0", NULL);
    const int stamps =
        SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    sn_conn *ends[2];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(p.addr, ':') + 1));
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)), 0);
    CHECK_EQ(sn_conn_adopt(&ends[0], fd), 0);
    CHECK_EQ(sn_accept(p.listener, &ends[1], NULL, SN_FOREVER), 0);
    CHECK_EQ(fill_up(ends[0]), -ETIMEDOUT); /* which takes a while by itself */
    int64_t before = processor_ns(), began = sn_now();
    CHECK_EQ(fill_up(ends[0]), -ETIMEDOUT);
    int64_t took = sn_now() - began;
    CHECK_LT(processor_ns() - before, took / 4 * 3);
    CHECK_EQ(sn_close(ends[0]), 0);
    CHECK_EQ(sn_close(ends[1]), 0);
    unlisten(&p);
}
