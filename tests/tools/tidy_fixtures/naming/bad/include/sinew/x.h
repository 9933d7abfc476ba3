/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H

typedef struct sn_thing {
    int anything;
} sn_thing_t;
typedef int callback(void *arg);
enum { SN_RED, GREEN };
struct forward;
int sn_fine;
int global;
/* A macro. */
#define MAX_THINGS 3

#endif
