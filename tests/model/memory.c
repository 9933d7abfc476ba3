/* SPDX-License-Identifier: MIT */
/* memory.c - what an operation reads and writes, and what its order promises.
 *
 * Store buffers. With them, a store that is not seq_cst is put behind the others of its thread; the
 * thread itself reads its newest one, the others read memory. An RMW, a seq_cst store or fence, and
 * the system's park and unpark empty the buffer first. That is the memory of x86. What a thread
 * stores on its own stack does not wait: nobody knows the place before a later operation tells it,
 * and when the buffer is emptied the frame may be gone.
 *
 * Orders. Each thread has a vector of times, its own and of each other thread the last one it knows
 * to be in its past. A release leaves the vector at the word it writes, an acquire that reads that
 * word takes it over; a plain store ends what was left there, an RMW carries it on (the release
 * sequence); fences take and leave on behalf of relaxed operations. An access to plain data is
 * ordered behind another if that other's time is in the vector. */
#include "model/model_priv.h"

#include "model/model_atomic.h"
#include "harness.h"

#include <string.h>

enum {
    BUFFER_MAX = 16, /* more stores than that push the oldest out */
    PLACES = 256,    /* words with something left at them; a power of two */
    RESULTS = 16,    /* operations in one expression */
    LOOKS = 3,       /* at one word that did not change, before others go first */
};

struct clock {
    uint32_t at[MODEL_THREADS_MAX];
};

struct store {
    void *at;
    size_t bytes;
    uint64_t value;
    struct clock left;
};

struct place {
    const void *at;
    struct clock left;
};

struct knowledge {
    struct clock now;   /* what is in the past */
    struct clock heard; /* what an acquire fence would add */
    struct clock told;  /* what relaxed stores leave since the last release fence */
    struct store buffer[BUFFER_MAX];
    unsigned buffered;
    const void *looked_at; /* by its last operations, which were all loads of the same value */
    uint64_t looked;
    unsigned looks;
};

static struct {
    struct knowledge threads[MODEL_THREADS_MAX];
    struct place places[PLACES];
    uint64_t results[RESULTS];
    unsigned result;
} memory;

void model_memory_reset(void)
{
    memset(memory.places, 0, sizeof(memory.places));
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        struct knowledge *k = &memory.threads[i];
        memset(&k->now, 0, sizeof(k->now));
        memset(&k->heard, 0, sizeof(k->heard));
        memset(&k->told, 0, sizeof(k->told));
        k->now.at[i] = 1;
        k->buffered = 0;
        k->looked_at = NULL;
    }
}

static struct knowledge *self(void)
{
    int thread = model_running();
    return thread == MODEL_NOBODY ? NULL : &memory.threads[thread];
}

static void learn(struct clock *clock, const struct clock *from)
{
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        if (clock->at[i] < from->at[i])
            clock->at[i] = from->at[i];
    }
}

/* What is left at a word; made when it is asked for first. */
static struct clock *left_at(const void *at)
{
    uintptr_t hash = (uintptr_t)at / 4 * 2654435761u;
    for (unsigned i = 0; i < PLACES; i++) {
        struct place *place = &memory.places[(hash + i) % PLACES];
        if (place->at == NULL)
            place->at = at;
        if (place->at == at)
            return &place->left;
    }
    FAIL("a model uses more than %d words", PLACES);
}

/* ---- bytes ------------------------------------------------------------------------------- */

static uint64_t read_bytes(const void *at, size_t bytes)
{
    switch (bytes) {
    case 1:
        return *(const uint8_t *)at;
    case 2:
        return *(const uint16_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static void write_bytes(void *at, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(uint8_t *)at = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)at = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)at = (uint32_t)value;
        break;
    default:
        *(uint64_t *)at = value;
        break;
    }
}

/* A place for the value that outlives the expression it is used in. */
static void *give(size_t bytes, uint64_t value)
{
    void *at = &memory.results[memory.result++ % RESULTS];
    write_bytes(at, bytes, value);
    return at;
}

/* ---- orders ------------------------------------------------------------------------------ */

bool model_is_planted(enum model_plant plant, const char *function)
{
    const struct model_options *options = model_options();
    return options->plant == plant && strcmp(options->function, function) == 0;
}

