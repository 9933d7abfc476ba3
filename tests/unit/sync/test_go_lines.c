/* SPDX-License-Identifier: MIT */
/* What Go's channels do, ours do (R91, R92): each operation in each state of a channel, closes,
 * selects, the sieve, chains of tasks, elements of no size, power series. All of it is said in
 * lines; tests/go says the same in Go, and tests/go/behaviour.expected is what both must say.
 *
 * Where the contract differs on purpose, the lines say the same word for both: what panics in Go
 * gives -EPIPE here ("closed"); a receive from a closed channel gives the zero value in Go, and
 * -EPIPE here ("0 false"). A nil channel is one that takes no part in a select; called directly it
 * blocks for ever in Go, and is refused here. Closing twice is fine here. */
#include "unit/sync/go_lines.h"
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char text[1 << 14];
    size_t len;
} said;

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t room = sizeof(said.text) - said.len;
    int n = vsnprintf(said.text + said.len, room, fmt, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n + 1 < room);
    said.len += (size_t)n;
    said.text[said.len++] = '\n';
    said.text[said.len] = '\0';
}

/* ---- one operation, without waiting ---------------------------------------------------------- */

static const char blocked[] = "would wait";

struct word {
    char text[32];
};

static struct word word_of(int which, int result, const char *done, int value)
{
    struct word w;
    if (which == -ETIMEDOUT)
        snprintf(w.text, sizeof(w.text), "%s", blocked);
    else if (which == 0 && result == -EPIPE)
        snprintf(w.text, sizeof(w.text), "closed");
    else if (which == 0 && result == 0)
        snprintf(w.text, sizeof(w.text), done, value);
    else
        FAIL("a select gave %d, and the case %d", which, result);
    return w;
}

/* By a select, in which NULL is a channel that never can. */
static struct word try_send(sn_chan *ch, int v)
{
    sn_case c = sn_case_send(ch, &v);
    int which = sn_select(&c, 1, 0, SN_NOWAIT);
    return word_of(which, c.result, "sent", 0);
}

static struct word try_recv(sn_chan *ch)
{
    int v = -1;
    sn_case c = sn_case_recv(ch, &v);
    int which = sn_select(&c, 1, 0, SN_NOWAIT);
    struct word w = word_of(which, c.result, "got %d", v);
    return w;
}

/* The plain calls must say the same, where they are allowed. */
static struct word send_now(sn_chan *ch, int v)
{
    int rc = ch == NULL ? -ETIMEDOUT : sn_chan_send(ch, &v, SN_NOWAIT);
    return word_of(rc == -EPIPE ? 0 : rc, rc, "sent", 0);
}

static struct word recv_now(sn_chan *ch)
{
    int v = -1, rc = ch == NULL ? -ETIMEDOUT : sn_chan_recv(ch, &v, SN_NOWAIT);
    return word_of(rc == -EPIPE ? 0 : rc, rc, "got %d", v);
}

static struct word send_when_possible(sn_chan *ch, int v)
{
    struct word w;
    while (w = try_send(ch, v), strcmp(w.text, blocked) == 0)
        sn_yield();
    return w;
}

static struct word recv_when_possible(sn_chan *ch)
{
    struct word w;
    while (w = try_recv(ch), strcmp(w.text, blocked) == 0)
        sn_yield();
    return w;
}

static sn_chan *filled(size_t capacity, int values, bool closed)
{
    sn_chan *ch = NULL;
    CHECK_EQ(sn_chan_create(&ch, sizeof(int), capacity, NULL), 0);
    for (int v = 1; v <= values; v++)
        CHECK_EQ(sn_chan_send(ch, &v, SN_NOWAIT), 0);
    if (closed)
        CHECK_EQ(sn_chan_close(ch), 0);
    return ch;
}

