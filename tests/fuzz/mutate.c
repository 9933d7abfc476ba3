/* SPDX-License-Identifier: MIT */
/* The driver of a fuzz target where there is no libFuzzer: examples, and examples gone wrong. What
 * goes wrong is what parsers get wrong: a byte changed, lost, doubled or put in, a piece repeated,
 * an end cut off, the beginning of one example with the end of another. */
#include "fuzz.h"
#include "harness.h"

#include "base/rand.h"

#include <string.h>

enum {
    INPUTS = 200000,
    INPUT_BYTES_MAX = 512,
    MUTATIONS_MAX = 4,
    REACHED_MIN = 100,
};

struct input {
    size_t bytes;
    uint8_t data[INPUT_BYTES_MAX];
};

static size_t example_count(void)
{
    size_t count = 0;
    while (fuzz_examples[count] != NULL)
        count++;
    return count;
}

static const char *pick_example(struct sni_rand *r)
{
    return fuzz_examples[sni_rand_below(r, (uint32_t)example_count())];
}

/* A byte that stands in some example, or now and then any. */
static uint8_t pick_byte(struct sni_rand *r)
{
    const char *example = pick_example(r);
    size_t length = strlen(example);
    if (length == 0 || sni_rand_below(r, 8) == 0)
        return (uint8_t)sni_rand_below(r, 256);
    return (uint8_t)example[sni_rand_below(r, (uint32_t)length)];
}

/* Some place in the input, its end included. */
static size_t pick_place(struct sni_rand *r, const struct input *in)
{
    return sni_rand_below(r, (uint32_t)in->bytes + 1);
}

/* Put `count` bytes in at `at`, unless there is no room. */
static void put_in(struct input *in, size_t at, const uint8_t *bytes, size_t count)
{
    uint8_t copy[INPUT_BYTES_MAX]; /* they may be the input's own */
    if (in->bytes + count > INPUT_BYTES_MAX)
        return;
    memcpy(copy, bytes, count);
    memmove(in->data + at + count, in->data + at, in->bytes - at);
    memcpy(in->data + at, copy, count);
    in->bytes += count;
}

static void take_out(struct input *in, size_t at, size_t count)
{
    memmove(in->data + at, in->data + at + count, in->bytes - at - count);
    in->bytes -= count;
}

static void mutate(struct sni_rand *r, struct input *in)
{
    size_t at = pick_place(r, in);
    size_t left = in->bytes - at;
    size_t count = left > 0 ? sni_rand_below(r, (uint32_t)left) + 1 : 0;
    uint8_t byte = pick_byte(r);
    const char *other = pick_example(r);
    size_t other_at = sni_rand_below(r, (uint32_t)strlen(other) + 1);
    switch (sni_rand_below(r, 7)) {
    case 0:
    case 1: /* the change that most often leaves something acceptable */
        if (left > 0)
            in->data[at] = byte;
        break;
    case 2:
        put_in(in, at, &byte, 1);
        break;
    case 3:
        take_out(in, at, count > 0);
        break;
    case 4:
        put_in(in, at, in->data + at, count);
        break;
    case 5:
        take_out(in, at, count);
        break;
    case 6:
        take_out(in, at, left);
        put_in(in, at, (const uint8_t *)other + other_at, strlen(other) - other_at);
        break;
    }
}

static void make_input(struct sni_rand *r, struct input *in)
{
    const char *example = pick_example(r);
    uint32_t mutations = 1 + sni_rand_below(r, MUTATIONS_MAX);
    in->bytes = 0;
    put_in(in, 0, (const uint8_t *)example, strlen(example));
    for (uint32_t i = 0; i < mutations; i++)
        mutate(r, in);
}

TEST(no_example_breaks_an_invariant)
{
    CHECK_GT(example_count(), 0);
    for (size_t i = 0; fuzz_examples[i] != NULL; i++)
        CHECK_EQ(
            LLVMFuzzerTestOneInput((const uint8_t *)fuzz_examples[i], strlen(fuzz_examples[i])), 0);
}

TEST(no_mutated_example_breaks_an_invariant, .limit_s = 60)
{
    struct sni_rand r;
    struct input in;
    sni_rand_init(&r, test_seed());
    for (int i = 0; i < INPUTS; i++) {
        make_input(&r, &in);
        CHECK_EQ(LLVMFuzzerTestOneInput(in.data, in.bytes), 0);
    }
    for (size_t i = 0; fuzz_counts[i].what != NULL; i++) {
        printf("%s: %lu of %d\n", fuzz_counts[i].what, fuzz_counts[i].times, INPUTS);
        CHECK_GE(fuzz_counts[i].times, REACHED_MIN);
    }
}
