/* SPDX-License-Identifier: MIT */
/* registers_riscv64.S - see registers.h. s0-s11 fs0-fs11, of the double float ABI. */
        .section .rodata
        .globl  registers_count
        .type   registers_count, @object
        .size   registers_count, 4
        .p2align 2
registers_count:
        .long   24

/* op is a store or a load; all of s0-s11 and fs0-fs11 at `at` bytes from `base`. */
        .macro  all op, fop, base, at
        \op     s0, (\at + 0)(\base)
        \op     s1, (\at + 8)(\base)
        \op     s2, (\at + 16)(\base)
        \op     s3, (\at + 24)(\base)
        \op     s4, (\at + 32)(\base)
        \op     s5, (\at + 40)(\base)
        \op     s6, (\at + 48)(\base)
        \op     s7, (\at + 56)(\base)
        \op     s8, (\at + 64)(\base)
        \op     s9, (\at + 72)(\base)
        \op     s10, (\at + 80)(\base)
        \op     s11, (\at + 88)(\base)
        \fop    fs0, (\at + 96)(\base)
        \fop    fs1, (\at + 104)(\base)
        \fop    fs2, (\at + 112)(\base)
        \fop    fs3, (\at + 120)(\base)
        \fop    fs4, (\at + 128)(\base)
        \fop    fs5, (\at + 136)(\base)
        \fop    fs6, (\at + 144)(\base)
        \fop    fs7, (\at + 152)(\base)
        \fop    fs8, (\at + 160)(\base)
        \fop    fs9, (\at + 168)(\base)
        \fop    fs10, (\at + 176)(\base)
        \fop    fs11, (\at + 184)(\base)
        .endm

        .text
        .globl  registers_across
        .type   registers_across, @function
        .p2align 2
registers_across:
        addi    sp, sp, -208
        sd      ra, 200(sp)
        sd      a1, 192(sp)             /* out */
        all     sd, fsd, sp, 0
        mv      t0, a0
        mv      t1, a2
        mv      a0, a3
        mv      a1, a4
        mv      a2, a5
        all     ld, fld, t0, 0
        jalr    t1
        ld      t0, 192(sp)
        all     sd, fsd, t0, 0
        all     ld, fld, sp, 0
        ld      ra, 200(sp)
        addi    sp, sp, 208
        ret
        .size   registers_across, . - registers_across
        .section .note.GNU-stack, "", @progbits
