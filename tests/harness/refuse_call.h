/* SPDX-License-Identifier: MIT */
/* refuse_call.h - a kernel that lacks a system call, or forbids it, by a filter (seccomp). */
#ifndef SINEW_TESTS_REFUSE_CALL_H
#define SINEW_TESTS_REFUSE_CALL_H

#include "harness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

/* From here on this thread, and what it starts, gets `answer` (SECCOMP_RET_...) to the system call
 * `number`. */
static inline void filter_call(long number, uint32_t answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("this system lets nobody filter system calls");
}

/* The same: that call fails with `error`. */
static inline void refuse_call(long number, int error)
{
    filter_call(number, SECCOMP_RET_ERRNO | (uint32_t)error);
}

#endif
