/* SPDX-License-Identifier: MIT */
/* 09_embed - tasks inside a program that has an event loop of its own. */
#include <poll.h>
#include <sinew/sinew.h>
#include <stdio.h>
#include <unistd.h>

static int count(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        printf("%s %d\n", (const char *)arg, i);
        sn_yield();
    }
    return 0;
}

int main(void)
{
    sn_runtime *rt;
    int keyboard[2]; /* stands for whatever else the program waits for */
    int rc = sn_runtime_create(&rt, &(sn_runtime_options){.single_threaded = true});
    if (rc < 0 || pipe(keyboard) < 0 || write(keyboard[1], "x", 1) != 1)
        return 1;

    struct pollfd fds[2] = {{.fd = keyboard[0], .events = POLLIN},
                            {.fd = sn_runtime_fd(rt), .events = POLLIN}};
    for (int alive = 1; alive > 0 && poll(fds, 2, -1) > 0;) {
        if (fds[0].revents & POLLIN) {
            char key;
            printf("%zd key pressed\n", read(keyboard[0], &key, 1));
            (void)sn_detach(sn_runtime_spawn(rt, count, "tick"));
            (void)sn_detach(sn_runtime_spawn(rt, count, "  tock"));
        }
        alive = sn_runtime_turn(rt, SN_FOREVER);
    }
    sn_runtime_destroy(rt);
    return close(keyboard[0]) | close(keyboard[1]);
}
