/* SPDX-License-Identifier: MIT */
/* aarch64.S - contexts on 64-bit ARM, the procedure call standard of ELF systems.
 *
 * A stopped context's stack, from its sp upwards, in words of 8 bytes:
 *
 *     0 x29   1 x30: where to go on   2-11 x19-x28   12-19 d8-d15
 *
 * x29 and x30 come first, so that a chain of frame pointers runs through. x18 belongs to the
 * platform and is not touched. FPCR is not kept; see sni_fp_control_get.
 *
 * The switch leaves by `ret`, although the processor's guess of where a `ret` goes is then
 * wrong: with branch target identification a `br` must land on a `bti`, and what follows a call
 * in C has none, while a `ret` may go anywhere. There is no way around it as on x86-64.
 *
 * Unwinding: the CFI describes the stack that sp is on, and both stacks look alike. The
 * outermost frame of a fiber says that it has no caller; its x29 is zero. */

#define FRAME_BYTES 160

        .text

/* void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass) */
        .globl  sni_context_jump
        .hidden sni_context_jump
        .type   sni_context_jump, %function
        .p2align 4
sni_context_jump:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-FRAME_BYTES]!
        .cfi_def_cfa_offset FRAME_BYTES
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x19, x20, [sp, #16]
        .cfi_rel_offset x19, 16
        .cfi_rel_offset x20, 24
        stp     x21, x22, [sp, #32]
        .cfi_rel_offset x21, 32
        .cfi_rel_offset x22, 40
        stp     x23, x24, [sp, #48]
        .cfi_rel_offset x23, 48
        .cfi_rel_offset x24, 56
        stp     x25, x26, [sp, #64]
        .cfi_rel_offset x25, 64
        .cfi_rel_offset x26, 72
        stp     x27, x28, [sp, #80]
        .cfi_rel_offset x27, 80
        .cfi_rel_offset x28, 88
        stp     d8, d9, [sp, #96]
        .cfi_rel_offset d8, 96
        .cfi_rel_offset d9, 104
        stp     d10, d11, [sp, #112]
        .cfi_rel_offset d10, 112
        .cfi_rel_offset d11, 120
        stp     d12, d13, [sp, #128]
        .cfi_rel_offset d12, 128
        .cfi_rel_offset d13, 136
        stp     d14, d15, [sp, #144]
        .cfi_rel_offset d14, 144
        .cfi_rel_offset d15, 152
        mov     x9, sp
        str     x9, [x0]
        ldr     x9, [x1]
        mov     sp, x9
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        mov     x0, x2
        ldp     x29, x30, [sp], #FRAME_BYTES
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore d8
        .cfi_restore d9
        .cfi_restore d10
        .cfi_restore d11
        .cfi_restore d12
        .cfi_restore d13
        .cfi_restore d14
        .cfi_restore d15
        ret
        .cfi_endproc
        .size   sni_context_jump, . - sni_context_jump

/* Where a new context goes on: x19 is its entry, x0 what was passed. */
        .type   sni_context_start, %function
        .p2align 4
sni_context_start:
        .cfi_startproc
        .cfi_undefined x30
        hint    #36                     /* bti j */
        blr     x19
        brk     #1
        .cfi_endproc
        .size   sni_context_start, . - sni_context_start

/* void sni_context_prepare(struct sni_context *ctx, void *lo, void *hi, void (*entry)(void *)) */
        .globl  sni_context_prepare
        .hidden sni_context_prepare
        .type   sni_context_prepare, %function
        .p2align 4
sni_context_prepare:
        .cfi_startproc
        hint    #34                     /* bti c */
        and     x2, x2, #-16
        stp     xzr, xzr, [x2, #-16]!   /* ends a chain of frame pointers */
        sub     x9, x2, #FRAME_BYTES
        adrp    x10, sni_context_start
        add     x10, x10, :lo12:sni_context_start
        stp     xzr, x10, [x9]          /* x29, where to go on */
        stp     x3, xzr, [x9, #16]      /* x19 */
        stp     xzr, xzr, [x9, #32]
        stp     xzr, xzr, [x9, #48]
        stp     xzr, xzr, [x9, #64]
        stp     xzr, xzr, [x9, #80]
        stp     xzr, xzr, [x9, #96]
        stp     xzr, xzr, [x9, #112]
        stp     xzr, xzr, [x9, #128]
        stp     xzr, xzr, [x9, #144]
        str     x9, [x0]
        ret
        .cfi_endproc
        .size   sni_context_prepare, . - sni_context_prepare

/* void sni_context_call(sni_context_fn fn, void *pass) */
        .globl  sni_context_call
        .hidden sni_context_call
        .type   sni_context_call, %function
        .p2align 4
sni_context_call:
        .cfi_startproc
        .cfi_undefined x30
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-16]!
        mov     x29, xzr                /* for those who walk by frame pointers */
        mov     x9, x0
        mov     x0, x1
        blr     x9
        ldp     x29, x30, [sp], #16
        ret
        .cfi_endproc
        .size   sni_context_call, . - sni_context_call

/* int sni_context_shadowed(void)
 * chkfeat clears bit 0 of x16 where a guarded control stack is active and is a hint, that is
 * nothing, on older processors. */
        .globl  sni_context_shadowed
        .hidden sni_context_shadowed
        .type   sni_context_shadowed, %function
sni_context_shadowed:
        .cfi_startproc
        hint    #34                     /* bti c */
        mov     x16, #1
        hint    #40                     /* chkfeat x16 */
        eor     w0, w16, #1
        ret
        .cfi_endproc
        .size   sni_context_shadowed, . - sni_context_shadowed

/* uint64_t sni_fp_control_get(void) */
        .globl  sni_fp_control_get
        .hidden sni_fp_control_get
        .type   sni_fp_control_get, %function
sni_fp_control_get:
        .cfi_startproc
        hint    #34                     /* bti c */
        mrs     x0, fpcr
        ret
        .cfi_endproc
        .size   sni_fp_control_get, . - sni_fp_control_get

/* void sni_fp_control_set(uint64_t words) */
        .globl  sni_fp_control_set
        .hidden sni_fp_control_set
        .type   sni_fp_control_set, %function
sni_fp_control_set:
        .cfi_startproc
        hint    #34                     /* bti c */
        msr     fpcr, x0
        ret
        .cfi_endproc
        .size   sni_fp_control_set, . - sni_fp_control_set

        .section .note.GNU-stack, "", %progbits

/* aarch64 feature_1_and = BTI | PAC, without GCS. */
        .section .note.gnu.property, "a", %note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000000, 4, 3, 0
