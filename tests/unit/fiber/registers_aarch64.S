/* SPDX-License-Identifier: MIT */
/* registers_aarch64.S - see registers.h. x19-x29 d8-d15. */
        .section .rodata
        .globl  registers_count
        .type   registers_count, %object
        .size   registers_count, 4
        .p2align 2
registers_count:
        .long   19

        .text
        .globl  registers_across
        .type   registers_across, %function
registers_across:
        stp     x29, x30, [sp, #-176]!
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        str     x1, [sp, #160]          /* out */
        mov     x9, x0
        mov     x10, x2
        mov     x0, x3
        mov     x1, x4
        mov     x2, x5
        ldp     x19, x20, [x9]
        ldp     x21, x22, [x9, #16]
        ldp     x23, x24, [x9, #32]
        ldp     x25, x26, [x9, #48]
        ldp     x27, x28, [x9, #64]
        ldr     x29, [x9, #80]
        ldp     d8, d9, [x9, #88]
        ldp     d10, d11, [x9, #104]
        ldp     d12, d13, [x9, #120]
        ldp     d14, d15, [x9, #136]
        blr     x10
        ldr     x9, [sp, #160]
        stp     x19, x20, [x9]
        stp     x21, x22, [x9, #16]
        stp     x23, x24, [x9, #32]
        stp     x25, x26, [x9, #48]
        stp     x27, x28, [x9, #64]
        str     x29, [x9, #80]
        stp     d8, d9, [x9, #88]
        stp     d10, d11, [x9, #104]
        stp     d12, d13, [x9, #120]
        stp     d14, d15, [x9, #136]
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #176
        ret
        .size   registers_across, . - registers_across
        .section .note.GNU-stack, "", %progbits
