/* SPDX-License-Identifier: MIT */
/* Any text at all given to the reader of addresses (R82). For each:
 *
 *   - nothing behind its NUL is looked at, and nothing behind a buffer written: both end where
 *     memory does
 *   - it is accepted or refused as a second reader, made of inet_pton and strtoul, says; where
 *     both accept, host, port and interface are the same
 *   - what is accepted can be written; what is written is read back as the same, and written the
 *     same
 *   - it goes to the kernel's form and back unchanged
 *
 * The second reader knows no way in which ours is stricter than inet_pton of glibc about the host,
 * and there is none: a C library that takes "01.2.3.4" would be one, and fail here. */
#include "fuzz.h"

#include "net/sockaddr.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK_INPUT(cond) FUZZ_CHECK(cond, data, bytes)

const char *const fuzz_examples[] = {
    "127.0.0.1:80",
    "0.0.0.0:0",
    "255.249.199.99:65535",
    "10.20.30.40:8080",
    "[::1]:80",
    "[::]:0",
    "[1::]:443",
    "[fe80::1%3]:80",
    "[fe80::abcd:EF%4294967295]:1",
    "[1:2:3:4:5:6:7:8]:80",
    "[2001:db8:0:0:1:0:0:1]:65535",
    "[1:22:333:4444:5:66:127.0.0.1]:9",
    "[::ffff:1.2.3.4]:80",
    "[::1.2.3.4]:80",
    "unix:/run/sinew.sock",
    "unix:relative",
    "unix:@abstract",
    "unix:./@file",
    "unix:/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789",
    "",
    "localhost:80",
    "*:80",
    "01.2.3.4:80",
    "1.2.3.256:80",
    "[::00000]:080",
    "unix:@",
    NULL,
};

enum { IPV4, IPV6, SCOPED, PATH, ABSTRACT, TOO_LONG, REFUSED };

struct fuzz_count fuzz_counts[] = {
    [IPV4] = {"IPv4", 0},
    [IPV6] = {"IPv6", 0},
    [SCOPED] = {"IPv6 with an interface", 0},
    [PATH] = {"paths", 0},
    [ABSTRACT] = {"abstract names", 0},
    [TOO_LONG] = {"too long", 0},
    [REFUSED] = {"refused", 0},
    {NULL, 0},
};

/* ---- the second reader ---------------------------------------------------------------- */

/* What it expects of us. */
struct expected {
    int rc;
    sn_addr_kind kind;
    uint8_t host[16];
    unsigned long port;
    unsigned long scope;
};

/* The text is the number `*value`, written as printf would, and at most `max`. */
static bool number_is(const char *text, unsigned long max, unsigned long *value)
{
    char again[32];
    *value = strtoul(text, NULL, 10);
    snprintf(again, sizeof(again), "%lu", *value);
    return strcmp(text, again) == 0 && *value <= max;
}

/* `text` is cut into pieces in place. */
static bool expect_inet(char *text, struct expected *e)
{
    char *port;
    char *scope = NULL;
    if (text[0] == '[') {
        char *close = strchr(text, ']');
        if (close == NULL || close[1] != ':')
            return false;
        *close = '\0';
        port = close + 2;
        scope = strchr(text, '%');
        if (scope != NULL)
            *scope++ = '\0';
    } else {
        port = strchr(text, ':');
        if (port == NULL)
            return false;
        *port++ = '\0';
    }
    e->kind = text[0] == '[' ? SN_ADDR_IPV6 : SN_ADDR_IPV4;
    int host = e->kind == SN_ADDR_IPV6 ? inet_pton(AF_INET6, text + 1, e->host)
                                       : inet_pton(AF_INET, text, e->host);
    if (scope != NULL && (!number_is(scope, UINT32_MAX, &e->scope) || e->scope == 0))
        return false;
    return host == 1 && number_is(port, UINT16_MAX, &e->port);
}

static struct expected expect(const char *text)
{
    struct expected e = {.rc = -EINVAL};
    char copy[4096];
    size_t length = strlen(text);
    if (strncmp(text, "unix:", 5) == 0) {
        size_t name = length - 5 - (text[5] == '@');
        e.kind = SN_ADDR_UNIX;
        e.rc = name == 0 ? -EINVAL : name > 107 ? -ENAMETOOLONG : 0;
        return e;
    }
    memcpy(copy, text, length + 1);
    if (expect_inet(copy, &e))
        e.rc = 0;
    return e;
}

