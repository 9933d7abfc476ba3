/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
struct pair {
    int a;
};
typedef struct pair pair;
enum { LIMIT = 3 };
static const int table[LIMIT] = {1, 2, 3};
static const char *const names[] = {"a", "b"};
static int (*const steps[])(void) = {one, two};
extern const struct sni_io_ops sni_io_mock, sni_io_uring;
static int later(int (*fn)(void *arg), void *arg);
static_assert(sizeof(struct pair) == 4, "size");
SNI_CHECK(LIMIT);
SNI_COLD static struct pair *find(int a)
{
    static const int here = 1;
    struct pair *p = NULL;
    return a > here ? p : NULL;
}
const struct sni_ops sni_ops = {
    .find = find,
};
