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

/* An assertion the compiler checks, spelled alike in C and C++. */
#ifdef __cplusplus
#define SN_STATIC_ASSERT static_assert
#else
#define SN_STATIC_ASSERT _Static_assert
#endif

#endif
