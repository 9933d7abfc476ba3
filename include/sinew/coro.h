/* SPDX-License-Identifier: MIT */
/* coro.h - stackless coroutines in plain C11 (Level 0).
 *
 * A coroutine is a function that can stop in the middle and go on later. Its locals live in
 * a struct, the frame, which the caller places where it likes; the frame is a future, so a
 * coroutine is polled, awaited, raced, cancelled and dropped like any other.
 *
 *     typedef struct countdown {
 *         sn_coro coro;                    // every frame has one, by this name
 *         int n;                           // arguments, locals, results
 *     } countdown;
 *
 *     SN_CORO(countdown, self)
 *     {
 *         SN_BEGIN(self);
 *         for (; self->n > 0; self->n--) {
 *             print(self->n);
 *             SN_YIELD();
 *         }
 *         SN_END();
 *     }
 *
 *     countdown c = { .n = 3 };
 *     int rc = sn_block_on_simple(SN_START(countdown, &c), NULL);
 *
 * Rules
 *   1. Everything that must survive an await, a yield or an emit lives in the frame. This is
 *      the one thing C cannot check. Help: -Wall reports most such locals as used
 *      uninitialised (gcc and clang, also at -O0), because it sees the jump; debug builds
 *      of the library overwrite the dead stack before each poll (SINEW_POISON_STACK), so the
 *      rest read 0xA5A5A5A5 at the first try; valgrind and MSan see them too.
 *   2. No await directly inside a `switch` of your own: stock compilers warn by themselves
 *      (gcc "overflow in conversion", clang "overflow converting case value"), and the
 *      coroutine ends with -EINVAL. Use if/else, or await behind the switch. Loops and
 *      nested blocks are fine.
 *   3. One await, yield or emit per source line: a second is a duplicate case label.
 *   4. Code before SN_BEGIN runs at every poll: a place to derive pointers from the frame.
 *
 * The place where a coroutine waits is the source line in `coro.resume_`: that is what a
 * task dump shows. */
#ifndef SINEW_CORO_H
#define SINEW_CORO_H

#include <stddef.h>
#include <stdint.h>

#include <sinew/annotate.h>
#include <sinew/future.h>

SN_BEGIN_DECLS

/* The head of a coroutine's frame: a member named `coro`, at any place in the frame. */
typedef struct sn_coro {
    sn_future future;     /* what to poll, await, cancel, drop                             */
    sn_future *awaiting_; /* what the coroutine waits for; dropped with it                 */
    uint32_t resume_;     /* source line of the await; 0 not begun; all ones leaving       */
    int value_;           /* result of the last await, then the coroutine's own            */
} sn_coro;

/* ---- defining ------------------------------------------------------------------------- */

/* Define the coroutine of the frame type `type` (a typedef name); the body follows and sees
 * the frame as `self`. The name is local to the file. */
#define SN_CORO(type, self)                                             \
    static sn_poll type##_body_(type *self, sn_cx *sn_cx_);             \
    SN_CORO_POLL_(type)                                                 \
    static const sn_future_vtable type##_coro_ = SN_CORO_VTABLE_(type); \
    static sn_poll type##_body_(type *self, sn_cx *sn_cx_)

/* The same for a coroutine that other files start: SN_CORO_DECLARE after the frame type in
 * the header, SN_CORO_DEFINE with the body in one source file. */
#define SN_CORO_DECLARE(type) extern const sn_future_vtable type##_coro_
#define SN_CORO_DEFINE(type, self)                               \
    static sn_poll type##_body_(type *self, sn_cx *sn_cx_);      \
    SN_CORO_POLL_(type)                                          \
    const sn_future_vtable type##_coro_ = SN_CORO_VTABLE_(type); \
    static sn_poll type##_body_(type *self, sn_cx *sn_cx_)

/* Make `frame`, a `type *`, ready to run from the beginning, and give its future. Any other
 * pointer type does not compile. The rest of the frame is left as the caller filled it. A
 * frame whose coroutine ended or was dropped may be started again. */
