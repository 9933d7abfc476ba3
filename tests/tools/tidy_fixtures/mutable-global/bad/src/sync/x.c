/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
static int counter;
int sni_total = 3;
static const char *names[] = {"a", "b"};
static struct pair {
    int a;
} shared;
extern struct pair sni_elsewhere;
static SNI_ATOMIC(uint32_t) hits;
SNI_ATOMIC(uint32_t) sni_misses;
static int (*hook)(void *arg);
_Thread_local int sni_mine;
static int next(void)
{
    static int last;
    return ++last;
}
