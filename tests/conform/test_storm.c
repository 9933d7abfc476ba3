/* SPDX-License-Identifier: MIT */
/* Threads that play ping-pong over many sockets through one driver, while others cancel, reap and
 * wake (R80, R84, R85). They look for lost wake-ups (a hang, cut by the time limit), for results
 * that cannot be, and, under the sanitizers, for races and misused memory. */
#include "conform/conform.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAIRS = 6,
    ROUNDS = 300,
    ACCEPTORS = 8,
    SHARE = 40,
    CONNECTIONS = ACCEPTORS * SHARE,
};

/* A player's place: what it waits with, kept alive by the lock for whoever cancels. */
struct place {
    struct sni_mutex lock;
    struct sni_op *op;
    int fd;
    bool serves;
    bool kept;
    unsigned cancelled;
};

struct game {
    struct sni_driver *driver;
    struct place places[2 * PAIRS];
    SNI_ATOMIC(uint32_t) playing;
    SNI_ATOMIC(uint32_t) over;
};

static ptrdiff_t wait_in(struct game *game, struct place *place, uint32_t *ticket)
{
    struct sni_op op;
    begin_poll(&op, place->fd, SNI_READABLE);
    op.kept = place->kept;
    op.flags = *ticket;
    sni_mutex_lock(&place->lock);
    place->op = &op;
    sni_driver_submit(game->driver, &op);
    sni_driver_flush(game->driver);
    sni_mutex_unlock(&place->lock);
    CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
    sni_mutex_lock(&place->lock);
    place->op = NULL;
    sni_mutex_unlock(&place->lock);
    *ticket = op.flags;
    return op.result;
}

static void recv_ball(struct game *game, struct place *place, uint32_t *ticket, uint32_t *ball)
{
    for (;;) {
        uint32_t before = *ticket;
        ssize_t n = recv(place->fd, ball, sizeof(*ball), 0);
        if (n >= 0) {
            CHECK_EQ(n, sizeof(*ball));
            return;
        }
        CHECK_EQ(errno, EAGAIN);
        *ticket = before;
        ptrdiff_t result = wait_in(game, place, ticket);
        CHECK(result == SNI_READABLE || result == -ETIMEDOUT);
        place->cancelled += result == -ETIMEDOUT;
    }
}

struct player {
    struct game *game;
    struct place *place;
};

static void *play(void *arg)
{
    struct player *player = arg;
    struct place *place = player->place;
    uint32_t ticket = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t ball = i;
        if (place->serves)
            CHECK_EQ(send(place->fd, &ball, sizeof(ball), 0), sizeof(ball));
        recv_ball(player->game, place, &ticket, &ball);
        CHECK_EQ(ball, i);
        if (!place->serves)
            CHECK_EQ(send(place->fd, &ball, sizeof(ball), 0), sizeof(ball));
    }
    sni_atomic_fetch_sub(&player->game->playing, 1, release); /* release: to the owner's loop */
    sni_driver_wake(player->game->driver);
    return NULL;
}

static void *disturb(void *arg)
{
    struct game *game = arg;
    unsigned i = 0;
    while (sni_atomic_load(&game->over, relaxed) == 0) { /* relaxed: soon is enough */
        struct place *place = &game->places[i++ % (2 * PAIRS)];
        sni_mutex_lock(&place->lock);
        if (place->op != NULL)
            sni_driver_cancel(place->op, -ETIMEDOUT);
        sni_mutex_unlock(&place->lock);
        if (i % 4 == 0)
            (void)sni_driver_reap(game->driver);
        if (i % 16 == 0)
            sni_driver_wake(game->driver);
        sni_plat_thread_yield();
    }
    return NULL;
}

