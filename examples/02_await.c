/* SPDX-License-Identifier: MIT */
/* 02_await - coroutines that call coroutines, results, and clean-up that always runs. */
#include <sinew/sinew.h>
#include <stdio.h>

typedef struct fetch {
    sn_coro coro;
    const char *what;
    int cost; /* how many turns it takes; its result */
    int turn;
} fetch;

SN_CORO(fetch, self)
{
    SN_BEGIN(self);
    printf("fetch %s: begin\n", self->what);
    for (self->turn = 0; self->turn < self->cost; self->turn++)
        SN_YIELD();
    SN_RETURN(self->cost);
    SN_FINALLY(); /* after a return, and when somebody drops the coroutine half way */
    printf("fetch %s: %s\n", self->what, self->turn < self->cost ? "given up" : "done");
    SN_END();
}

typedef struct page {
    sn_coro coro;
    fetch text, image, advert;
    sn_fut_join2 both;
    sn_fut_race2 first;
} page;

SN_CORO(page, self)
{
    int rc;
    SN_BEGIN(self);

    self->text = (fetch){.what = "text", .cost = 2};
    SN_AWAIT_INTO(rc, SN_START(fetch, &self->text)); /* one after the other */
    printf("text took %d\n", rc);

    self->text = (fetch){.what = "more text", .cost = 1};
    self->image = (fetch){.what = "image", .cost = 3};
    SN_AWAIT(sn_fut_join2_init(&self->both, SN_START(fetch, &self->text),
                               SN_START(fetch, &self->image))); /* both at once */
    printf("both took %d and %d\n", self->both.results[0], self->both.results[1]);

    self->image = (fetch){.what = "image", .cost = 1};
    self->advert = (fetch){.what = "advert", .cost = 9};
    SN_AWAIT(sn_fut_race2_init(&self->first, SN_START(fetch, &self->advert),
                               SN_START(fetch, &self->image))); /* whichever is first */
    printf("the winner is number %zu\n", self->first.race.winner);
    SN_END();
}

int main(void)
{
    page p;
    return sn_block_on_simple(SN_START(page, &p), NULL);
}
