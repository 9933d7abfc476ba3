/* SPDX-License-Identifier: MIT */
/* 25_first_error - ask four servers at once; the first one that fails ends the asking. In virtual
 * time, so that this takes no time at all. */
#include <sinew/sinew.h>
#include <stdio.h>
#include <string.h>

enum { SERVERS = 4 };

struct server {
    const char *name;
    int64_t takes_ns;
    int answer; /* or an error */
};

/* Stands for a request: it takes its time. A task may use what is on its parent's stack. */
static int ask(void *arg)
{
    const struct server *s = arg;
    int rc = sn_sleep(s->takes_ns);
    return rc < 0 ? rc : s->answer;
}

/* Ask all of them. Returns 0 and their answers in order, or the error of the first that failed. */
static int ask_all(struct server servers[SERVERS], sn_policy policy, int answers[SERVERS],
                   sn_group_report *report)
{
    int rc = 0;
    SN_SCOPE(g, .policy = policy, .results = answers, .results_max = SERVERS, .result = &rc,
             .report = report) {
        for (int i = 0; i < SERVERS; i++)
            (void)sn_group_spawn(g, ask, &servers[i], .name = servers[i].name);
    }
    return rc;
}

static void show(const char *title, struct server servers[SERVERS], sn_policy policy)
{
    int answers[SERVERS] = {0};
    sn_group_report report;
    int64_t began = sn_now();
    int rc = ask_all(servers, policy, answers, &report);
    printf("%s, after %d ms\n", title, (int)((sn_now() - began) / SN_MS(1)));
    for (int i = 0; i < SERVERS; i++)
        if (answers[i] < 0)
            printf("    %s: %s\n", servers[i].name, strerror(-answers[i]));
        else
            printf("    %s: %d\n", servers[i].name, answers[i]);
    if (rc < 0)
        printf("    %s was the first to fail, of %d; %d cancelled\n", report.failed_name,
               (int)report.failed, (int)report.cancelled);
}

static int app(void *arg)
{
    struct server servers[SERVERS] = {{"users", SN_MS(10), 1},
                                      {"orders", SN_MS(20), 2},
                                      {"stock", SN_MS(500), 3},
                                      {"prices", SN_MS(30), 4}};
    (void)arg;
    show("all well", servers, SN_FAIL_FAST);
    servers[1].answer = -EIO;
    show("one fails", servers, SN_FAIL_FAST);
    show("one fails, and the others go on", servers, SN_COLLECT_ALL);
    return 0;
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
