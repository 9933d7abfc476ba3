/* SPDX-License-Identifier: MIT */
/* Power series whose coefficients are computed on demand (R91): the program that channels were
 * once shown with. A series is a task that is asked for its next coefficient by one channel (of
 * elements without size) and tells it by another. Products and the like make more such tasks as
 * they go on, and a series may be defined by itself. tests/go/series.go is the twin in Go.
 *
 * Nothing is made but while somebody is asked. So when the last answer has come, all tasks wait to
 * be asked; closing all channels then ends all of them. */
#include "unit/sync/go_lines.h"
#include "unit/task/with_runtime.h"

#include "harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SERIES_MAX = 4096, /* alive at a time */
    TERMS_MAX = 32,
    GIVEN_MAX = 4,
};

struct rational {
    int64_t num, den; /* in lowest terms, den > 0 */
};

typedef struct series {
    sn_chan *ask, *tell;
} series;

struct op {
    series out, other; /* other: the second one of a tee, or of a knot its own copy */
    series u, v;
    struct rational c;
    int64_t given[GIVEN_MAX];
    int count;
    series (*rest)(const struct op *op, series self);
    sn_chan *self;
};

static struct {
    series all[SERIES_MAX];
    atomic_int count;
    sn_wait_group tasks;
} world;

/* ---- rational numbers ----------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static struct rational ratio(int64_t num, int64_t den)
{
    int64_t g = den < 0 ? -gcd(num, den) : gcd(num, den);
    return (struct rational){num / g, den / g};
}

static struct rational plus(struct rational a, struct rational b)
{
    int64_t g = gcd(a.den, b.den);
    return ratio(a.num * (b.den / g) + b.num * (a.den / g), a.den / g * b.den);
}

static struct rational times(struct rational a, struct rational b)
{
    struct rational x = ratio(a.num, b.den), y = ratio(b.num, a.den);
    return ratio(x.num * y.num, x.den * y.den);
}

/* ---- asking and answering ------------------------------------------------------------------- */

/* False: it is over. */
static bool next(series s, struct rational *c)
{
    return sn_chan_send(s.ask, NULL, SN_FOREVER) == 0 && sn_chan_recv(s.tell, c, SN_FOREVER) == 0;
}

static bool is_asked(series s)
{
    return sn_chan_recv(s.ask, NULL, SN_FOREVER) == 0;
}

static bool answer(series s, struct rational c)
{
    return sn_chan_send(s.tell, &c, SN_FOREVER) == 0;
}

static series make(void)
{
    series s;
    int at = atomic_fetch_add(&world.count, 1);
    CHECK_LT(at, SERIES_MAX);
    CHECK_EQ(sn_chan_create(&s.ask, 0, 0, NULL), 0);
    CHECK_EQ(sn_chan_create(&s.tell, sizeof(struct rational), 0, NULL), 0);
    world.all[at] = s;
    return s;
}

/* Begin the task of op->out. */
static series begin(sn_task_fn *fn, struct op op)
{
    op.out = make();
    CHECK_EQ(sn_wait_group_add(&world.tasks, 1), 0);
    CHECK_EQ(sn_spawn_detached(fn, &op, .copy_bytes = sizeof(op)), 0);
    return op.out;
}

static int end(void)
{
    return sn_wait_group_done(&world.tasks);
}

/* Tell what `u` tells. */
static int go_on_with(series out, series u)
{
    struct rational c;
    while (is_asked(out) && next(u, &c) && answer(out, c))
        ;
    return end();
}

/* After having been asked: as above. */
static int be(series out, series u)
{
    struct rational c;
    return next(u, &c) && answer(out, c) ? go_on_with(out, u) : end();
}

static series behind(series u)
{
    struct rational first;
    (void)next(u, &first);
    return u;
}

/* ---- simple ones ---------------------------------------------------------------------------- */

static int run_polynomial(void *arg)
{
    const struct op *op = arg;
    for (int i = 0; is_asked(op->out); i++)
        if (!answer(op->out, ratio(op->given[i < op->count ? i : op->count - 1], 1)))
            break;
    return end();
}

/* The coefficients given, and the last one for ever. */
#define POLYNOMIAL(...)                        \
    (begin(run_polynomial,                     \
           (struct op){.given = {__VA_ARGS__}, \
                       .count = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}))

static int run_add(void *arg)
{
    const struct op *op = arg;
    struct rational a, b;
    while (is_asked(op->out) && next(op->u, &a) && next(op->v, &b) && answer(op->out, plus(a, b)))
        ;
    return end();
}

static series add(series u, series v)
{
    return begin(run_add, (struct op){.u = u, .v = v});
}

static int run_scale(void *arg)
{
    const struct op *op = arg;
    struct rational a;
    while (is_asked(op->out) && next(op->u, &a) && answer(op->out, times(op->c, a)))
        ;
    return end();
}

static series scale(struct rational c, series u)
{
    return begin(run_scale, (struct op){.c = c, .u = u});
}

static int run_shift(void *arg)
{
    const struct op *op = arg;
    return is_asked(op->out) && answer(op->out, op->c) ? go_on_with(op->out, op->u) : end();
}

