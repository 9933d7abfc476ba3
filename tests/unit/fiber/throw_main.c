/* SPDX-License-Identifier: MIT */
/* throw_main.c - runs throw.cpp on fibers; built by test_exceptions.c. */
#include "fiber/context.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIBERS = 3, STACK_BYTES = 256 * 1024 };

void throw_and_catch(void *value);
void throw_only(void *value);
void catch_outside(void *value);
int count_destroyed(void);
void *yield_now(void *value);

static _Alignas(64) char stacks[FIBERS][STACK_BYTES];
static struct sni_context contexts[FIBERS], back;
static int current;
static void (*body)(void *);

static void entry(void *pass)
{
    int self = current;
    body(pass);
    sni_context_exit(&contexts[self], &back, pass);
}

void *yield_now(void *value)
{
    return sni_context_switch(&contexts[current], &back, value);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "outside") == 0)
        catch_outside(NULL);
    body = argc > 1 && strcmp(argv[1], "uncaught") == 0 ? throw_only : throw_and_catch;
    for (int i = 0; i < FIBERS; i++)
        if (sni_context_make(&contexts[i], stacks[i], stacks[i] + STACK_BYTES, entry) < 0)
            return 1;
    for (int turn = 0; turn < 2; turn++)
        for (current = 0; current < FIBERS; current++)
            sni_context_switch(&back, &contexts[current], (void *)(intptr_t)(current * 10));
    printf("%d destroyed\n", count_destroyed());
    return 0;
}
