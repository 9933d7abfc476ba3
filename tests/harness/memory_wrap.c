/* SPDX-License-Identifier: MIT */
/* memory_wrap.c - a book of live allocations, and allocations that fail on demand.
 *
 * The linker's --wrap sends every call of malloc and its kin in statically linked code here; calls
 * inside shared libraries, libc's own among them, do not come by. So strdup's block is unknown to
 * the book, and freeing an unknown block just frees it. The one thing that misleads the book is a
 * block allocated by us and freed inside libc, as getline does when it enlarges a buffer of ours.
 *
 * The book is a hash table with linear probing, in memory from mmap so that keeping it allocates
 * nothing. A block leaves the book *before* it is freed: once freed, another thread may get the
 * same address and enter it. Nothing is written before memory_watch, that is in the runner.
 *
 * Fault injection compares a counter of attempts with the number of the one to fail, so that
 * exactly one allocation fails however many threads allocate. */
#include "harness_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void __real_free(void *address);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
void __wrap_free(void *address);

/* --- The book --------------------------------------------------------------------------------- */

struct block {
    void *address; /* NULL: an empty place */
    size_t bytes;
    const void *caller; /* return address of the allocation */
};

enum { PLACES_AT_FIRST = 1 << 12 };

static_assert((PLACES_AT_FIRST & (PLACES_AT_FIRST - 1)) == 0, "masking needs a power of two");

static struct {
    pthread_mutex_t lock;
    struct block *places;      /* under lock; `capacity` of them, at most half in use */
    size_t capacity;           /* under lock; a power of two */
    size_t used;               /* under lock */
    _Atomic bool open;         /* set once, by memory_watch; until then nothing is entered */
    _Atomic uint64_t attempts; /* allocations tried since then */
    _Atomic uint64_t fail_at;  /* the attempt that is to fail; 0: none */
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void book_lock(void)
{
    pthread_mutex_lock(&book.lock);
}

static void book_unlock(void)
{
    pthread_mutex_unlock(&book.lock);
}

static size_t home_of(const void *address)
{
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 32) & (book.capacity - 1);
}

/* The place of `address`, or the empty place where it belongs. Call with the lock held. */
static struct block *place_of(const void *address)
{
    size_t at = home_of(address);
    while (book.places[at].address != NULL && book.places[at].address != address)
        at = (at + 1) & (book.capacity - 1);
    return &book.places[at];
}

static struct block *map_places(size_t capacity)
{
    void *places = mmap(NULL, capacity * sizeof(struct block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (places == MAP_FAILED)
        harness_fail(NULL, 0, "no memory to keep book of %zu allocations", capacity / 2);
    return places;
}

static void book_grow(void)
{
    struct block *old = book.places;
    size_t old_capacity = book.capacity;
    book.places = map_places(old_capacity * 2);
    book.capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].address != NULL)
            *place_of(old[i].address) = old[i];
    munmap(old, old_capacity * sizeof *old);
}

static void book_enter(void *address, size_t bytes, const void *caller)
{
    if (address == NULL || !atomic_load(&book.open))
        return;
    book_lock();
    if (book.used >= book.capacity / 2)
        book_grow();
    struct block *place = place_of(address);
    if (place->address == NULL) /* else: freed behind our back, see the top of the file */
        book.used++;
    *place = (struct block){.address = address, .bytes = bytes, .caller = caller};
    book_unlock();
}

/* Empty a place and move up those behind it that can no longer be reached over the gap. */
static void place_clear(struct block *place)
{
    size_t mask = book.capacity - 1;
    size_t gap = (size_t)(place - book.places);
    size_t at = gap;
    for (;;) {
        at = (at + 1) & mask;
        if (book.places[at].address == NULL)
            break;
        size_t distance = (at - home_of(book.places[at].address)) & mask;
        if (distance >= ((at - gap) & mask)) {
            book.places[gap] = book.places[at];
            gap = at;
        }
    }
    book.places[gap].address = NULL;
    book.used--;
}