/* c + x u */
static series shift(struct rational c, series u)
{
    return begin(run_shift, (struct op){.c = c, .u = u});
}

static int run_differentiate(void *arg)
{
    const struct op *op = arg;
    struct rational a;
    for (int64_t n = 1; is_asked(op->out) && (n > 1 || next(op->u, &a)); n++)
        if (!next(op->u, &a) || !answer(op->out, times(a, ratio(n, 1))))
            break;
    return end();
}

static series differentiate(series u)
{
    return begin(run_differentiate, (struct op){.u = u});
}

static int run_integrate(void *arg)
{
    const struct op *op = arg;
    struct rational a;
    if (is_asked(op->out) && answer(op->out, op->c))
        for (int64_t n = 1; is_asked(op->out) && next(op->u, &a); n++)
            if (!answer(op->out, times(a, ratio(1, n))))
                break;
    return end();
}

static series integrate(series u, struct rational c)
{
    return begin(run_integrate, (struct op){.u = u, .c = c});
}

/* ---- two of one ----------------------------------------------------------------------------- */

struct tee {
    const struct op *op;
    series out[2];
    bool waits[2]; /* it has asked, and has no answer */
    int told[2];
    bool is_working; /* the source was asked */
    int known;
    struct rational c[TERMS_MAX];
};

/* Answer whom it can, and ask the source if need be. */
static bool serve(struct tee *t)
{
    for (int i = 0; i < 2; i++) {
        if (t->waits[i] && t->told[i] < t->known) {
            if (!answer(t->out[i], t->c[t->told[i]++]))
                return false;
            t->waits[i] = false;
        } else if (t->waits[i] && !t->is_working) {
            if (sn_chan_send(t->op->u.ask, NULL, SN_FOREVER) < 0)
                return false;
            t->is_working = true;
        }
    }
    return true;
}

/* While the source is at work, what is known already is told all the same: it may need it. */
static int run_tee(void *arg)
{
    const struct op *op = arg;
    struct tee t = {.op = op, .out = {op->out, op->other}};
    do {
        CHECK_LT(t.known, TERMS_MAX);
        sn_case cases[] = {
            sn_case_recv(t.waits[0] ? NULL : t.out[0].ask, NULL),
            sn_case_recv(t.waits[1] ? NULL : t.out[1].ask, NULL),
            sn_case_recv(t.is_working ? op->u.tell : NULL, &t.c[t.known]),
        };
        int which = sn_select(cases, 3, 0, SN_FOREVER);
        CHECK(which >= 0 && which < 3);
        if (cases[which].result == -EPIPE)
            break;
        if (which < 2) {
            t.waits[which] = true;
        } else {
            t.known++;
            t.is_working = false;
        }
    } while (serve(&t));
    return end();
}

static series tee(series u, series *other)
{
    *other = make();
    return begin(run_tee, (struct op){.u = u, .other = *other});
}

/* ---- made of others ------------------------------------------------------------------------- */

static int run_multiply(void *arg);

static series multiply(series u, series v)
{
    return begin(run_multiply, (struct op){.u = u, .v = v});
}

/* (a + x u)(b + x v) = ab + x (av + bu + x uv) */
static int run_multiply(void *arg)
{
    const struct op *op = arg;
    struct rational a, b;
    if (!is_asked(op->out) || !next(op->u, &a) || !next(op->v, &b) ||
        !answer(op->out, times(a, b)) || !is_asked(op->out))
        return end();
    series u2, v2, u1 = tee(op->u, &u2), v1 = tee(op->v, &v2);
    series crosswise = add(scale(a, v1), scale(b, u1));
    return be(op->out, add(crosswise, shift(ratio(0, 1), multiply(u2, v2))));
}

static int run_substitute(void *arg);

/* `v`, which begins with 0, in place of the x of `u`: u0 + x v' (u' of v) */
static series substitute(series u, series v)
{
    return begin(run_substitute, (struct op){.u = u, .v = v});
}

static int run_substitute(void *arg)
{
    const struct op *op = arg;
    struct rational a;
    if (!is_asked(op->out) || !next(op->u, &a) || !answer(op->out, a) || !is_asked(op->out))
        return end();
    series v2, v1 = tee(op->v, &v2);
    return be(op->out, multiply(behind(v1), substitute(op->u, v2)));
}

/* ---- defined by themselves ------------------------------------------------------------------ */

