/* SPDX-License-Identifier: MIT */
/* x86_64_sysv.S - contexts on x86-64 with the System V calling convention.
 *
 * A stopped context's stack, from its sp upwards, in words of 8 bytes:
 *
 *     0 r15   1 r14   2 r13   3 r12   4 rbx   5 rbp   6 land   7 return address
 *
 * which is one line of memory, and what a debugger needs to walk a parked fiber. To go on there is
 * to take the registers back and to enter `land`, a function, with rdi = pass, as if whoever
 * stopped had called it. Everything else is either saved by the caller of the switch, as the
 * convention demands, or not kept (MXCSR and the x87 control word: writing them costs three times
 * as much as all the rest; see sni_fp_control_get).
 *
 * The processor predicts that a `ret` goes to where the last `call` came from that has not been
 * returned to. So each call that is left without a return, and each return without its call,
 * makes the guesses of all returns after it wrong, 20 cycles each. sni_context_leave is entered
 * by a jump at the end of a function and enters `land` by a jump, which in turn ends by the one
 * return that answers the one call there was; where all fibers wait in the same place, the guess is
 * right. sni_context_jump, which must come back to the middle of a function, returns by a jump:
 * measured in a ring of two, 3 ns instead of 10 with `ret`.
 *
 * With indirect branch tracking a jump must land on endbr64, and what follows a call in C has
 * none. Hence `notrack`, which is what compilers themselves use for the jump tables of switch
 * statements and which every system that tracks therefore permits. The note at the end tells
 * the linker that we are fit for tracking, and by what it leaves out, that we are not for
 * shadow stacks.
 *
 * Unwinding: at any instruction the CFI describes the stack that rsp is on, first the old one
 * and then, since both look alike, the new one. The outermost frame of a fiber says that it has
 * no caller, in CFI and by rbp and a return address of zero for those who walk without. */

        .text

/* The land of sni_context_jump: back into the function that called it. */
        .type   sni_context_return, @function
        .p2align 4
sni_context_return:
        .cfi_startproc
        endbr64
        movq    %rdi, %rax
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        notrack jmp *%rcx
        .cfi_endproc
        .size   sni_context_return, . - sni_context_return

/* void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass) */
        .globl  sni_context_jump
        .hidden sni_context_jump
        .type   sni_context_jump, @function
        .p2align 4
sni_context_jump:
        .cfi_startproc
        endbr64
        leaq    sni_context_return(%rip), %rcx
        jmp     .Lleave
        .cfi_endproc
        .size   sni_context_jump, . - sni_context_jump

/* void sni_context_leave(struct sni_context *from, struct sni_context *to, void *pass,
 *                        sni_context_fn land) */
        .globl  sni_context_leave
        .hidden sni_context_leave
        .type   sni_context_leave, @function
        .p2align 4
sni_context_leave:
        .cfi_startproc
        endbr64
.Lleave:
        pushq   %rcx
        .cfi_adjust_cfa_offset 8
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        movq    %rsp, (%rdi)
        movq    (%rsi), %rsp
        movq    %rdx, %rdi
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        notrack jmp *%rcx
        .cfi_endproc
        .size   sni_context_leave, . - sni_context_leave

/* The land of a new context: r12 is its entry, rsp a multiple of 16 with a zero on it where a
 * return address would be. */
        .type   sni_context_start, @function
        .p2align 4
sni_context_start:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        callq   *%r12
        ud2
        .cfi_endproc
        .size   sni_context_start, . - sni_context_start

/* void sni_context_prepare(struct sni_context *ctx, void *lo, void *hi, void (*entry)(void *)) */
        .globl  sni_context_prepare
        .hidden sni_context_prepare
        .type   sni_context_prepare, @function
        .p2align 4
sni_context_prepare:
        .cfi_startproc
        endbr64
        andq    $-16, %rdx
        leaq    sni_context_start(%rip), %rax
        movq    $0, -8(%rdx)
        movq    $0, -16(%rdx)           /* the return address of the outermost frame */
        movq    %rax, -24(%rdx)         /* land */
        movq    $0, -32(%rdx)           /* rbp */
        movq    $0, -40(%rdx)           /* rbx */
        movq    %rcx, -48(%rdx)         /* r12 */
        movq    $0, -56(%rdx)           /* r13 */
        movq    $0, -64(%rdx)           /* r14 */
        movq    $0, -72(%rdx)           /* r15 */
        leaq    -72(%rdx), %rax
        movq    %rax, (%rdi)
        retq
        .cfi_endproc
        .size   sni_context_prepare, . - sni_context_prepare

/* void sni_context_call(sni_context_fn fn, void *pass) */
        .globl  sni_context_call
        .hidden sni_context_call
        .type   sni_context_call, @function
        .p2align 4
sni_context_call:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        pushq   %rbp
        xorl    %ebp, %ebp              /* for those who walk by frame pointers */
        movq    %rdi, %rax
        movq    %rsi, %rdi
        callq   *%rax
        popq    %rbp
        retq
        .cfi_endproc
        .size   sni_context_call, . - sni_context_call

/* int sni_context_shadowed(void)
 * rdsspq leaves its operand alone where there is no shadow stack, also on processors that have
 * never heard of one. */
        .globl  sni_context_shadowed
        .hidden sni_context_shadowed
        .type   sni_context_shadowed, @function
sni_context_shadowed:
        .cfi_startproc
        endbr64
        xorl    %eax, %eax
        rdsspq  %rax
        testq   %rax, %rax
        setne   %al
        movzbl  %al, %eax
        retq
        .cfi_endproc
        .size   sni_context_shadowed, . - sni_context_shadowed

/* uint64_t sni_fp_control_get(void): MXCSR below, the x87 control word above. The sticky flags
 * of MXCSR are not control, so they stay out and a set leaves them alone. */
        .globl  sni_fp_control_get
        .hidden sni_fp_control_get
        .type   sni_fp_control_get, @function
        .p2align 4
sni_fp_control_get:
        .cfi_startproc
        endbr64
        movl    $0, -4(%rsp)            /* the red zone is ours: no call from here */
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        movq    -8(%rsp), %rax
        andq    $-64, %rax
        retq
        .cfi_endproc
        .size   sni_fp_control_get, . - sni_fp_control_get

/* void sni_fp_control_set(uint64_t words) */
        .globl  sni_fp_control_set
        .hidden sni_fp_control_set
        .type   sni_fp_control_set, @function
        .p2align 4
sni_fp_control_set:
        .cfi_startproc
        endbr64
        stmxcsr -8(%rsp)
        movl    -8(%rsp), %eax
        andl    $63, %eax
        orq     %rax, %rdi
        movq    %rdi, -8(%rsp)
        ldmxcsr -8(%rsp)
        fldcw   -4(%rsp)
        retq
        .cfi_endproc
        .size   sni_fp_control_set, . - sni_fp_control_set

        .section .note.GNU-stack, "", @progbits

/* x86 feature_1_and = IBT, without SHSTK. */
        .section .note.gnu.property, "a", @note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0