static int order_of(int order, const char *function)
{
    return model_is_planted(MODEL_PLANT_RELAXED, function) ? __ATOMIC_RELAXED : order;
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void hear(struct knowledge *k, const void *at, int order)
{
    const struct clock *left = left_at(at);
    learn(acquires(order) ? &k->now : &k->heard, left);
}

/* What a store of this order leaves. A new time begins with each release. */
static struct clock tell(struct knowledge *k, int order)
{
    if (!releases(order))
        return k->told;
    struct clock left = k->now;
    k->now.at[model_running()]++;
    return left;
}

/* ---- buffers ----------------------------------------------------------------------------- */

bool model_buffer_used(int thread)
{
    return memory.threads[thread].buffered > 0;
}

void model_buffer_flush_one(int thread)
{
    struct knowledge *k = &memory.threads[thread];
    struct store *oldest = &k->buffer[0];
    write_bytes(oldest->at, oldest->bytes, oldest->value);
    model_memory_changed();
    *left_at(oldest->at) = oldest->left;
    k->buffered--;
    memmove(&k->buffer[0], &k->buffer[1], k->buffered * sizeof(k->buffer[0]));
}

void model_buffer_flush(int thread)
{
    while (model_buffer_used(thread))
        model_buffer_flush_one(thread);
}

/* ---- operations -------------------------------------------------------------------------- */

/* A step before a load. A thread that looks at one word again and again waits for another. */
static void step_to_look(const void *at)
{
    const struct knowledge *k = self();
    if (k != NULL && k->looked_at == at && k->looks >= LOOKS)
        model_yield();
    else
        model_step();
}

static void note_look(struct knowledge *k, const void *at, uint64_t value)
{
    bool again = k->looked_at == at && k->looked == value;
    k->looks = again ? k->looks + 1 : 1;
    k->looked_at = at;
    k->looked = value;
}

/* A step before any other operation. */
static struct knowledge *step_to_act(void)
{
    model_step();
    struct knowledge *k = self();
    if (k != NULL)
        k->looked_at = NULL;
    return k;
}

void *model_load(const void *at, size_t bytes, int order, const char *function)
{
    step_to_look(at);
    struct knowledge *k = self();
    if (k == NULL)
        return give(bytes, read_bytes(at, bytes));
    note_look(k, at, read_bytes(at, bytes));
    for (unsigned i = k->buffered; i > 0; i--) {
        if (k->buffer[i - 1].at == at)
            return give(bytes, k->buffer[i - 1].value);
    }
    hear(k, at, order_of(order, function));
    return give(bytes, read_bytes(at, bytes));
}

void model_store(void *at, size_t bytes, uint64_t value, int order, const char *function)
{
    struct knowledge *k = step_to_act();
    if (k == NULL) {
        write_bytes(at, bytes, value);
        return;
    }
    int thread = model_running();
    struct store store = {at, bytes, value, tell(k, order_of(order, function))};
    if (model_owns(at)) {
        write_bytes(at, bytes, value);
        *left_at(at) = store.left;
        return;
    }
    if (k->buffered == BUFFER_MAX)
        model_buffer_flush_one(thread);
    k->buffer[k->buffered++] = store;
    bool at_once = order == __ATOMIC_SEQ_CST && !model_is_planted(MODEL_PLANT_BUFFERED, function);
    if (!model_options()->store_buffers || at_once)
        model_buffer_flush(thread);
}

static uint64_t apply(enum model_rmw op, uint64_t old, uint64_t operand)
{
    switch (op) {
    case MODEL_OR:
        return old | operand;
    case MODEL_AND:
        return old & operand;
    case MODEL_ADD:
        return old + operand;
    case MODEL_SUB:
        return old - operand;
    case MODEL_EXCHANGE:
        break;
    }
    return operand;
}

/* An RMW: its read has been made, now the write. */
static void rmw_write(struct knowledge *k, void *at, size_t bytes, uint64_t value, int order,
                      const char *function)
{
    if (model_is_planted(MODEL_PLANT_SPLIT_RMW, function))
        model_step();
    write_bytes(at, bytes, value);
    model_memory_changed();
    if (k != NULL) {
        struct clock left = tell(k, order);
        learn(left_at(at), &left);
    }
}

void *model_rmw(void *at, size_t bytes, enum model_rmw op, uint64_t operand, int order,
                const char *function)
{
    struct knowledge *k = step_to_act();
    order = order_of(order, function);
    if (k != NULL) {
        model_buffer_flush(model_running());
        hear(k, at, order);
    }
    uint64_t old = read_bytes(at, bytes);
    rmw_write(k, at, bytes, apply(op, old, operand), order, function);
    return give(bytes, old);
}

bool model_cas(void *at, size_t bytes, void *expected, uint64_t value, int success, int failure,
               const char *function)
{
    struct knowledge *k = step_to_act();
    if (k != NULL)
        model_buffer_flush(model_running());
    uint64_t old = read_bytes(at, bytes);
    bool equal = old == read_bytes(expected, bytes);
    int order = order_of(equal ? success : failure, function);
    if (k != NULL)
        hear(k, at, order);
    if (equal)
        rmw_write(k, at, bytes, value, order, function);
    else
        write_bytes(expected, bytes, old);
    return equal;
}

void model_fence(int order, const char *function)
{
    if (model_is_planted(MODEL_PLANT_NO_FENCE, function))
        return;
    struct knowledge *k = step_to_act();
    order = order_of(order, function);
    if (k == NULL)
        return;
    if (order == __ATOMIC_SEQ_CST)
        model_buffer_flush(model_running());
    if (acquires(order))
        learn(&k->now, &k->heard);
    if (releases(order)) {
        k->told = k->now;
        k->now.at[model_running()]++;
    }
}

/* ---- plain data -------------------------------------------------------------------------- */

static void check_ordered(const uint32_t *times, const struct clock *now, const char *what)
{
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        if (times[i] > now->at[i])
            model_fail("a race: thread %d and thread %u, which %s the same data before, are not "
                       "ordered by an acquire of a release",
                       model_running(), i, what);
    }
}

void model_read(struct model_data *data)
{
    struct knowledge *k = self();
    if (k == NULL)
        return;
    check_ordered(data->written, &k->now, "wrote");
    data->read[model_running()] = k->now.at[model_running()];
}

void model_write(struct model_data *data)
{
    struct knowledge *k = self();
    if (k == NULL)
        return;
    check_ordered(data->written, &k->now, "wrote");
    check_ordered(data->read, &k->now, "read");
    data->written[model_running()] = k->now.at[model_running()];
}
