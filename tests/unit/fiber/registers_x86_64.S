/* SPDX-License-Identifier: MIT */
/* registers_x86_64.S - see registers.h. rbx rbp r12 r13 r14 r15. */
        .section .rodata
        .globl  registers_count
        .type   registers_count, @object
        .size   registers_count, 4
        .p2align 2
registers_count:
        .long   6

        .text
        .globl  registers_across
        .type   registers_across, @function
registers_across:
        .cfi_startproc
        endbr64
        pushq   %rbx
        pushq   %rbp
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        pushq   %rsi                    /* out; the stack is now a multiple of 16 */
        .cfi_adjust_cfa_offset 56
        movq    %rdi, %rax
        movq    %rdx, %r10
        movq    %rcx, %rdi
        movq    %r8, %rsi
        movq    %r9, %rdx
        movq    0(%rax), %rbx
        movq    8(%rax), %rbp
        movq    16(%rax), %r12
        movq    24(%rax), %r13
        movq    32(%rax), %r14
        movq    40(%rax), %r15
        callq   *%r10
        popq    %rsi
        movq    %rbx, 0(%rsi)
        movq    %rbp, 8(%rsi)
        movq    %r12, 16(%rsi)
        movq    %r13, 24(%rsi)
        movq    %r14, 32(%rsi)
        movq    %r15, 40(%rsi)
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbp
        popq    %rbx
        .cfi_adjust_cfa_offset -56
        retq
        .cfi_endproc
        .size   registers_across, . - registers_across
        .section .note.GNU-stack, "", @progbits
