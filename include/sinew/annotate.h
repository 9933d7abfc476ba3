/* SPDX-License-Identifier: MIT */
/* annotate.h - the compiler extensions the public headers use, each behind one name.
 *
 * Nothing else under include/ spells an attribute: a compiler without one of
 * them gets an empty definition here and loses a warning, never a feature. */
#ifndef SINEW_ANNOTATE_H
#define SINEW_ANNOTATE_H

/* Opens and closes a header's declarations for C++. */
#ifdef __cplusplus
#define SN_BEGIN_DECLS extern "C" {
#define SN_END_DECLS   }
#else
#define SN_BEGIN_DECLS
#define SN_END_DECLS
#endif

/* A function of the public interface. The library is compiled with hidden
 * visibility, so what does not carry this name is not exported. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_API __attribute__((visibility("default")))
#else
#define SN_API
#endif

/* The result tells whether the call worked: ignoring it is a warning. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_MUST_USE __attribute__((warn_unused_result))
#else
#define SN_MUST_USE
#endif

/* A symbol that an application may replace by defining its own. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_REPLACEABLE __attribute__((weak))
#else
#define SN_REPLACEABLE
#endif

/* The function takes a format like printf's: its number, and that of the first value. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SN_PRINTF(text, first)
#endif

/* Does not return; spelled alike in C and C++. */
#ifdef __cplusplus
#define SN_NORETURN [[noreturn]]
#else
#define SN_NORETURN _Noreturn
#endif

/* Switches -Wshadow off for one declaration that shadows on purpose. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_SHADOWING_BEGIN_ \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"")
#define SN_SHADOWING_END_ _Pragma("GCC diagnostic pop")
#else
#define SN_SHADOWING_BEGIN_
#define SN_SHADOWING_END_
#endif

/* Behind the name of a variable: `fn` is called with its address when its block is left. */
#if defined(__GNUC__) || defined(__clang__)
#define SN_AT_END_OF_BLOCK(fn) __attribute__((cleanup(fn)))
#define SN_UNUSED              __attribute__((unused))
#else
#define SN_AT_END_OF_BLOCK(fn) SN_NEEDS_GCC_OR_CLANG_HERE_
#define SN_UNUSED
#endif

/* An assertion the compiler checks, spelled alike in C and C++. */
#ifdef __cplusplus
#define SN_STATIC_ASSERT static_assert
#else
#define SN_STATIC_ASSERT _Static_assert
#endif

/* ---- handles --------------------------------------------------------------------------- */

/* A handle is used up once. Behind the prototype of what returns one stands SN_USED_UP_BY, for
 * each function that does it, declared before; behind that one's SN_USES_UP, with the number of the
 * parameter that is the handle:
 *
 *     int sn_detach(sn_task *task) SN_USES_UP(1);
 *     sn_task *sn_spawn_(...) SN_USED_UP_BY(sn_detach);
 *
 * `gcc -fanalyzer` and `clang --analyze` then follow handles as they follow memory: one that is
 * forgotten on some path, used up twice, or used afterwards, is a warning. They change no code:
 * gcc's plain `malloc`, which says that the result points to nothing else, is not claimed. A handle
 * that comes through an out parameter is followed by clang alone, and only from its end on.
 *
 * clang's checker knows one kind of thing to be owned, and its name is malloc. */
#if defined(__clang__)
#define SN_USED_UP_BY(fn) __attribute__((ownership_returns(malloc)))
#define SN_USES_UP(n)     __attribute__((ownership_takes(malloc, n)))
#elif defined(__GNUC__) && __GNUC__ >= 11
#define SN_USED_UP_BY(fn) __attribute__((malloc(fn, 1)))
#define SN_USES_UP(n)
#else
#define SN_USED_UP_BY(fn)
#define SN_USES_UP(n)
#endif

/* ---- who may suspend ------------------------------------------------------------------- */

/* Every function of Sinew that may suspend its caller is declared SN_SUSPENDS. That says nothing to
 * the compiler unless a program defines SINEW_CHECK_SUSPEND before it includes Sinew and is
 * compiled by `clang -Wthread-safety`. Then
 *
 *     SN_SUSPENDS            before a function: it may suspend. One that is not declared so must
 *                            not call those that are
 *     SN_LOCKS, SN_UNLOCKS   behind the prototype of a function that locks or unlocks a mutex of
 *                            the system. In between nothing may suspend: the mutex would be held
 *                            by whatever runs on that thread next, and unlocked by another one
 *     SN_NO_SUSPEND()        a statement: from here to the end of this function nothing may
 *                            suspend, although it is declared SN_SUSPENDS
 *     SN_SUSPEND_UNCHECKED   before a function: its body is not looked at. For who knows better:
 *                            a call with SN_NOWAIT does not suspend
 *
 * and every breach is a warning. The mutexes of the system are marked by declaring them again:
 *
 *     int pthread_mutex_lock(pthread_mutex_t *m) SN_LOCKS;
 *     int pthread_mutex_unlock(pthread_mutex_t *m) SN_UNLOCKS;
 *
 * Calls through pointers are not checked, so sn_spawn takes functions of either kind. All mutexes
 * are one to the check: if two are held at once, lock the inner one by functions without a mark.
 *
 * How: these are clang's capabilities. Who may suspend requires that its caller does *not* have one
 * named sn_no_suspend, and clang wants each caller to say the same of its own. (A permission that
 * callers must have, and that a lock takes away, is the usual way. There a function without the
 * permission cannot lock at all, having nothing to be taken away.) Both objects are named in
 * attributes only, and do not exist. */
#if defined(__clang__) && defined(SINEW_CHECK_SUSPEND)
#define SN_SUSPENDS \
    __attribute__((requires_capability(!sn_no_suspend), locks_excluded(sn_os_mutex)))
#define SN_LOCKS             __attribute__((acquire_capability(sn_os_mutex)))
#define SN_UNLOCKS           __attribute__((release_capability(sn_os_mutex)))
#define SN_SUSPEND_UNCHECKED __attribute__((no_thread_safety_analysis))
#define SN_NO_SUSPEND()      sn_no_suspend_()

SN_BEGIN_DECLS
struct __attribute__((capability("role"))) sn_role_;
struct __attribute__((capability("mutex"))) sn_os_mutex_;
extern struct sn_role_ *const sn_no_suspend;
extern struct sn_os_mutex_ *const sn_os_mutex;

static inline __attribute__((assert_capability(sn_no_suspend))) void sn_no_suspend_(void)
{
}
SN_END_DECLS
#else
#define SN_SUSPENDS
#define SN_LOCKS
#define SN_UNLOCKS
#define SN_SUSPEND_UNCHECKED
#define SN_NO_SUSPEND() ((void)0)
#endif

#endif
