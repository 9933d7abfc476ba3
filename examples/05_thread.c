/* SPDX-License-Identifier: MIT */
/* 05_thread - a coroutine woken by another thread; an interrupt handler does it alike. */
#include <pthread.h>
#include <semaphore.h>
#include <sinew/sinew.h>
#include <stdio.h>

static sn_signal letters;

static void *postman(void *arg)
{
    for (int i = 0; i < 3; i++)
        (void)sn_signal_send(&letters, 14);
    return arg;
}

typedef struct reader {
    sn_coro coro;
    int got;
} reader;

SN_CORO(reader, self)
{
    int n;
    SN_BEGIN(self);
    while (self->got < 42) {
        SN_AWAIT_INTO(n, sn_signal_recv_op(&letters)); /* one by one, or several at once */
        self->got += n;
    }
    printf("got %d letters\n", self->got);
    SN_END();
}

/* How this thread sleeps while there is nothing to do, and how it is woken. */
static sem_t bell;

static void sleep_a_while(sn_idle *idle)
{
    (void)idle;
    (void)sem_wait(&bell);
}

static void ring(sn_idle *idle)
{
    (void)idle;
    (void)sem_post(&bell);
}

int main(void)
{
    static sn_idle idle = SN_IDLE_INIT(sleep_a_while, ring);
    reader r = {.got = 0};
    pthread_t thread;
    if (sem_init(&bell, 0, 0) != 0 || pthread_create(&thread, NULL, postman, NULL) != 0)
        return 1;
    int rc = sn_block_on_simple(SN_START(reader, &r), &idle);
    pthread_join(thread, NULL);
    return rc;
}