static int run_knot(void *arg)
{
    const struct op *op = arg;
    series self;
    if (!is_asked(op->out) || !answer(op->out, op->c) || !is_asked(op->out))
        return end();
    CHECK_EQ(sn_chan_recv(op->self, &self, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_release(op->self, SN_CHAN_RECEIVER), 0);
    return be(op->out, op->rest(op, self));
}

/* Begins with op.c, and goes on with what op.rest makes of the series itself. */
static series knot(struct op op)
{
    series again;
    CHECK_EQ(sn_chan_create(&op.self, sizeof(series), 1, NULL), 0);
    series mine = tee(begin(run_knot, op), &again);
    CHECK_EQ(sn_chan_send(op.self, &again, SN_FOREVER), 0);
    CHECK_EQ(sn_chan_release(op.self, SN_CHAN_SENDER), 0);
    return mine;
}

static series rest_of_reciprocal(const struct op *op, series self)
{
    return scale(ratio(-op->c.num, op->c.den), multiply(op->u, self));
}

/* r = 1/(a + x u): r0 = 1/a, and then -r0 u r */
static series reciprocal(series u)
{
    struct rational a;
    CHECK(next(u, &a));
    return knot((struct op){.c = ratio(a.den, a.num), .u = u, .rest = rest_of_reciprocal});
}

static series rest_of_exponential(const struct op *op, series self)
{
    return behind(integrate(multiply(self, differentiate(op->u)), ratio(1, 1)));
}

/* e' = u' e, and e0 = 1 as u0 is 0 */
static series exponential(series u)
{
    return knot((struct op){.c = {1, 1}, .u = u, .rest = rest_of_exponential});
}

static series rest_of_tangent(const struct op *op, series self)
{
    (void)op;
    series b, a = tee(self, &b);
    return behind(integrate(add(POLYNOMIAL(1, 0), multiply(a, b)), ratio(0, 1)));
}

/* t' = 1 + t t */
static series tangent(void)
{
    return knot((struct op){.c = {0, 1}, .rest = rest_of_tangent});
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void open_world(void)
{
    atomic_store(&world.count, 0);
    world.tasks = (sn_wait_group)SN_WAIT_GROUP_INIT;
}

static void close_world(void)
{
    int n = atomic_load(&world.count);
    for (int i = 0; i < n; i++)
        CHECK_EQ(sn_chan_close(world.all[i].ask) | sn_chan_close(world.all[i].tell), 0);
    CHECK_EQ(sn_wait_group_wait(&world.tasks, SN_FOREVER), 0);
    CHECK_EQ(atomic_load(&world.count), n);
    for (int i = 0; i < n; i++)
        CHECK_EQ(sn_chan_destroy(world.all[i].ask) | sn_chan_destroy(world.all[i].tell), 0);
}

static void say_one(const char *name, series u, int terms)
{
    char line[512] = "";
    for (int i = 0, at = 0; i < terms; i++) {
        struct rational c;
        CHECK(next(u, &c));
        at += snprintf(line + at, sizeof(line) - (size_t)at, c.den == 1 ? " %lld" : " %lld/%lld",
                       (long long)c.num, (long long)c.den);
    }
    say("%s:%s", name, line);
    close_world();
    open_world();
}

void say_series(int terms)
{
    struct rational zero = {0, 1};
    open_world();
    say_one("ones", POLYNOMIAL(1), terms);
    say_one("ones and twos", add(POLYNOMIAL(1), POLYNOMIAL(2)), terms);
    say_one("ones squared", multiply(POLYNOMIAL(1), POLYNOMIAL(1)), terms);
    say_one("ones differentiated", differentiate(POLYNOMIAL(1)), terms);
    say_one("ones integrated", integrate(POLYNOMIAL(1), zero), terms);
    say_one("1 / ones", reciprocal(POLYNOMIAL(1)), terms);
    say_one("1 / (2 - x)", reciprocal(POLYNOMIAL(2, -1, 0)), terms);
    say_one("exp x", exponential(POLYNOMIAL(0, 1, 0)), terms);
    say_one("exp of ones integrated", exponential(integrate(POLYNOMIAL(1), zero)), terms);
    say_one("ones of x + x^2", substitute(POLYNOMIAL(1), POLYNOMIAL(0, 1, 1, 0)), terms);
    say_one("atan", integrate(substitute(POLYNOMIAL(1), POLYNOMIAL(0, 0, -1, 0)), zero), terms);
    say_one("tan", tangent(), terms);
}

/* ---- what must come out --------------------------------------------------------------------- */

static void check_next(series u, int64_t num, int64_t den)
{
    struct rational c;
    CHECK(next(u, &c));
    CHECK_EQ(c.num, num);
    CHECK_EQ(c.den, den);
}

TASK_TEST(the_exponential_series_has_the_reciprocals_of_the_factorials)
{
    (void)arg;
    open_world();
    series e = exponential(POLYNOMIAL(0, 1, 0));
    for (int64_t n = 0, factorial = 1; n < 12; n++, factorial *= n)
        check_next(e, 1, factorial);
    close_world();
    return 0;
}

TASK_TEST(a_series_times_its_reciprocal_is_one)
{
    (void)arg;
    open_world();
    series again, u = tee(POLYNOMIAL(3, -1, 2, 0), &again);
    series one = multiply(reciprocal(u), again);
    for (int n = 0; n < 8; n++)
        check_next(one, n == 0, 1);
    close_world();
    return 0;
}

TASK_TEST(the_derivative_of_an_integral_is_the_series_itself)
{
    (void)arg;
    open_world();
    series u = differentiate(integrate(POLYNOMIAL(5, 7, 11, 13), ratio(1, 3)));
    static const int64_t expected[] = {5, 7, 11, 13, 13, 13};
    for (int n = 0; n < 6; n++)
        check_next(u, expected[n], 1);
    close_world();
    return 0;
}
