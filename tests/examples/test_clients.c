/* SPDX-License-Identifier: MIT */
/* The servers among the examples, driven by programs that others wrote: socat, curl, wrk (R80,
 * R82). Each runs on every driver. Servers choose their port and tell it; each is ended by its own
 * id. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct server {
    pid_t pid;
    char addr[128]; /* as it told it */
};

static void start_server(struct server *s, const char *driver, const char *example,
                         const char *args)
{
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    char line[512];
    snprintf(line, sizeof(line), "SINEW_IO=%s exec %s/examples/%s %s", driver, build_path(),
             example, args);
    s->pid = fork();
    CHECK_GE(s->pid, 0);
    if (s->pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    CHECK(out != NULL);
    if (fgets(line, sizeof(line), out) == NULL || sscanf(line, "listening on %127s", s->addr) != 1)
        FAIL("%s %s did not say where it listens", example, args);
    (void)fclose(out);
}

static void stop_server(struct server *s)
{
    int status;
    CHECK_EQ(waitpid(s->pid, &status, WNOHANG), 0); /* it has not crashed meanwhile */
    CHECK_EQ(kill(s->pid, SIGTERM), 0);
    CHECK_EQ(waitpid(s->pid, &status, 0), s->pid);
}

static void on_each_driver(const char *example, void (*fn)(const struct server *s))
{
    static const char *const drivers[] = {"auto", "epoll", "poll"};
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        struct server s;
        start_server(&s, drivers[i], example, "127.0.0.1:0");
        fn(&s);
        stop_server(&s);
    }
}

/* Run it; its output must be `expected`. */
#define CHECK_OUTPUT(expected, ...)                   \
    do {                                              \
        struct command c_ = run_command(__VA_ARGS__); \
        CHECK_STR_EQ(c_.output, expected);            \
        CHECK_EQ(c_.status, 0);                       \
        command_finish(&c_);                          \
    } while (0)

/* ---- echo -------------------------------------------------------------------------------- */

static void echo_little_and_much(const struct server *s)
{
    CHECK_OUTPUT("hello\nworld\n", "printf 'hello\\nworld\\n' | socat -t 10 - TCP:%s", s->addr);
    CHECK_OUTPUT("",
                 "cd %s && head -c 3000000 /dev/urandom >in && "
                 "socat -t 10 - TCP:%s <in >out && cmp in out",
                 temp_dir(), s->addr);
}

TEST(socat_hears_its_echo, .limit_s = 60)
{
    require_tool("socat", "test");
    on_each_driver("11_echo_server", echo_little_and_much);
}

TEST(socat_hears_its_echo_from_coroutines, .limit_s = 60)
{
    require_tool("socat", "test");
    on_each_driver("16_coroutine_echo", echo_little_and_much);
}

TEST(a_unix_socket_echoes_too)
{
    require_tool("socat", "test");
    char where[256];
    struct server s;
    snprintf(where, sizeof(where), "unix:%s/echo.sock", temp_dir());
    start_server(&s, "auto", "11_echo_server", where);
    CHECK_STR_EQ(s.addr, where);
    CHECK_OUTPUT("hello\n", "echo hello | socat -t 10 - UNIX-CONNECT:%s", where + 5);
    stop_server(&s);
}

TEST(a_server_ends_when_it_has_served_as_many_as_it_was_told)
{
    require_tool("socat", "test");
    struct server s;
    start_server(&s, "auto", "11_echo_server", "127.0.0.1:0 --connections 3");
    for (int i = 0; i < 3; i++)
        CHECK_OUTPUT("hello\n", "echo hello | socat -t 10 - TCP:%s", s.addr);
    int status;
    CHECK_EQ(waitpid(s.pid, &status, 0), s.pid);
    CHECK_EQ(status, 0);
}

TEST(the_client_talks_to_the_server_from_a_file_and_from_a_pipe)
{
    struct server s;
    start_server(&s, "auto", "11_echo_server", "127.0.0.1:0");
    CHECK_OUTPUT("",
                 "cd %s && head -c 3000000 /dev/urandom >in && "
                 "%s/examples/12_echo_client %s <in >out && cmp in out",
                 temp_dir(), build_path(), s.addr);
    CHECK_OUTPUT("hello\n", "echo hello | %s/examples/12_echo_client %s", build_path(), s.addr);
    stop_server(&s);
}

/* There is a socket before socat listens at it: a client that is refused tries again. */
TEST(the_client_talks_to_a_server_of_socat, .limit_s = 60)
{
    require_tool("socat", "test");
    CHECK_OUTPUT("hello\n",
                 "cd %s || exit 1; socat UNIX-LISTEN:there.sock EXEC:cat & tries=0; "
                 "until echo hello | %s/examples/12_echo_client unix:there.sock 2>words; do "
                 "tries=$((tries + 1)); [ $tries -le 100 ] || { cat words; kill $!; break; }; "
                 "sleep 0.1; done; wait",
                 temp_dir(), build_path());
}

/* ---- HTTP -------------------------------------------------------------------------------- */

