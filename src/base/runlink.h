/* SPDX-License-Identifier: MIT */
/* runlink.h - what a run queue holds: a link inside the thing that is to run.
 *
 * `next` belongs to whoever holds the link: a queue made of links while it is in there, else
 * the worker that took it. */
#ifndef SINEW_BASE_RUNLINK_H
#define SINEW_BASE_RUNLINK_H

struct sni_runlink {
    struct sni_runlink *next;
};

#endif
