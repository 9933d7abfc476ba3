/* SPDX-License-Identifier: MIT */
/* tls.h - reading a thread-local anew, without a call.
 *
 * After a fiber was suspended it may be on another thread. A compiler does not know that threads
 * change within a function, and may keep where the thread-locals are; a function that is never
 * inlined is safe, and so is assembly that it must not leave out (volatile) nor move beyond a call
 * ("memory"). The thread's register itself is used within one instruction only.
 *
 * SNI_TLS_LOAD(to, symbol)     to = the value of a thread-local pointer
 * SNI_TLS_ADDRESS(to, symbol)  to = where this thread has it
 *
 * Of one whose place is fixed when the program is loaded: tls_model("initial-exec"), with
 * external linkage, and `used`, since no compiler sees that it is. Not defined: nobody has
 * written them for this kind of machine yet. */
#ifndef SINEW_PLAT_TLS_H
#define SINEW_PLAT_TLS_H

#if defined(__x86_64__) && defined(__LP64__) && defined(__linux__)
#define SNI_TLS_LOAD(to, symbol)                                                  \
    __asm__ volatile("movq " #symbol "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" \
                     : "=r"(to)                                                   \
                     :                                                            \
                     : "memory")
#define SNI_TLS_ADDRESS(to, symbol)                                            \
    __asm__ volatile("movq " #symbol "@gottpoff(%%rip), %0\n\taddq %%fs:0, %0" \
                     : "=r"(to)                                                \
                     :                                                         \
                     : "cc", "memory")
#endif

#endif