/* ---- the invariants ------------------------------------------------------------------- */

/* `bytes` that end where memory does; two of them at a time. */
static char *at_the_end_of_memory(int which, size_t bytes)
{
    static char *map[2];
    static size_t page;
    if (map[which] == NULL) {
        page = (size_t)sysconf(_SC_PAGESIZE);
        map[which] =
            mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map[which] == MAP_FAILED || mprotect(map[which] + page, page, PROT_NONE) != 0)
            abort();
    }
    return map[which] + page - bytes;
}

static void check_expected(const sn_addr *a, const char *text, const uint8_t *data, size_t bytes)
{
    struct expected e = expect(text);
    CHECK_INPUT(e.rc == 0);
    CHECK_INPUT(sn_addr_kind_of(a) == e.kind);
    CHECK_INPUT(sn_addr_port(a) == e.port);
    CHECK_INPUT(a->scope_ == e.scope);
    if (e.kind != SN_ADDR_UNIX)
        CHECK_INPUT(memcmp(a->bytes_, e.host, e.kind == SN_ADDR_IPV4 ? 4 : 16) == 0);
}

static void check_written(const sn_addr *a, const char *text, const uint8_t *data, size_t bytes)
{
    char first[SN_ADDR_TEXT_MAX];
    char second[SN_ADDR_TEXT_MAX];
    sn_addr again;
    int length = sn_addr_format(a, first, sizeof(first));
    CHECK_INPUT(length > 0 && (size_t)length == strlen(first));
    CHECK_INPUT(sn_addr_parse(first, &again) == 0);
    CHECK_INPUT(sn_addr_equal(a, &again));
    CHECK_INPUT(sn_addr_format(&again, second, sizeof(second)) == length);
    CHECK_INPUT(strcmp(first, second) == 0);
    if (sn_addr_kind_of(a) != SN_ADDR_IPV6) /* which alone has several ways to be written */
        CHECK_INPUT(strcmp(first, text) == 0);

    size_t enough = (size_t)length + 1;
    char *tight = at_the_end_of_memory(1, enough);
    CHECK_INPUT(sn_addr_format(a, tight, enough) == length && strcmp(tight, first) == 0);
    tight = at_the_end_of_memory(1, enough - 1);
    CHECK_INPUT(sn_addr_format(a, tight, enough - 1) == -ENOSPC && tight[0] == '\0');
}

static void check_kernel_form(const sn_addr *a, const uint8_t *data, size_t bytes)
{
    struct sockaddr_storage s;
    socklen_t size;
    sn_addr again;
    CHECK_INPUT(sni_sockaddr_from(a, &s, &size) == 0);
    CHECK_INPUT(size <= sizeof(s));
    memset((char *)&s + size, 0xa5, sizeof(s) - size);
    CHECK_INPUT(sni_sockaddr_to(&s, size, &again) == 0);
    CHECK_INPUT(sn_addr_equal(a, &again));
    CHECK_INPUT(memcmp(a, &again, sizeof(again)) == 0);
}

static void count_accepted(const sn_addr *a, const char *text)
{
    switch (sn_addr_kind_of(a)) {
    case SN_ADDR_IPV4:
        fuzz_counts[IPV4].times++;
        break;
    case SN_ADDR_IPV6:
        fuzz_counts[IPV6].times++;
        fuzz_counts[SCOPED].times += a->scope_ != 0;
        break;
    case SN_ADDR_UNIX:
        fuzz_counts[text[5] == '@' ? ABSTRACT : PATH].times++;
        break;
    case SN_ADDR_NONE:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sn_addr a;
    if (bytes > 1000)
        return 0;
    char *text = at_the_end_of_memory(0, bytes + 1);
    if (bytes > 0)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    int rc = sn_addr_parse(text, &a);
    if (rc == 0) {
        check_expected(&a, text, data, bytes);
        check_written(&a, text, data, bytes);
        check_kernel_form(&a, data, bytes);
        count_accepted(&a, text);
    } else {
        CHECK_INPUT(rc == expect(text).rc);
        CHECK_INPUT(sn_addr_kind_of(&a) == SN_ADDR_NONE);
        fuzz_counts[rc == -ENAMETOOLONG ? TOO_LONG : REFUSED].times++;
    }
    return 0;
}
