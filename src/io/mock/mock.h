/* SPDX-License-Identifier: MIT */
/* mock.h - a driver that does what a test says, and remembers what it was asked.
 *
 * The n-th operation follows the n-th step of a *script*: when it is over, with what result, and
 * what a cancellation does to it. Operations after the last step of the script wait: a POLL until
 * the test says that its descriptor is ready (sni_mock_set_ready), every other kind until it is
 * cancelled. Nothing is done to descriptors, which are mere numbers here, nor to buffers; all
 * kinds are native. Sleeping and waking are real. */
#ifndef SINEW_IO_MOCK_MOCK_H
#define SINEW_IO_MOCK_MOCK_H

#include "io/bell.h"
#include "io/driver.h"

/* When an operation is over, if it is not cancelled. */
enum sni_mock_when {
    SNI_MOCK_NOW,   /* within submit                                                            */
    SNI_MOCK_REAP,  /* at the reaps-th reap from then on, 1 being the next                      */
    SNI_MOCK_NEVER, /* not by itself                                                            */
    SNI_MOCK_READY, /* a POLL: at the first reap that finds its descriptor ready                 */
};

/* What a cancellation brings about. */
enum sni_mock_cancel {
    SNI_MOCK_CANCELED,      /* -ECANCELED, at once                                              */
    SNI_MOCK_CANCELED_SOON, /* -ECANCELED, at the next reap, as a ring does it                  */
    SNI_MOCK_SUCCEEDS,      /* it comes too late: `result`, at the next reap                    */
    SNI_MOCK_UNAWARE,       /* it comes too late: the operation goes its way. Not with NEVER    */
};

/* One step of a script. */
struct sni_mock_step {
    uint8_t when;      /* sni_mock_when                                                         */
    uint8_t on_cancel; /* sni_mock_cancel                                                       */
    uint16_t reaps;    /* SNI_MOCK_REAP: 1 or more                                              */
    uint32_t times;    /* so many operations in a row do this; 0 is 1                            */
    ptrdiff_t result;  /* as of the operation: short counts, -EAGAIN, -EINTR, -EMFILE, ...       */
};

enum sni_mock_called {
    SNI_MOCK_SUBMIT,
    SNI_MOCK_CANCEL,
    SNI_MOCK_FORGET,
    SNI_MOCK_FLUSH,
    SNI_MOCK_COMPLETE, /* not a call but what came of one */
};

/* One line of the log. */
struct sni_mock_call {
    uint8_t what;     /* sni_mock_called                                                 */
    uint8_t kind;     /* SUBMIT, CANCEL, COMPLETE: of the operation                      */
    int fd;           /* SUBMIT, CANCEL, COMPLETE, FORGET                                */
    uint32_t number;  /* SUBMIT, CANCEL, COMPLETE: it was the n-th operation, from 0     */
    ptrdiff_t result; /* COMPLETE                                                        */
};

enum {
    SNI_MOCK_LOG = 256,   /* lines that are kept: the first ones */
    SNI_MOCK_FDS = 16384, /* numbers that can become ready       */
};

struct sni_mock_entry;

struct sni_mock {
    struct sni_driver driver; /* all that follows: under its lock, but for the bell   */
    struct sni_bell bell;
    const struct sni_mock_step *script; /* immutable; the test's                                */
    size_t steps;                       /* immutable                                            */
    size_t step;                        /* the one of the next operation                        */
    uint32_t done;                      /* operations that have taken it                         */
    uint32_t submitted;                 /* operations so far                                     */
    struct sni_mock_entry *entries;     /* what is pending, in order                            */
    size_t count;
    size_t room;
    unsigned reaps; /* calls of each                                         */
    unsigned waits;
    SNI_ATOMIC(uint32_t) wakes; /* any thread                                           */
    unsigned calls;             /* of the log; may be more than it keeps                 */
    struct sni_mock_call log[SNI_MOCK_LOG];
    uint8_t ready[SNI_MOCK_FDS];
};

/* A driver in the caller's memory, which is some 25 KiB. `script` stays the caller's and is read
 * until the end. To be finished by sni_driver_finish. */
void sni_mock_init(struct sni_mock *mock, const struct sni_mock_step *script, size_t steps);

/* The events of `fd` are these from now on, and stay so until told otherwise. Any thread. */
void sni_mock_set_ready(struct sni_mock *mock, int fd, unsigned events);

/* How many lines of the log say `what`. */
unsigned sni_mock_count(struct sni_mock *mock, enum sni_mock_called what);

#endif