/* Take a block out; the result has a NULL address when it was not in the book. */
static struct block book_strike(void *address)
{
    struct block found = {0};
    if (address == NULL || !atomic_load(&book.open))
        return found;
    book_lock();
    struct block *place = place_of(address);
    if (place->address != NULL) {
        found = *place;
        place_clear(place);
    }
    book_unlock();
    return found;
}

/* --- The wrapped calls ------------------------------------------------------------------------ */

/* Count one attempt; true when it is the one that must fail. */
static bool attempt_fails(void)
{
    if (!atomic_load(&book.open))
        return false;
    uint64_t number = atomic_fetch_add(&book.attempts, 1) + 1;
    if (number != atomic_load(&book.fail_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    if (attempt_fails())
        return NULL;
    void *address = __real_malloc(bytes);
    book_enter(address, bytes, __builtin_return_address(0));
    return address;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    if (attempt_fails())
        return NULL;
    void *address = __real_calloc(count, bytes);
    book_enter(address, count * bytes, __builtin_return_address(0));
    return address;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (attempt_fails())
        return NULL;
    struct block before = book_strike(old);
    void *address = __real_realloc(old, bytes);
    if (address != NULL)
        book_enter(address, bytes, __builtin_return_address(0));
    else if (bytes > 0) /* it failed and `old` lives on; with 0 bytes it is freed */
        book_enter(before.address, before.bytes, before.caller);
    return address;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    if (attempt_fails())
        return NULL;
    void *address = __real_aligned_alloc(alignment, bytes);
    book_enter(address, bytes, __builtin_return_address(0));
    return address;
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (attempt_fails())
        return ENOMEM;
    int rc = __real_posix_memalign(out, alignment, bytes);
    if (rc == 0)
        book_enter(*out, bytes, __builtin_return_address(0));
    return rc;
}

void __wrap_free(void *address)
{
    book_strike(address);
    __real_free(address);
}

/* --- Around the body -------------------------------------------------------------------------- */

/* The runner's own allocations were never entered. */
void memory_ignore(void)
{
}

void memory_watch(void)
{
    book.capacity = PLACES_AT_FIRST;
    book.places = map_places(book.capacity);
    /* A process forked by the test must not inherit the lock in the hands of a lost thread. */
    pthread_atfork(book_lock, book_unlock, book_unlock);
    atomic_store(&book.open, true);
}

/* "64 bytes allocated at test_chan+0x1234 (sn_chan_create)", for addr2line -e. */
static void say_block(const struct block *block)
{
    Dl_info info;
    const char *call = (const char *)block->caller - 1; /* inside the call, not after it */
    if (dladdr(call, &info) == 0) {
        fprintf(stderr, "leaked: %zu bytes allocated at %p\n", block->bytes, block->caller);
        return;
    }
    fprintf(stderr, "leaked: %zu bytes allocated at %s+0x%zx%s%s%s\n", block->bytes, info.dli_fname,
            (size_t)(call - (const char *)info.dli_fbase), info.dli_sname != NULL ? " (" : "",
            info.dli_sname != NULL ? info.dli_sname : "", info.dli_sname != NULL ? ")" : "");
}

void memory_check(void)
{
    enum { SHOWN = 5 };
    struct block shown[SHOWN];
    size_t blocks = 0;
    size_t bytes = 0;
    book_lock();
    for (size_t i = 0; i < book.capacity; i++) {
        if (book.places[i].address == NULL)
            continue;
        if (blocks < SHOWN)
            shown[blocks] = book.places[i];
        blocks++;
        bytes += book.places[i].bytes;
    }
    book_unlock();
    if (blocks == 0)
        return;
    for (size_t i = 0; i < blocks && i < SHOWN; i++)
        say_block(&shown[i]);
    harness_fail(NULL, 0, "leaked %zu bytes in %zu blocks", bytes, blocks);
}

void alloc_fail_at(uint64_t k)
{
    atomic_store(&book.fail_at, k == 0 ? 0 : atomic_load(&book.attempts) + k);
}

uint64_t alloc_count(void)
{
    return atomic_load(&book.attempts);
}
