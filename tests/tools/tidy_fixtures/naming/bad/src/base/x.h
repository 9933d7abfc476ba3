/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_X_H
#define SINEW_BASE_X_H

int thing_make(struct thing *t,
               int (*fn)(void *arg));

#endif
