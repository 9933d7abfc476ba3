/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H

typedef struct sn_thing {
    int anything;
    int (*call)(void *arg);
} sn_thing;
typedef int sn_thing_fn(void *arg);
typedef int (*sn_other_fn)(sn_thing *thing);
enum sn_color { SN_RED = 1 + (int)sizeof(int), SN_GREEN };
struct sn_forward;
SN_STATIC_ASSERT(sizeof(sn_thing) >= sizeof(int), "odd");

#endif
