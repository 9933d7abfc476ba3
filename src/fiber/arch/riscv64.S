/* SPDX-License-Identifier: MIT */
/* riscv64.S - contexts on 64-bit RISC-V, with or without floating point registers.
 *
 * A stopped context's stack, from its sp upwards, in words of 8 bytes:
 *
 *     0-11 s0-s11   12-23 fs0-fs11 (if functions preserve them)   then one unused, then
 *     the last one: where to go on
 *
 * The frame is a multiple of 16. gp and tp belong to the program and the thread. The rounding
 * mode is not kept; see sni_fp_control_get.
 *
 * The switch leaves by a jump through t2. It is not ra or t0, so the processor does not take it
 * for a return and guess wrong (and unwind its guesses); and it is x7, the register that jumps
 * to places without a landing pad are allowed to use where landing pads are enforced.
 *
 * Unwinding: the CFI describes the stack that sp is on, and both stacks look alike. The
 * outermost frame of a fiber says that it has no caller; its s0 is zero. */

#ifdef __riscv_float_abi_double
#define FRAME_BYTES 208
#else
#define FRAME_BYTES 112
#endif
#define RESUME_AT   (FRAME_BYTES - 8)

/* Store or load s<n> or fs<n>, and say where it is. */
        .macro  save op, reg, at
        \op     \reg, \at(sp)
        .cfi_rel_offset \reg, \at
        .endm
        .macro  load op, reg, at
        \op     \reg, \at(sp)
        .cfi_restore \reg
        .endm

        .text

/* void *sni_context_jump(struct sni_context *from, struct sni_context *to, void *pass) */
        .globl  sni_context_jump
        .hidden sni_context_jump
        .type   sni_context_jump, @function
        .p2align 2
sni_context_jump:
        .cfi_startproc
        addi    sp, sp, -FRAME_BYTES
        .cfi_def_cfa_offset FRAME_BYTES
        save    sd, ra, RESUME_AT
        save    sd, s0, 0
        save    sd, s1, 8
        save    sd, s2, 16
        save    sd, s3, 24
        save    sd, s4, 32
        save    sd, s5, 40
        save    sd, s6, 48
        save    sd, s7, 56
        save    sd, s8, 64
        save    sd, s9, 72
        save    sd, s10, 80
        save    sd, s11, 88
#ifdef __riscv_float_abi_double
        save    fsd, fs0, 96
        save    fsd, fs1, 104
        save    fsd, fs2, 112
        save    fsd, fs3, 120
        save    fsd, fs4, 128
        save    fsd, fs5, 136
        save    fsd, fs6, 144
        save    fsd, fs7, 152
        save    fsd, fs8, 160
        save    fsd, fs9, 168
        save    fsd, fs10, 176
        save    fsd, fs11, 184
#endif
        sd      sp, 0(a0)
        ld      sp, 0(a1)
        mv      a0, a2
        ld      t2, RESUME_AT(sp)
        .cfi_register ra, t2
        load    ld, s0, 0
        load    ld, s1, 8
        load    ld, s2, 16
        load    ld, s3, 24
        load    ld, s4, 32
        load    ld, s5, 40
        load    ld, s6, 48
        load    ld, s7, 56
        load    ld, s8, 64
        load    ld, s9, 72
        load    ld, s10, 80
        load    ld, s11, 88
#ifdef __riscv_float_abi_double
        load    fld, fs0, 96
        load    fld, fs1, 104
        load    fld, fs2, 112
        load    fld, fs3, 120
        load    fld, fs4, 128
        load    fld, fs5, 136
        load    fld, fs6, 144
        load    fld, fs7, 152
        load    fld, fs8, 160
        load    fld, fs9, 168
        load    fld, fs10, 176
        load    fld, fs11, 184
#endif
        addi    sp, sp, FRAME_BYTES
        .cfi_def_cfa_offset 0
        jr      t2
        .cfi_endproc
        .size   sni_context_jump, . - sni_context_jump

/* Where a new context goes on: s1 is its entry, a0 what was passed. */
        .type   sni_context_start, @function
        .p2align 2
sni_context_start:
        .cfi_startproc
        .cfi_undefined ra
        mv      t2, s1                  /* x7: the entry may lack a landing pad */
        jalr    ra, 0(t2)
        ebreak
        .cfi_endproc
        .size   sni_context_start, . - sni_context_start

/* void sni_context_prepare(struct sni_context *ctx, void *lo, void *hi, void (*entry)(void *)) */
        .globl  sni_context_prepare
        .hidden sni_context_prepare
        .type   sni_context_prepare, @function
        .p2align 2
sni_context_prepare:
        .cfi_startproc
        andi    a2, a2, -16
        addi    a2, a2, -16
        sd      zero, 0(a2)             /* ends a chain of frame pointers */
        sd      zero, 8(a2)
        addi    a4, a2, -FRAME_BYTES
        mv      a5, a4
1:      sd      zero, 0(a5)
        addi    a5, a5, 8
        bltu    a5, a2, 1b
        lla     a5, sni_context_start
        sd      a5, RESUME_AT(a4)
        sd      a3, 8(a4)               /* s1 */
        sd      a4, 0(a0)
        ret
        .cfi_endproc
        .size   sni_context_prepare, . - sni_context_prepare

/* void sni_context_call(sni_context_fn fn, void *pass) */
        .globl  sni_context_call
        .hidden sni_context_call
        .type   sni_context_call, @function
        .p2align 2
sni_context_call:
        .cfi_startproc
        .cfi_undefined ra
        addi    sp, sp, -16
        sd      ra, 8(sp)
        sd      s0, 0(sp)
        li      s0, 0                   /* for those who walk by frame pointers */
        mv      t2, a0                  /* x7: the function may lack a landing pad */
        mv      a0, a1
        jalr    ra, 0(t2)
        ld      s0, 0(sp)
        ld      ra, 8(sp)
        addi    sp, sp, 16
        ret
        .cfi_endproc
        .size   sni_context_call, . - sni_context_call

/* int sni_context_shadowed(void)
 * Asking would be an illegal instruction on processors without shadow stacks. The system turns
 * them on only for programs whose every part carries the mark, which we do not. */
        .globl  sni_context_shadowed
        .hidden sni_context_shadowed
        .type   sni_context_shadowed, @function
        .p2align 2
sni_context_shadowed:
        .cfi_startproc
        li      a0, 0
        ret
        .cfi_endproc
        .size   sni_context_shadowed, . - sni_context_shadowed

/* uint64_t sni_fp_control_get(void): the rounding mode; flags are not control. */
        .globl  sni_fp_control_get
        .hidden sni_fp_control_get
        .type   sni_fp_control_get, @function
        .p2align 2
sni_fp_control_get:
        .cfi_startproc
#ifdef __riscv_float_abi_double
        frrm    a0
#else
        li      a0, 0
#endif
        ret
        .cfi_endproc
        .size   sni_fp_control_get, . - sni_fp_control_get

/* void sni_fp_control_set(uint64_t words) */
        .globl  sni_fp_control_set
        .hidden sni_fp_control_set
        .type   sni_fp_control_set, @function
        .p2align 2
sni_fp_control_set:
        .cfi_startproc
#ifdef __riscv_float_abi_double
        fsrm    a0
#endif
        ret
        .cfi_endproc
        .size   sni_fp_control_set, . - sni_fp_control_set

        .section .note.GNU-stack, "", @progbits
