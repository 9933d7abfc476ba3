/* SPDX-License-Identifier: MIT */
/* 22_pubsub - news for all by a broadcast, of which the slow lose some; the weather by a watch, of
 * which only the latest counts. In virtual time, so a long day is over in a moment. */
#include <sinew/sinew.h>
#include <stdio.h>

#define HOUR SN_S(3600)
static sn_broadcast *news;
static sn_watch *weather;

struct reader {
    const char *name;
    int64_t pause; /* after each piece of news */
    sn_subscription sub;
};

static int read_news(void *arg)
{
    struct reader *r = arg;
    int piece, lost, degrees = 0;
    while ((lost = sn_broadcast_recv(&r->sub, &piece, SN_FOREVER)) >= 0) {
        printf("%s reads piece %d, having missed %d\n", r->name, piece, lost);
        (void)sn_sleep(r->pause);
    }
    int rc = sn_watch_get(weather, &degrees, NULL);
    printf("%s goes out at %d degrees\n", r->name, degrees);
    return rc;
}

static int app(void *arg)
{
    struct reader readers[] = {{.name = "Ann", .pause = 0}, {.name = "Bob", .pause = 5 * HOUR / 2}};
    sn_task *task[2];
    int rc = sn_broadcast_create(&news, sizeof(int), 2);
    (void)arg;
    if (rc < 0 || (rc = sn_watch_create(&weather, sizeof(int), &(int){20})) < 0)
        return rc;
    for (int i = 0; i < 2; i++) { /* from now on, whenever they begin to read */
        (void)sn_broadcast_subscribe(news, &readers[i].sub);
        task[i] = sn_spawn(read_news, &readers[i]);
    }
    for (int hour = 1; hour <= 8 && rc == 0; hour++) { /* neither waits for anybody */
        rc = sn_broadcast_send(news, &hour) | sn_watch_set(weather, &(int){20 - hour});
        (void)sn_sleep(HOUR);
    }
    (void)sn_broadcast_close(news);
    rc |= sn_join(task[0], NULL) | sn_join(task[1], NULL);
    return rc | sn_watch_destroy(weather) | sn_broadcast_destroy(news);
}

int main(void)
{
    sn_runtime *rt;
    if (sn_runtime_create(&rt,
                          &(sn_runtime_options){.single_threaded = true, .virtual_time = true}))
        return 1;
    int rc = sn_runtime_block_on(rt, app, NULL);
    sn_runtime_destroy(rt);
    return rc < 0;
}