TEST(ping_pong_goes_on_while_others_cancel_reap_and_wake, .limit_s = 60)
{
    struct game *game = calloc(1, sizeof(*game));
    *game = (struct game){.driver = open_driver(), .playing = {2 * PAIRS}};
    struct player players[2 * PAIRS];
    pthread_t threads[2 * PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        for (int j = 0; j < 2; j++)
            game->places[2 * i + j] =
                (struct place){.fd = pair[j], .serves = j == 0, .kept = i % 3 != 0};
    }
    pthread_t disturber;
    CHECK_EQ(pthread_create(&disturber, NULL, disturb, game), 0);
    for (int i = 0; i < 2 * PAIRS; i++) {
        players[i] = (struct player){game, &game->places[i]};
        CHECK_EQ(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    /* acquire: pairs with the release in play */
    while (sni_atomic_load(&game->playing, acquire) > 0) {
        sni_driver_wait(game->driver, INT64_MAX);
        (void)sni_driver_reap(game->driver);
    }
    sni_atomic_store(&game->over, 1, relaxed); /* relaxed: soon is enough */
    CHECK_EQ(pthread_join(disturber, NULL), 0);
    for (int i = 0; i < 2 * PAIRS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        sni_driver_forget(game->driver, game->places[i].fd);
        CHECK_EQ(close(game->places[i].fd), 0);
    }
    close_driver(game->driver);
    free(game);
}

/* ---- many acceptors ---------------------------------------------------------------------- */

/* A file as the rest of the house has it: one ticket for all who use it. */
struct hall {
    struct sni_driver *driver;
    int listener;
    SNI_ATOMIC(uint32_t) ticket;
    SNI_ATOMIC(uint32_t) accepted;
};

/* Accept `most` connections, then be content and never come back. */
static void accept_some(struct hall *hall, uint32_t most)
{
    while (most > 0) {
        /* acquire: pairs with the release below. Before the try: see "Tickets" */
        uint32_t ticket = sni_atomic_load(&hall->ticket, acquire);
        int fd = accept(hall->listener, NULL, NULL);
        if (fd >= 0) {
            CHECK_EQ(close(fd), 0);
            sni_atomic_fetch_add(&hall->accepted, 1, release); /* release: to the owner's loop */
            sni_driver_wake(hall->driver);
            most--;
            continue;
        }
        CHECK_EQ(errno, EAGAIN);
        struct sni_op op;
        begin_poll(&op, hall->listener, SNI_READABLE);
        op.kept = true;
        op.flags = ticket;
        sni_driver_submit(hall->driver, &op);
        sni_driver_flush(hall->driver);
        CHECK_EQ(sni_wait_commit(&op.waiter, SN_FOREVER), 0);
        CHECK_EQ(op.result, SNI_READABLE);
        sni_atomic_store(&hall->ticket, op.flags, release); /* release: pairs with the acquire */
    }
}

static void *accept_few(void *hall)
{
    accept_some(hall, SHARE);
    return NULL;
}

static void *come(void *arg)
{
    struct hall *hall = arg;
    int fds[20];
    for (uint32_t i = 0; i < CONNECTIONS;) {
        uint32_t n = 0;
        for (; n < 1 + i % 20 && i + n < CONNECTIONS; n++)
            fds[n] = connect_to(hall->listener);
        i += n;
        while (n > 0)
            CHECK_EQ(close(fds[--n]), 0);
        /* Not more than the queue of the listener holds. relaxed: a look */
        while (i - sni_atomic_load(&hall->accepted, relaxed) > 64)
            sni_plat_thread_yield();
        if (i % 3 == 0)
            sni_plat_thread_yield();
    }
    return NULL;
}

/* As many connections come as the acceptors want in all. Each acceptor leaves when it has its
 * share; if a wake-up were lost with it, one of the others would wait for ever. */
TEST(no_connection_is_left_to_acceptors_that_have_gone, .limit_s = 60)
{
    for (int round = 0; round < 5; round++) {
        struct hall hall = {.driver = open_driver(), .listener = listen_on_loopback()};
        pthread_t threads[ACCEPTORS];
        for (int i = 0; i < ACCEPTORS; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, accept_few, &hall), 0);
        pthread_t guest;
        CHECK_EQ(pthread_create(&guest, NULL, come, &hall), 0);
        /* acquire: pairs with the release in accept_some */
        while (sni_atomic_load(&hall.accepted, acquire) < CONNECTIONS) {
            sni_driver_wait(hall.driver, INT64_MAX);
            (void)sni_driver_reap(hall.driver);
        }
        CHECK_EQ(pthread_join(guest, NULL), 0);
        for (int i = 0; i < ACCEPTORS; i++)
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        sni_driver_forget(hall.driver, hall.listener);
        CHECK_EQ(close(hall.listener), 0);
        close_driver(hall.driver);
    }
}
