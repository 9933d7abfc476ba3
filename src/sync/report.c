/* SPDX-License-Identifier: MIT */
/* report.c - who misused a lock, and who has it: the last words of a debug build.
 *
 * A gate's word names its holder by a number (sni_exec_self). Of a fiber that is its task, and the
 * place of its spawn is looked up, if it still lives: a task that ended with the lock in its hands
 * cannot be asked any more. Of a thread nothing is known, and all coroutines are one holder. The
 * caller is asked for its own place, so of a coroutine that is known.
 *
 * Rejected: to keep the places in the lock (two more words for a debug build make another layout of
 * what programs embed). */
#include "sync/gate.h"

#include "base/assert.h"
#include "base/text.h"

#include <sinew/task.h>

#ifdef SINEW_DEBUG

static void put_task(struct sni_text *text, const char *what, const char *place)
{
    sni_text_put(text, what);
    if (place != NULL) {
        sni_text_put(text, " spawned at ");
        sni_text_put(text, place);
    }
}

static void put_who(struct sni_text *text, uintptr_t who)
{
    const char *place = sni_exec_place(who);
    if (who == 0)
        sni_text_put(text, "nobody that is known");
    else if (who == SNI_SELF_CORO)
        sni_text_put(text, "a coroutine");
    else
        put_task(text, place != NULL ? "a task" : "a thread, or a task that has ended", place);
}

static void put_caller(struct sni_text *text)
{
    bool is_task = sn_task_id() != 0;
    put_task(text, is_task ? "a task" : "a thread", is_task ? sn_task_spawned_at() : NULL);
}

void sni_gate_report(const char *sentence, const char *role, uintptr_t who, const char *file,
                     int line)
{
    struct sni_text text = {.used = 0};
    sni_text_put(&text, sentence);
    sni_text_put(&text, "; ");
    sni_text_put(&text, role);
    sni_text_put(&text, " ");
    put_who(&text, who);
    sni_text_put(&text, ", used by ");
    put_caller(&text);
    text.bytes[text.used < sizeof(text.bytes) ? text.used : sizeof(text.bytes) - 1] = '\0';
    sn_assert_failed(text.bytes, file, line);
}

#endif
