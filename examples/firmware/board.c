/* SPDX-License-Identifier: MIT */
/* board.c - registers and interrupts of the MPS2 board, as blink.c wants them.
 *
 *     log     UART0
 *     LEDs    the two of the FPGA's I/O block
 *     clock   SysTick, 1000 interrupts per second
 *     button  TIMER0: nobody presses buttons in an emulator, so a timer does, at 370.25 and
 *             740.5 ms, on purpose between two ticks of the clock
 *     sleep   WFI, until an interrupt wakes the waker of what we wait for
 *     TIMER1  nothing: it keeps the emulator's time straight, see emulator_guard
 *
 * Two interrupt handlers and one program share the processor. The button needs no care: its
 * future is lock-free. The clock's numbers have 64 bits, which this processor moves in two
 * steps, so the program touches them with interrupts masked; a handler is never interrupted
 * by the program and needs nothing. */
#include "board.h"

/* Boot at another time: a test lets the low word of the clock overflow on the way. */
#ifndef BOARD_BOOT_MS
#define BOARD_BOOT_MS 0
#endif

/* 0: the finger stays off the button. */
#ifndef BOARD_BUTTON
#define BOARD_BUTTON 1
#endif

#define REG(address) (*(volatile uint32_t *)(address))

#define UART0_DATA    REG(0x40004000)
#define UART0_STATE   REG(0x40004004)
#define UART0_CTRL    REG(0x40004008)
#define UART0_BAUDDIV REG(0x40004010)
#define TIMER0_CTRL   REG(0x40000000)
#define TIMER0_VALUE  REG(0x40000004)
#define TIMER0_RELOAD REG(0x40000008)
#define TIMER0_CLEAR  REG(0x4000000C)
#define TIMER1_CTRL   REG(0x40001000)
#define TIMER1_VALUE  REG(0x40001004)
#define TIMER1_RELOAD REG(0x40001008)
#define FPGA_LEDS     REG(0x40028000)
#define SYSTICK_CTRL  REG(0xE000E010)
#define SYSTICK_LOAD  REG(0xE000E014)
#define SYSTICK_VALUE REG(0xE000E018)
#define NVIC_ENABLE   REG(0xE000E100)

enum {
    CPU_HZ = 25000000,
    TICK_CYCLES = CPU_HZ / 1000,
    GUARD_CYCLES = TICK_CYCLES / 4,
    PRESS_CYCLES = TICK_CYCLES * 370 + GUARD_CYCLES,
};

/* ---- interrupts ------------------------------------------------------------------------ */

static uint32_t irq_mask(void)
{
    uint32_t before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
    return before;
}

static void irq_restore(uint32_t before)
{
    __asm__ volatile("msr primask, %0" ::"r"(before) : "memory");
}

/* Look and sleep in one step: with interrupts masked, one that comes after the look is only
 * noted; it ends the WFI, and is taken when the mask is lifted. */
static void wait_for_interrupt(sn_idle *idle)
{
    uint32_t before = irq_mask();
    if (!sn_idle_woken(idle))
        __asm__ volatile("dsb\n\twfi" ::: "memory");
    irq_restore(before);
}

sn_idle board_idle = SN_IDLE_INIT(wait_for_interrupt, NULL);

/* ---- clock ----------------------------------------------------------------------------- */

/* One alarm is enough: all parts of the program are polled with the same waker, and each
 * poll asks again for what is still to come. */
static struct {
    sn_clock clock;
    int64_t now_ns;      /* written by systick_handler; read by the program, masked    */
    int64_t alarm_ns;    /* both, the program masked: the earliest time asked for      */
    sn_waker_cell wakes; /* both, lock-free                                            */
} ticks;

static int64_t clock_now(sn_clock *clock)
{
    (void)clock;
    uint32_t before = irq_mask();
    int64_t now_ns = ticks.now_ns;
    irq_restore(before);
    return now_ns;
}