#define SN_START(type, frame) \
    (sn_coro_start_(_Generic((frame), type *: &(frame)->coro), &type##_coro_))

/* ---- inside the body ------------------------------------------------------------------ */

/* Open the part of the body that can stop and go on. */
#define SN_BEGIN(self)                            \
    {                                             \
        SN_SHADOWING_BEGIN_                       \
        enum { sn_may_await_ = 1 };               \
        SN_SHADOWING_END_                         \
        sn_coro *const sn_co_ = &(self)->coro;    \
        (void)sn_cx_;                             \
    sn_again_:                                    \
        switch (SN_CORO_CASE_(sn_co_->resume_)) { \
        case SN_CORO_CASE_(0):

/* Close it. Falling into the end returns 0. */
#define SN_END()                         \
    break;                               \
    default:                             \
        return sn_coro_default_(sn_co_); \
        }                                \
        if (0)                           \
            goto sn_again_;              \
        return sn_coro_end_(sn_co_);     \
        }

/* Stop until `fut`, an sn_future *, completes. The expression is evaluated once, so it may
 * well be the constructor of the future. The second form stores the result: a local will do,
 * it is written after the wait. */
#define SN_AWAIT(fut)                               \
    do {                                            \
        SN_INSIDE_();                               \
        sn_co_->awaiting_ = (fut);                  \
        while (!sn_coro_awaited_(sn_co_, sn_cx_)) { \
            sn_co_->resume_ = __LINE__;             \
            return SN_PENDING;                      \
        case SN_CORO_CASE_(__LINE__):;              \
        }                                           \
    } while (0)
#define SN_AWAIT_INTO(result, fut) \
    do {                           \
        SN_AWAIT(fut);             \
        (result) = sn_co_->value_; \
    } while (0)

/* Stop once, so that others get a turn, and ask to be polled again. */
#define SN_YIELD()                     \
    do {                               \
        SN_INSIDE_();                  \
        sn_co_->resume_ = __LINE__;    \
        return sn_coro_yield_(sn_cx_); \
    case SN_CORO_CASE_(__LINE__):;     \
    } while (0)

/* Generators: complete the present poll with `v` (0 or positive) and stay alive. The next
 * poll or await of the same future goes on behind the emit. Larger values go into the frame
 * first. sn_future_finished() tells the last completion, SN_RETURN's, from the others. */
#define SN_EMIT(v)                         \
    do {                                   \
        SN_INSIDE_();                      \
        sn_co_->resume_ = __LINE__;        \
        return sn_coro_emit_(sn_co_, (v)); \
    case SN_CORO_CASE_(__LINE__):;         \
    } while (0)

/* End the coroutine with result `v`. */
#define SN_RETURN(v)                      \
    do {                                  \
        SN_INSIDE_();                     \
        if (!sn_coro_leave_(sn_co_, (v))) \
            return sn_coro_end_(sn_co_);  \
        goto sn_again_;                   \
    } while (0)

/* Begin the clean-up part, the last before SN_END. It runs exactly once: after SN_RETURN,
 * when the body falls into it (result 0), and when a begun coroutine is dropped or cancelled,
 * after what it awaited has been dropped. It must neither await, yield, emit nor return. */
#define SN_FINALLY() \
    SN_RETURN(0);    \
    case SN_CORO_CASE_(SN_CORO_LEAVING_):

/* The sn_cx of the present poll, for polling something by hand. */
#define SN_CX (sn_cx_)

/* ---- behind the macros ---------------------------------------------------------------- */

#define SN_CORO_LEAVING_ UINT32_MAX

/* Resume points are numbers that no `switch` over an int can hold, so that an await inside
 * the user's own switch is diagnosed by stock compilers instead of lost. */
#define SN_CORO_CASE_(line) (UINT64_C(0x100000000) | (uint32_t)(line))

/* Shadowed by SN_BEGIN: an await elsewhere fails this assertion. */
enum { sn_may_await_ = 0 };
#define SN_INSIDE_() SN_STATIC_ASSERT(sn_may_await_, "this must stand between SN_BEGIN and SN_END")

#define SN_CORO_POLL_(type)                                                                   \
    static sn_poll type##_poll_(sn_future *fut, sn_cx *cx)                                    \
    {                                                                                         \
        SN_STATIC_ASSERT(_Generic(((type *)0)->coro, sn_coro: 1, default: 0),                 \
                         "the frame of a coroutine needs a member `sn_coro coro`");           \
        return type##_body_((type *)(void *)((char *)fut - offsetof(type, coro.future)), cx); \
    }
#define SN_CORO_VTABLE_(type) {type##_poll_, 0, sn_coro_drop_, #type}

SN_API sn_future *sn_coro_start_(sn_coro *co, const sn_future_vtable *vt);
SN_API bool sn_coro_awaited_(sn_coro *co, sn_cx *cx);
SN_API sn_poll sn_coro_yield_(sn_cx *cx);
SN_API sn_poll sn_coro_emit_(sn_coro *co, int value);
SN_API bool sn_coro_leave_(sn_coro *co, int value);
SN_API sn_poll sn_coro_end_(sn_coro *co);
SN_API sn_poll sn_coro_default_(sn_coro *co);
SN_API void sn_coro_drop_(sn_future *fut);

SN_END_DECLS

#endif