static void browse(const struct server *s)
{
    const char *at = s->addr;
    CHECK_OUTPUT("Hello, web!\n", "curl -sS -m 10 http://%s/", at);
    CHECK_OUTPUT("Hello, web!\nHello, web!\n1 connections\n",
                 "curl -sSv -m 10 http://%s/ http://%s/ 2>%s/words; "
                 "echo $(grep -c '^. *Connected to' %s/words) connections",
                 at, at, temp_dir(), temp_dir());
    CHECK_OUTPUT("404\n", "curl -sS -m 10 -o /dev/null -w '%%{http_code}\\n' http://%s/none", at);
    CHECK_OUTPUT("200 12 0\n",
                 "curl -sS -m 10 -I -o %s/head -w '%%{http_code} ' http://%s/; "
                 "sed -n 's/^Content-Length: \\([0-9]*\\).*/\\1/p' %s/head | tr '\\n' ' '; "
                 "sed '1,/^.$/d' %s/head | wc -c",
                 temp_dir(), at, temp_dir(), temp_dir());
    CHECK_OUTPUT("405 405\n",
                 "curl -sS -m 10 -d hello -o /dev/null -o /dev/null "
                 "-w '%%{http_code} ' http://%s/ http://%s/ | sed 's/ $//'; echo",
                 at, at);
    CHECK_OUTPUT("Hello, web!\n", "curl -sS -0 -m 10 http://%s/", at);
}

TEST(curl_gets_pages_over_one_connection, .limit_s = 60)
{
    require_tool("curl", "test");
    on_each_driver("13_http_hello", browse);
}

#define RAW "Host: x\\r\\n\\r\\n"

static void send_raw(const struct server *s)
{
    const char *at = s->addr;
    CHECK_OUTPUT("200 OK\n404 Not Found\n200 OK\n",
                 "printf 'GET / HTTP/1.1\\r\\n" RAW "GET /x HTTP/1.1\\r\\n" RAW
                 "GET / HTTP/1.1\\r\\n" RAW "' | socat -t 10 - TCP:%s | "
                 "sed -n 's/^HTTP.1.1 \\(.*\\)\\r/\\1/p'",
                 at);
    static const char *const rubbish[][2] = {
        {"\\0\\1\\2\\r\\n\\r\\n", "400 Bad Request"},
        {"GET / HTTP/1.1\\r\\n\\r\\n", "400 Bad Request"}, /* no host */
        {"GET / HTTP/1.1\\r\\nHost : x\\r\\n\\r\\n", "400 Bad Request"},
        {"GET / HTTP/1.1\\nHost: x\\r\\n\\r\\n", "400 Bad Request"},
        {"GET / HTTP/1.1\\r\\nA: b\\r\\n c\\r\\n" RAW, "400 Bad Request"}, /* a folded line */
        {"GET / HTTP/2.0\\r\\n" RAW, "400 Bad Request"},
        {"GET x HTTP/1.1\\r\\n" RAW, "400 Bad Request"},
        {"GET / HTTP/1.1\\r\\nContent-Length: +1\\r\\n" RAW, "400 Bad Request"},
        {"GET / HTTP/1.1\\r\\nContent-Length: 1\\r\\nContent-Length: 1\\r\\n" RAW,
         "400 Bad Request"},
        {"GET / HTTP/1.1\\r\\nContent-Length: 99999999999\\r\\n" RAW, "413 Content Too Large"},
        {"GET / HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n" RAW, "501 Not Implemented"},
    };
    for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++)
        CHECK_OUTPUT(rubbish[i][1],
                     "printf '%s' | socat -t 10 - TCP:%s | "
                     "sed -n 's/^HTTP.1.1 \\(.*\\)\\r/\\1/p' | tr -d '\\n'",
                     rubbish[i][0], at);
    CHECK_OUTPUT("431 Request Header Fields Too Large\n",
                 "head -c 100000 /dev/zero | tr '\\0' 'a' | socat -t 10 - TCP:%s | "
                 "sed -n 's/^HTTP.1.1 \\(.*\\)\\r/\\1/p'",
                 at);
}

TEST(pipelined_requests_are_answered_in_order_and_rubbish_is_refused, .limit_s = 60)
{
    require_tool("socat", "test");
    on_each_driver("13_http_hello", send_raw);
}

/* Not a measurement: only that everything is answered. */
static void load(const struct server *s)
{
    struct command c = run_command("wrk -t 1 -c 32 -d 1s --timeout 30s http://%s/", s->addr);
    CHECK_EQ(c.status, 0);
    const char *requests = strstr(c.output, " requests in ");
    CHECK(requests != NULL);
    while (requests > c.output && requests[-1] >= '0' && requests[-1] <= '9')
        requests--;
    CHECK_GT(strtol(requests, NULL, 10), 0);
    if (strstr(c.output, "Socket errors") != NULL || strstr(c.output, "Non-2xx") != NULL)
        FAIL("there were errors:\n%s", c.output);
    command_finish(&c);
}

TEST(wrk_has_all_its_requests_answered, .limit_s = 60)
{
    require_tool("wrk", "test");
    on_each_driver("13_http_hello", load);
}

/* ---- chat and datagrams ------------------------------------------------------------------ */

static void chat(const struct server *s)
{
    CHECK_OUTPUT("", "rm -rf %s/* && sh %s/tests/examples/chat.sh %s %s", temp_dir(), source_path(),
                 s->addr, temp_dir());
}

TEST(three_guests_of_socat_chat_and_a_deaf_one_is_shown_out, .limit_s = 90)
{
    require_tool("socat", "test");
    on_each_driver("14_chat", chat);
}

/* socat does not know which datagram is the last: it is ended when one has come. */
static void ask_by_datagram(const struct server *s)
{
    CHECK_OUTPUT("ping 1",
                 "cd %s && rm -f heard && mkfifo heard || exit 1; "
                 "printf 'ping 1' | socat -t 10 - UDP:%s >heard & "
                 "dd bs=100 count=1 <heard 2>words; kill $! 2>words; true",
                 temp_dir(), s->addr);
}

TEST(socat_gets_its_datagram_back, .limit_s = 60)
{
    require_tool("socat", "test");
    on_each_driver("15_udp", ask_by_datagram);
}