static void clock_arm(sn_clock *clock, sn_deadline at, const sn_waker *waker)
{
    (void)clock;
    (void)sn_waker_cell_arm(&ticks.wakes, waker);
    uint32_t before = irq_mask();
    if (at.ns < ticks.alarm_ns)
        ticks.alarm_ns = at.ns;
    bool too_late = ticks.now_ns >= at.ns; /* the tick came since the program looked */
    irq_restore(before);
    if (too_late)
        (void)sn_waker_cell_wake(&ticks.wakes);
}

void systick_handler(void)
{
    ticks.now_ns += SN_MS(1);
    if (ticks.now_ns < ticks.alarm_ns)
        return;
    ticks.alarm_ns = SN_FOREVER.ns;
    (void)sn_waker_cell_wake(&ticks.wakes);
}

static void clock_start(void)
{
    ticks.clock = (sn_clock){clock_now, clock_arm};
    ticks.now_ns = SN_MS(BOARD_BOOT_MS);
    ticks.alarm_ns = SN_FOREVER.ns;
    SYSTICK_LOAD = TICK_CYCLES - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CTRL = 7; /* processor clock, interrupt, on */
}

/* ---- button, LEDs, log ----------------------------------------------------------------- */

static sn_signal button;

void timer0_handler(void)
{
    TIMER0_CLEAR = 1;
    (void)sn_signal_send(&button, 1);
}

static void button_start(void)
{
    TIMER0_RELOAD = PRESS_CYCLES - 1;
    TIMER0_VALUE = PRESS_CYCLES - 1;
    TIMER0_CTRL = 9; /* interrupt, on */
    NVIC_ENABLE = BOARD_BUTTON << BOARD_TIMER0_IRQ;
}

static void led(int index, bool on)
{
    uint32_t bit = UINT32_C(1) << index;
    FPGA_LEDS = on ? FPGA_LEDS | bit : FPGA_LEDS & ~bit;
}

static void report(const char *text, size_t bytes)
{
    for (; bytes > 0; bytes--) {
        while (UART0_STATE & 1)
            continue; /* the transmitter is busy */
        UART0_DATA = (unsigned char)*text++;
    }
}

static void uart_start(void)
{
    UART0_BAUDDIV = CPU_HZ / 115200;
    UART0_CTRL = 1; /* transmit */
}

/* When a timer runs out while the processor sleeps, QEMU's -icount sleep=off starts it again
 * first, which lets time jump to the next event of any timer, and raises the interrupt
 * afterwards: a tick would be a tick late, and every second one lost. A silent timer with
 * events just behind those of the others keeps that jump short. On a board it only counts. */
static void emulator_guard(void)
{
    TIMER1_RELOAD = GUARD_CYCLES - 1;
    TIMER1_VALUE = GUARD_CYCLES - 1;
    TIMER1_CTRL = 1; /* on, no interrupt */
}

/* ---- beginning and end ----------------------------------------------------------------- */

struct board *board_start(void)
{
    static struct board board = {&ticks.clock, &button, led, report, 0};
    uart_start();
    clock_start();
    button_start();
    emulator_guard(); /* last: behind the others */
    return &board;
}

/* Semihosting: a breakpoint that the emulator takes as a call. SYS_EXIT with "application
 * exit" gives status 0, with "run-time error" 1. */
_Noreturn void board_exit(int result)
{
    register uint32_t call __asm__("r0") = 0x18;
    register uint32_t reason __asm__("r1") = result >= 0 ? 0x20026 : 0x20023;
    for (;;)
        __asm__ volatile("bkpt 0xab" ::"r"(call), "r"(reason) : "memory");
}

static size_t length(const char *text)
{
    size_t bytes = 0;
    while (text[bytes] != '\0')
        bytes++;
    return bytes;
}

/* Replaces the library's: here is somebody who can be told. */
void sn_assert_failed(const char *sentence, const char *file, int line)
{
    (void)line;
    uart_start();
    report(file, length(file));
    report(": ", 2);
    report(sentence, length(sentence));
    report("\n", 1);
    board_exit(-1);
}
