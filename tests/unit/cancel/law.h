/* SPDX-License-Identifier: MIT */
/* law.h - the checkpoint law: what every call that can wait owes to deadlines and to who cancels
 * (R61, R62).
 *
 * A *row* is a call. It stands at a *place*: things that are made so that the call must wait, and
 * that can be changed so that it need not. test_law.c does to each row whatever can be done:
 *
 *     cancelled before, and it must wait        -ECANCELED, and nothing has happened
 *     cancelled before, and it need not wait    it takes place
 *     cancelled while it waits                  -ECANCELED, and nothing has happened; again so
 *                                               when it is called again
 *     cancelled and let go at the same time     one of the two, wholly
 *     a deadline that has passed, or passes     -ETIMEDOUT, and nothing has happened; if it need
 *                                               not wait, it takes place
 *     in a block whose deadline has passed      as if cancelled, with -ETIMEDOUT, until the block
 *                                               is left (fibers)
 *     afterwards                                the place works, for others, and nothing is left
 *
 * What a call does otherwise, its row says (the flags). Every public function that is declared
 * SN_SUSPENDS, and every sn_*_op, has a row: LAW(sn_x, ...) is what `tools/tidy` looks for. */
#ifndef SINEW_TESTS_LAW_H
#define SINEW_TESTS_LAW_H

#include "harness.h"

#include <errno.h>
#include <sinew/sinew.h>

/* The memory of any future of a row. */
union law_memory {
    sn_chan_op chan;
    sn_news_op news;
    sn_sync_state sync;
    sn_sleep_state sleep;
    sn_io_state io;
    sn_join_state join;
    struct {
        sn_select_state state;
        sn_case cases[2];
    } select;
};

/* Things to wait at. One is open at a time; `open`, `let` and `close` are called by one and the
 * same fiber or thread, another one than that which waits. */
struct law_place {
    void (*open)(void);

    /* From now on the call need not wait. NULL: it must, always. */
    void (*let)(void);

    /* Check that all is as it must be, if `let` was called or not, and the call has taken place or
     * not; that it works; and give it back. */
    void (*close)(bool let, bool took);

    /* After `let`, if nobody waits yet: see to it that its effect is there. May be NULL. */
    void (*settle)(void);
};

enum {
    LAW_NO_DEADLINE = 1,   /* it takes none                                                    */
    LAW_OWN_DEADLINE = 2,  /* it waits for its deadline, and takes place when that has passed  */
    LAW_UNCANCELLED = 4,   /* it goes on to its end although its task is cancelled             */
    LAW_NEEDS_RUNTIME = 8, /* for a plain thread there is -EPERM                               */
    LAW_NEEDS_TASKS = 16,  /* its place is inside a runtime                                    */
    LAW_OF_CHANNELS = 32,  /* a future whose memory tells what it did before it was dropped    */
    LAW_PARTLY = 64,       /* a wait that ends early gives `partly`, once, not an error        */
    LAW_WAITS = 256,       /* `let` lets only those go on who wait already                     */
    LAW_DOUBTFUL = 128,    /* it was let, but it may have to wait for a moment all the same    */
};

/* A call. */
struct law_row {
    const char *call, *variant;
    const struct law_place *place;
    ptrdiff_t (*plain)(sn_deadline until); /* make the call; or                              */
    sn_future *(*op)(union law_memory *m); /* give the future, to be awaited                 */
    void (*give_back)(void);               /* by whom it has taken place for; may be NULL     */
    ptrdiff_t takes;                       /* what it returns when it takes place             */
    ptrdiff_t partly;                      /* LAW_PARTLY                                      */
    unsigned flags;
    size_t exists_;
};

struct law_rows {
    const struct law_row *row;
    size_t n;
};

/* A row of the function `call_`; that it exists, the compiler sees. */
#define LAW(call_, ...) {.call = #call_, .exists_ = sizeof(&(call_)), __VA_ARGS__}

extern const struct law_rows law_of_channels, law_of_locks, law_of_tasks, law_of_sockets;

#endif