static void say_states(bool by_select)
{
    static const struct {
        const char *name;
        size_t capacity;
        int values;
        bool closed;
    } states[] = {
        {"unbuffered", 0, 0, false},        {"empty", 2, 0, false},
        {"half full", 2, 1, false},         {"full", 2, 2, false},
        {"unbuffered, closed", 0, 0, true}, {"empty, closed", 2, 0, true},
        {"half full, closed", 2, 1, true},  {"full, closed", 2, 2, true},
    };
    struct word (*send)(sn_chan *, int) = by_select ? try_send : send_now;
    struct word (*recv)(sn_chan *) = by_select ? try_recv : recv_now;
    say("nil: send %s, receive %s", send(NULL, 9).text, recv(NULL).text);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        const char *name = states[i].name;
        sn_chan *ch = filled(states[i].capacity, states[i].values, states[i].closed);
        sn_chan *twin = filled(states[i].capacity, states[i].values, states[i].closed);
        say("%s: length %zu of %zu", name, sn_chan_len(ch), sn_chan_cap(ch));
        say("%s: send %s", name, send(twin, 9).text);
        for (int k = 1; k <= 3; k++)
            say("%s: receive %d %s", name, k, recv(ch).text);
        CHECK_EQ(sn_chan_destroy(ch) | sn_chan_destroy(twin), 0);
    }
}

/* ---- somebody waits -------------------------------------------------------------------------- */

struct visit {
    sn_chan *ch;
    int value;
    struct word result;
};

static int visit_to_recv(void *arg)
{
    struct visit *v = arg;
    v->value = 0;
    int rc = sn_chan_recv(v->ch, &v->value, SN_FOREVER);
    CHECK(rc == 0 || rc == -EPIPE);
    snprintf(v->result.text, sizeof(v->result.text), "%d %s", rc == 0 ? v->value : 0,
             rc == 0 ? "true" : "false");
    return 0;
}

static int visit_to_send(void *arg)
{
    struct visit *v = arg;
    int rc = sn_chan_send(v->ch, &v->value, SN_FOREVER);
    CHECK(rc == 0 || rc == -EPIPE);
    snprintf(v->result.text, sizeof(v->result.text), "%s", rc == 0 ? "done" : "closed");
    return 0;
}

static void say_waiting(int capacity)
{
    struct visit v = {.ch = filled((size_t)capacity, 0, false)};
    sn_task *t = sn_spawn(visit_to_recv, &v);
    struct word mine = send_when_possible(v.ch, 5);
    CHECK_EQ(sn_join(t, NULL), 0);
    say("a receiver waits at %d: send %s, it gets %s", capacity, mine.text, v.result.text);
    for (int i = 0; i < capacity; i++)
        CHECK_EQ(sn_chan_send(v.ch, &i, SN_NOWAIT), 0);
    v.value = 6;
    t = sn_spawn(visit_to_send, &v);
    for (int i = 0; i < capacity; i++)
        say("it had %s", recv_when_possible(v.ch).text);
    mine = recv_when_possible(v.ch);
    CHECK_EQ(sn_join(t, NULL), 0);
    say("a sender waits at %d: receive %s, it is %s", capacity, mine.text, v.result.text);
    t = sn_spawn(visit_to_recv, &v);
    sn_yield();
    CHECK_EQ(sn_chan_close(v.ch) | sn_join(t, NULL), 0);
    say("a receiver waits at %d: after the close it gets %s", capacity, v.result.text);
    struct visit w = {.ch = filled((size_t)capacity, capacity, false), .value = 7};
    t = sn_spawn(visit_to_send, &w);
    sn_yield();
    CHECK_EQ(sn_chan_close(w.ch) | sn_join(t, NULL), 0);
    say("a sender waits at %d: after the close it is %s", capacity, w.result.text);
    CHECK_EQ(sn_chan_destroy(v.ch) | sn_chan_destroy(w.ch), 0);
}

/* ---- selects --------------------------------------------------------------------------------- */

