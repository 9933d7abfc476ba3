/* SPDX-License-Identifier: MIT */
/* assert.c (posix) - a failed assertion on a machine with an operating system.
 *
 * One write, no stdio: it may run in a signal handler, and the heap or a lock may be what
 * is broken. */
#include "base/text.h"

#include <sinew/assert.h>
#include <stdlib.h>
#include <unistd.h>

SN_REPLACEABLE void sn_assert_failed(const char *sentence, const char *file, int line)
{
    struct sni_text t = {.used = 0};
    sni_text_put(&t, "sinew: ");
    sni_text_put(&t, sentence);
    sni_text_put(&t, " (");
    sni_text_put(&t, file);
    sni_text_put(&t, ":");
    sni_text_put_number(&t, line > 0 ? (unsigned)line : 0);
    sni_text_put(&t, ")\n");
    ssize_t written = write(STDERR_FILENO, t.bytes, t.used);
    (void)written;
    abort();
}
