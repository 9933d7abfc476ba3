/* SPDX-License-Identifier: MIT */
/* search.c - which executions are made, and how one is named and repeated.
 *
 * Depth first by replay: an execution follows the decisions of the one before up to the last one
 * that has an alternative left, takes that, and from there on always the first. The first is to go
 * on with the current thread, and only `preemptions` times in an execution another one is offered
 * while it could go on: a bound that makes the number of executions polynomial in the steps.
 *
 * Random: each actor gets a priority, the highest runs; at a few random steps the one that runs
 * falls to the lowest. A bug that needs d such changes among n steps is met with a probability of
 * 1 / (threads * n^d) or better in each execution (the PCT argument).
 *
 * Whatever made them, the decisions are recorded, so each execution has a name. */
#include "model/model_priv.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PREEMPTIONS_DEFAULT = 2,
    EXECUTIONS_DEFAULT = 2000000,
    CHANGES = 3, /* of priorities, in a random execution */
#ifdef SINEW_DEBUG
    RANDOM_SHARE = 8, /* what such a build adds, assertions, the exhaustive part meets as well */
#else
    RANDOM_SHARE = 1,
#endif
    VALUE = 128, /* in the record: a value of model_choose, not an actor */
};

enum mode { DEPTH_FIRST, RANDOM, REPLAY };

struct decision {
    uint8_t count;
    uint8_t index;
};

static struct {
    enum mode mode;
    unsigned preemptions_left;
    unsigned depth; /* decisions in this execution so far */
    unsigned known; /* of `decisions`: to be followed */
    struct decision decisions[MODEL_STEPS_MAX];
    uint8_t record[MODEL_STEPS_MAX];
    unsigned recorded;
    const char *schedule; /* REPLAY: what is left of it */
    unsigned repeat;      /* REPLAY: the last actor, so many times more */
    int repeated;
    uint64_t random;
    unsigned priorities[MODEL_ACTORS_MAX];
    unsigned lowest;
    unsigned changes[CHANGES];
    unsigned longest; /* recorded in any execution */
    unsigned asked;   /* explorations that the test has asked for */
    struct model_result result;
} search;

static uint64_t next_random(void)
{
    uint64_t z = search.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- decisions --------------------------------------------------------------------------- */

static void record(unsigned what)
{
    if (search.recorded == MODEL_STEPS_MAX)
        model_fail("more than %d decisions: a livelock", MODEL_STEPS_MAX);
    search.record[search.recorded++] = (uint8_t)what;
}

static unsigned depth_first(unsigned count)
{
    if (count == 1)
        return 0;
    if (search.depth == MODEL_STEPS_MAX)
        model_fail("more than %d decisions: a livelock", MODEL_STEPS_MAX);
    struct decision *decision = &search.decisions[search.depth++];
    if (search.depth > search.known) {
        *decision = (struct decision){.count = (uint8_t)count};
        search.known = search.depth;
    }
    if (decision->count != count)
        FAIL("the model is not deterministic: a decision had %u alternatives and now has %u",
             decision->count, count);
    return decision->index;
}

static unsigned by_priority(const int *actors, unsigned count)
{
    unsigned best = 0;
    for (unsigned i = 1; i < count; i++) {
        if (search.priorities[actors[i]] > search.priorities[actors[best]])
            best = i;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        if (search.changes[i] == search.recorded)
            search.priorities[actors[best]] = search.lowest--;
    }
    return best;
}

/* The next actor of the schedule, or the first one when it has come to its end. */
static unsigned by_schedule(const int *actors, unsigned count)
{
    if (search.repeat == 0) {
        char letter = *search.schedule;
        if (letter == '\0')
            return 0;
        search.schedule++;
        search.repeated = letter >= 'a' ? letter - 'a' : letter - 'A' + MODEL_BUFFER;
        search.repeat = (unsigned)strtoul(search.schedule, (char **)&search.schedule, 10);
        search.repeat = search.repeat == 0 ? 1 : search.repeat;
    }
    search.repeat--;
    for (unsigned i = 0; i < count; i++) {
        if (actors[i] == search.repeated)
            return i;
    }
    FAIL("the schedule does not fit the model, at \"%s\"", search.schedule);
}

int model_decide(const int *actors, unsigned count, bool current_goes_on)
{
    unsigned index = 0;
    switch (search.mode) {
    case DEPTH_FIRST:
        index = depth_first(current_goes_on && search.preemptions_left == 0 ? 1 : count);
        if (current_goes_on && index > 0)
            search.preemptions_left--;
        break;
    case RANDOM:
        index = by_priority(actors, count);
        break;
    case REPLAY:
        index = by_schedule(actors, count);
        break;
    }
    record((unsigned)actors[index]);
    return actors[index];
}

unsigned model_decide_value(unsigned count)
{
    unsigned value = 0;
    if (search.mode == DEPTH_FIRST) {
        value = depth_first(count);
    } else if (search.mode == RANDOM) {
        value = (unsigned)(next_random() % count);
    } else if (*search.schedule == '=') {
        value = (unsigned)(search.schedule[1] - '0') % count;
        search.schedule += 2;
    }
    record(VALUE + value);
    return value;
}

/* ---- the name of an execution ------------------------------------------------------------ */

static void write_schedule(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < search.recorded && used + 16 < bytes;) {
        unsigned what = search.record[i];
        unsigned run = 1;
        while (what < VALUE && i + run < search.recorded && search.record[i + run] == what)
            run++;
        i += run;
        if (what >= VALUE) {
            used += (size_t)snprintf(text + used, bytes - used, "=%u", what - VALUE);
            continue;
        }
        char letter =
            (char)(what < MODEL_BUFFER ? 'a' + (int)what : 'A' + (int)what - MODEL_BUFFER);
        text[used++] = letter;
        text[used] = '\0';
        if (run > 1)
            used += (size_t)snprintf(text + used, bytes - used, "%u", run);
    }
}