static struct word pick(sn_chan *a, sn_chan *b, sn_chan *c)
{
    static const char *const names[] = {"first", "second"};
    int v[2] = {0, 0}, sent = 8;
    sn_case cases[] = {sn_case_recv(a, &v[0]), sn_case_recv(b, &v[1]), sn_case_send(c, &sent)};
    int which = sn_select(cases, 3, 0, SN_NOWAIT);
    struct word w;
    if (which == -ETIMEDOUT)
        snprintf(w.text, sizeof(w.text), "default");
    else if (which == 2 && cases[2].result == 0)
        snprintf(w.text, sizeof(w.text), "third");
    else if (which == 0 || which == 1)
        snprintf(w.text, sizeof(w.text), "%s %d %s", names[which],
                 cases[which].result == 0 ? v[which] : 0,
                 cases[which].result == 0 ? "true" : "false");
    else
        FAIL("a select gave %d", which);
    return w;
}

static void say_selects(void)
{
    sn_chan *full = filled(1, 1, false), *empty = filled(1, 0, false), *over = filled(1, 1, true);
    say("select nil nil nil: %s", pick(NULL, NULL, NULL).text);
    say("select empty nil full: %s", pick(empty, NULL, full).text);
    say("select full nil nil: %s", pick(full, NULL, NULL).text);
    say("select empty closed nil: %s", pick(empty, over, NULL).text);
    say("select empty closed nil: %s", pick(empty, over, NULL).text);
    say("select nil nil empty: %s", pick(NULL, NULL, empty).text);
    say("select nil empty nil: %s", pick(NULL, empty, NULL).text);
    CHECK_EQ(sn_chan_destroy(full) | sn_chan_destroy(empty) | sn_chan_destroy(over), 0);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct stage {
    sn_chan *from, *to;
    int64_t factor, summand;
    int prime;
};

static int count_up(void *arg)
{
    const struct stage *s = arg;
    for (int i = 2; sn_chan_send(s->to, &i, SN_FOREVER) == 0; i++)
        ;
    return 0;
}

static int strain(void *arg)
{
    const struct stage *s = arg;
    int n;
    while (sn_chan_recv(s->from, &n, SN_FOREVER) == 0)
        if (n % s->prime != 0 && sn_chan_send(s->to, &n, SN_FOREVER) < 0)
            break;
    return sn_chan_close(s->from); /* the end runs against the stream */
}

static void say_sieve(void)
{
    enum { PRIMES = 40 };
    static struct stage s[PRIMES + 1];
    sn_task *t[PRIMES + 1];
    s[0] = (struct stage){.to = filled(0, 0, false)};
    t[0] = sn_spawn(count_up, &s[0]);
    for (int i = 1; i <= PRIMES; i++) {
        s[i] = (struct stage){.from = s[i - 1].to, .to = filled(0, 0, false)};
        CHECK_EQ(sn_chan_recv(s[i].from, &s[i].prime, SN_FOREVER), 0);
        say("prime %d: %d", i, s[i].prime);
        t[i] = sn_spawn(strain, &s[i]);
    }
    CHECK_EQ(sn_chan_close(s[PRIMES].to), 0);
    for (int i = 0; i <= PRIMES; i++)
        CHECK_EQ(sn_join(t[i], NULL), 0);
    for (int i = 0; i <= PRIMES; i++)
        CHECK_EQ(sn_chan_destroy(s[i].to), 0);
}

static int compute(void *arg)
{
    const struct stage *s = arg;
    int64_t n = -1;
    CHECK_EQ(sn_chan_recv(s->from, &n, SN_FOREVER), 0);
    n = n * s->factor + s->summand;
    return sn_chan_send(s->to, &n, SN_FOREVER);
}

static void say_chain(int tasks, int64_t factor, int64_t summand, const char *name)
{
    enum { TASKS_MAX = 1000 };
    static struct stage s[TASKS_MAX];
    static sn_task *t[TASKS_MAX];
    sn_chan *first = NULL, *last;
    int64_t n = 1;
    CHECK_EQ(sn_chan_create(&first, sizeof(int64_t), 0, NULL), 0);
    last = first;
    for (int i = 0; i < tasks; i++) {
        s[i] = (struct stage){.from = last, .factor = factor, .summand = summand};
        CHECK_EQ(sn_chan_create(&s[i].to, sizeof(int64_t), 0, NULL), 0);
        last = s[i].to;
        t[i] = sn_spawn(compute, &s[i]);
    }
    CHECK_EQ(sn_chan_send(first, &n, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_recv(last, &n, SN_FOREVER), 0);
    say("%d %s: %lld", tasks, name, (long long)n);
    for (int i = 0; i < tasks; i++)
        CHECK_EQ(sn_join(t[i], NULL) | sn_chan_destroy(s[i].from), 0);
    CHECK_EQ(sn_chan_destroy(last), 0);
}

static int put_a_token(void *arg)
{
    sn_chan *ch = arg;
    int rc = sn_chan_send(ch, NULL, SN_FOREVER);
    return rc < 0 ? rc : sn_chan_release(ch, SN_CHAN_SENDER); /* the last one closes it */
}

static void say_tokens(size_t capacity)
{
    sn_chan *tokens = NULL;
    int count = 0;
    CHECK_EQ(sn_chan_create(&tokens, 0, capacity, NULL), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(sn_chan_acquire(tokens, SN_CHAN_SENDER), 0);
        CHECK_EQ(sn_spawn_detached(put_a_token, tokens), 0);
    }
    CHECK_EQ(sn_chan_release(tokens, SN_CHAN_SENDER), 0);
    while (sn_chan_recv(tokens, NULL, SN_FOREVER) == 0)
        count++;
    say("tokens through %zu: %d", capacity, count);
    CHECK_EQ(sn_chan_release(tokens, SN_CHAN_RECEIVER), 0);
}

/* ---- compared -------------------------------------------------------------------------------- */

static int say_all(void *arg)
{
    const bool *by_select = arg;
    said.len = 0;
    say_states(by_select == NULL || *by_select);
    say_waiting(0);
    say_waiting(1);
    say_selects();
    say_sieve();
    say_chain(1000, 1, 1, "that add one");
    say_chain(40, 2, 0, "that double");
    say_tokens(0);
    say_tokens(3);
    say_series(10);
    return 0;
}

/* Line by line, so that a difference is shown and not two novels. */
static void compare(const char *who, const char *lines)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/go/behaviour.expected", source_path());
    char *expected = read_file(path);
    const char *a = lines, *b = expected;
    for (int line = 1; *a != '\0' || *b != '\0'; line++) {
        size_t m = strcspn(a, "\n"), n = strcspn(b, "\n");
        if (m != n || memcmp(a, b, n) != 0)
            FAIL("line %d: %s says \"%.*s\", expected was \"%.*s\"", line, who, (int)m, a, (int)n,
                 b);
        a += m + (a[m] == '\n');
        b += n + (b[n] == '\n');
    }
    free(expected);
}

TASK_TEST(channels_say_what_the_expected_lines_say)
{
    CHECK_EQ(say_all(arg), 0);
    compare("Sinew", said.text);
    return 0;
}

TEST(calls_that_do_not_wait_say_the_same_as_selects)
{
    bool by_select = false;
    CHECK_EQ(run_with(&(sn_runtime_options){.single_threaded = true}, say_all, &by_select), 0);
    compare("Sinew", said.text);
}

/* Also where there is no Go this is a test: of the file that others trust, which has all lines. */
TEST(go_says_what_the_expected_lines_say, .limit_s = 120)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/go/behaviour.expected", source_path());
    char *expected = read_file(path);
    CHECK_STR_HAS(expected, "\nprime 40: 173\n");
    CHECK_STR_HAS(expected, "\ntan: 0 1 0 1/3 0 2/15");
    free(expected);
    struct command go = run_command("command -v go");
    if (go.status == 0) {
        command_finish(&go);
        go = run_command("cd %s/tests/go && GOCACHE=%s/go-cache GOFLAGS=-mod=mod GOPROXY=off "
                         "GOTOOLCHAIN=local GOWORK=off go run .",
                         source_path(), build_path());
        if (go.status != 0)
            FAIL("go run ended with %d:\n%s", go.status, go.output);
        compare("Go", go.output);
    }
    command_finish(&go);
}
