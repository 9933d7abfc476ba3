/* SPDX-License-Identifier: MIT */
/* 03_generator - a coroutine that gives one value after the other, and one that uses it. */
#include <sinew/sinew.h>
#include <stdio.h>

typedef struct words { /* splits a text; the word is in `at`, `length` */
    sn_coro coro;
    const char *at;
    int length;
} words;

SN_CORO(words, self)
{
    SN_BEGIN(self);
    for (; *self->at; self->at += self->length) {
        self->length = 1;
        if (*self->at == ' ')
            continue;
        while (self->at[self->length] && self->at[self->length] != ' ')
            self->length++;
        SN_EMIT(self->length);
    }
    SN_END();
}

typedef struct report {
    sn_coro coro;
    words text;
    int letters;
} report;

SN_CORO(report, self)
{
    int length;
    SN_BEGIN(self);
    self->text.at = "straight-line code  on a few threads";
    SN_START(words, &self->text);
    for (;;) {
        SN_AWAIT_INTO(length, &self->text.coro.future);
        if (sn_future_finished(&self->text.coro.future))
            SN_RETURN(self->letters);
        self->letters += length;
        printf("%2d %.*s\n", length, length, self->text.at);
    }
    SN_END();
}

int main(void)
{
    report r = {.letters = 0};
    printf("%d letters\n", sn_block_on_simple(SN_START(report, &r), NULL));
    return 0;
}