/* ---- executions -------------------------------------------------------------------------- */

static bool run_one(const struct model *model, const struct model_options *options)
{
    search.depth = 0;
    search.recorded = 0;
    search.preemptions_left =
        options->preemptions == 0 ? (unsigned)PREEMPTIONS_DEFAULT : options->preemptions;
    bool good = model_run(model, options, &search.result);
    if (search.recorded > search.longest)
        search.longest = search.recorded;
    if (!good)
        write_schedule(search.result.schedule, sizeof(search.result.schedule));
    return good;
}

/* Turn to the next alternative of the last decision that has one. */
static bool advance(void)
{
    search.known = search.depth;
    while (search.known > 0) {
        struct decision *last = &search.decisions[search.known - 1];
        if (last->index + 1 < last->count) {
            last->index++;
            return true;
        }
        search.known--;
    }
    return false;
}

static void prepare_random(uint64_t seed)
{
    search.random = seed;
    search.lowest = 1000;
    for (unsigned i = 0; i < MODEL_ACTORS_MAX; i++)
        search.priorities[i] = 2000 + (unsigned)(next_random() % 1000);
    for (unsigned i = 0; i < CHANGES; i++)
        search.changes[i] = (unsigned)(next_random() % (search.longest + 1));
}

static void start(enum mode mode)
{
    search.mode = mode;
    search.known = 0;
    search.repeat = 0;
    search.result.failed = false;
}

const struct model_result *model_explore(const struct model *model,
                                         const struct model_options *options)
{
    uint64_t most = options->executions_max == 0 ? EXECUTIONS_DEFAULT : options->executions_max;
    memset(&search.result, 0, sizeof(search.result));
    search.longest = 0;
    start(DEPTH_FIRST);
    while (run_one(model, options)) {
        if (!advance()) {
            search.result.exhausted = true;
            break;
        }
        if (search.result.executions >= most)
            break;
    }
    if (search.result.failed)
        return &search.result;
    start(RANDOM);
    uint64_t seed = options->random > 0 ? test_seed() : 0;
    for (uint64_t i = 0; i < options->random / RANDOM_SHARE && !search.result.failed; i++) {
        prepare_random(seed + i);
        (void)run_one(model, options);
    }
    return &search.result;
}

const struct model_result *model_replay(const struct model *model,
                                        const struct model_options *options, const char *schedule)
{
    memset(&search.result, 0, sizeof(search.result));
    start(REPLAY);
    search.schedule = schedule;
    (void)run_one(model, options);
    return &search.result;
}

/* ---- for tests --------------------------------------------------------------------------- */

static void print_result(const struct model_result *result)
{
    printf("%llu executions, %llu steps%s\n", (unsigned long long)result->executions,
           (unsigned long long)result->steps, result->exhausted ? ", exhausted" : "");
    if (result->failed)
        printf("failed: %s\nreplay: SINEW_MODEL_REPLAY=%u:%s\n", result->message, search.asked,
               result->schedule);
    fflush(stdout);
}

/* Counts the explorations of a test, for their schedules do not fit each other. If the developer
 * asks for one execution of one of them, that is all that is done. */
static bool replay_asked(const struct model *model, const struct model_options *options)
{
    search.asked++;
    const char *schedule = getenv("SINEW_MODEL_REPLAY");
    if (schedule == NULL)
        return false;
    char *end;
    if (strtoul(schedule, &end, 10) != search.asked || *end != ':')
        return true;
    const struct model_result *result = model_replay(model, options, end + 1);
    print_result(result);
    if (result->failed)
        FAIL("%s", result->message);
    return true;
}

void model_endures(const struct model *model, const struct model_options *options)
{
    if (replay_asked(model, options))
        return;
    const struct model_result *result = model_explore(model, options);
    print_result(result);
    if (result->failed)
        FAIL("%s\nreplay: SINEW_MODEL_REPLAY=%u:%s", result->message, search.asked,
             result->schedule);
}

void model_holds(const struct model *model, const struct model_options *options)
{
    model_endures(model, options);
    if (getenv("SINEW_MODEL_REPLAY") == NULL && !search.result.exhausted)
        FAIL("the search did not come to its end");
}

void model_finds(const struct model *model, const struct model_options *options, const char *words)
{
    if (replay_asked(model, options))
        return;
    struct model_result found = *model_explore(model, options);
    print_result(&found);
    if (!found.failed)
        FAIL("the planted mistake was not found");
    CHECK_STR_HAS(found.message, words);
    const struct model_result *again = model_replay(model, options, found.schedule);
    CHECK(again->failed);
    CHECK_STR_EQ(again->message, found.message);
    CHECK_STR_EQ(again->schedule, found.schedule);
}
