/* SPDX-License-Identifier: MIT */
/* addr.c - reading and writing addresses; see sinew/addr.h for what is accepted and why.
 *
 * Words: a *group* is 16 bits of an IPv6 address, a *gap* the "::" that stands for one group of
 * zeros or more.
 *
 * Reading goes from left to right: each read_* takes the place where its piece must begin and gives
 * the place after it, or NULL if the piece is not there. It looks at a byte only after it has found
 * all before it to be of the piece; the NUL is of none, so nothing behind it is ever looked at. The
 * one piece that is tried in two ways is the IPv4 tail of an IPv6 address, whose first part looks
 * like a group until its point comes.
 *
 * What an sn_addr that came from here holds, whatever the text was:
 *   - bytes_ from length_ on, and what its kind has no use for, are zeros
 *   - a path is not empty, holds no NUL, and does not begin with '@'
 *   - an abstract name follows a NUL, as the kernel has it, and length_ counts both
 * net/sockaddr.c keeps to it for what the kernel gives, but may find no name at all (length_ 0),
 * and abstract names that are empty or with a NUL inside.
 *
 * Rejected: inet_pton (takes the host alone, and what is accepted would be for each C library to
 * decide; the fuzz test compares us with it); getaddrinfo with AI_NUMERICHOST (takes "127.1",
 * "0x7f000001" and the names of interfaces, and allocates); escapes for what a path may hold (two
 * texts for one address, and a path with a backslash could no longer be pasted). */
#include <sinew/addr.h>

#include "base/text.h"

#include <assert.h>
#include <string.h>

enum {
    IPV4_BYTES = 4,
    IPV6_BYTES = 16,
    GROUPS = 8,
    GROUP_DIGITS_MAX = 4,
    MAPPED_AT = 12, /* where the IPv4 part of an IPv6 address begins */
    NAME_BYTES_MAX = sizeof(((sn_addr *)0)->bytes_) - 1,
};

static_assert(SN_ADDR_TEXT_MAX == sizeof("unix:@") + NAME_BYTES_MAX, "the longest text fits");
static_assert(SN_ADDR_TEXT_MAX <= sizeof(((struct sni_text *)0)->bytes), "and is not cut");

static const char unix_prefix[] = "unix:";
static const uint8_t mapped_prefix[MAPPED_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- reading -------------------------------------------------------------------------- */

/* A decimal number up to `max`: no sign, and no zero in front of another digit. */
static const char *read_decimal(const char *at, uint32_t max, uint32_t *value)
{
    const char *begin = at;
    uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        n = n * 10 + (uint64_t)(*at - '0');
        if (n > max || (at > begin && *begin == '0'))
            return NULL;
    }
    *value = (uint32_t)n;
    return at > begin ? at : NULL;
}

/* The port and the end of the text. */
static bool read_port(const char *at, uint16_t *port)
{
    uint32_t value;
    if (*at != ':')
        return false;
    at = read_decimal(at + 1, UINT16_MAX, &value);
    if (at == NULL || *at != '\0')
        return false;
    *port = (uint16_t)value;
    return true;
}

static const char *read_ipv4(const char *at, uint8_t bytes[IPV4_BYTES])
{
    for (int i = 0; i < IPV4_BYTES; i++) {
        uint32_t part;
        if (i > 0) {
            if (*at != '.')
                return NULL;
            at++;
        }
        at = read_decimal(at, UINT8_MAX, &part);
        if (at == NULL)
            return NULL;
        bytes[i] = (uint8_t)part;
    }
    return at;
}

/* The value of a hexadecimal digit, or -1. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static const char *read_group(const char *at, uint8_t bytes[2])
{
    unsigned value = 0;
    int digits = 0;
    for (; digit_of(*at) >= 0; at++) {
        value = value << 4 | (unsigned)digit_of(*at);
        if (++digits > GROUP_DIGITS_MAX)
            return NULL;
    }
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
    return digits > 0 ? at : NULL;
}

/* Groups as they stand in the text; `gap` is where among them "::" was. */
struct groups {
    uint8_t bytes[IPV6_BYTES];
    size_t used;
    size_t gap; /* SIZE_MAX: there was none */
};

/* One "::" if there is one here. */
static const char *read_gap(const char *at, struct groups *g)
{
    if (at[0] != ':' || at[1] != ':')
        return at;
    if (g->gap != SIZE_MAX)
        return NULL;
    g->gap = g->used;
    return at + 2;
}

static const char *read_groups(const char *at, struct groups *g)
{
    g->used = 0;
    g->gap = SIZE_MAX;
    at = read_gap(at, g);
    if (g->gap == 0 && digit_of(*at) < 0)
        return at;
    for (;;) {
        /* The last two groups may be written as IPv4; that ends the address. */
        if (g->used <= MAPPED_AT) {
            const char *end = read_ipv4(at, g->bytes + g->used);
            if (end != NULL) {
                g->used += IPV4_BYTES;
                return end;
            }
        }
        if (g->used == IPV6_BYTES)
            return NULL;
        at = read_group(at, g->bytes + g->used);
        if (at == NULL)
            return NULL;
        g->used += 2;
        if (*at != ':')
            return at;
        const char *after = read_gap(at, g);
        if (after == NULL)
            return NULL;
        if (after > at && digit_of(*after) < 0)
            return after;
        at = after > at ? after : at + 1;
    }
}

static const char *read_ipv6(const char *at, uint8_t bytes[IPV6_BYTES])
{
    struct groups g;
    at = read_groups(at, &g);
    if (at == NULL)
        return NULL;
    bool has_gap = g.gap != SIZE_MAX;
    if (has_gap == (g.used == IPV6_BYTES))
        return NULL; /* a gap for nothing, or groups that lack */
    size_t front = has_gap ? g.gap : g.used;
    size_t back = g.used - front;
    memset(bytes, 0, IPV6_BYTES);
    memcpy(bytes, g.bytes, front);
    memcpy(bytes + IPV6_BYTES - back, g.bytes + front, back);
    return at;
}

static bool parse_ipv4(const char *text, sn_addr *a)
{
    a->family_ = SN_ADDR_IPV4;
    a->length_ = IPV4_BYTES;
    const char *at = read_ipv4(text, a->bytes_);
    return at != NULL && read_port(at, &a->port_);
}

static bool parse_ipv6(const char *text, sn_addr *a)
{
    a->family_ = SN_ADDR_IPV6;
    a->length_ = IPV6_BYTES;
    const char *at = read_ipv6(text + 1, a->bytes_);
    if (at != NULL && *at == '%') {
        at = read_decimal(at + 1, UINT32_MAX, &a->scope_);
        if (a->scope_ == 0)
            return false; /* the kernel's word for none, which is written by leaving it out */
    }
    return at != NULL && *at == ']' && read_port(at + 1, &a->port_);
}

/* An empty path or name is refused, though the kernel has a meaning for both: it is what is left
 * when a variable in a configuration was not set, and bind() would choose a name by itself. */
static int parse_unix(const char *path, sn_addr *a)
{
    bool abstract = *path == '@';
    const char *name = path + abstract;
    size_t length = strlen(name);
    if (length == 0)
        return -EINVAL;
    if (length > NAME_BYTES_MAX)
        return -ENAMETOOLONG;
    a->family_ = SN_ADDR_UNIX;
    a->length_ = (uint32_t)(length + abstract);
    memcpy(a->bytes_ + abstract, name, length); /* behind a NUL if abstract */
    return 0;
}

int sn_addr_parse(const char *text, sn_addr *out)
{
    const size_t prefix = sizeof(unix_prefix) - 1;
    const sn_addr none = {0};
    sn_addr a = none;
    int rc;
    if (out == NULL)
        return -EINVAL;
    if (text == NULL)
        rc = -EINVAL;
    else if (strncmp(text, unix_prefix, prefix) == 0)
        rc = parse_unix(text + prefix, &a);
    else
        rc = (*text == '[' ? parse_ipv6(text, &a) : parse_ipv4(text, &a)) ? 0 : -EINVAL;
    *out = rc == 0 ? a : none;
    return rc;
}

/* ---- writing -------------------------------------------------------------------------- */

static void put_ipv4(struct sni_text *t, const uint8_t bytes[IPV4_BYTES])
{
    for (int i = 0; i < IPV4_BYTES; i++) {
        sni_text_put(t, i > 0 ? "." : "");
        sni_text_put_number(t, bytes[i]);
    }
}

/* Lower case, without zeros in front. */
static void put_group(struct sni_text *t, unsigned value)
{
    char digits[GROUP_DIGITS_MAX + 1];
    char *at = digits + GROUP_DIGITS_MAX;
    *at = '\0';
    do {
        *--at = "0123456789abcdef"[value % 16];
        value /= 16;
    } while (value > 0);
    sni_text_put(t, at);
}

static unsigned group_of(const uint8_t bytes[IPV6_BYTES], int i)
{
    const uint8_t *at = bytes + 2 * (size_t)i;
    return (unsigned)at[0] << 8 | at[1];
}

/* The longest run of two or more groups of zeros, the first of several: [*begin, *end). If there is
 * none both are GROUPS. */
static void find_zeros(const uint8_t bytes[IPV6_BYTES], int *begin, int *end)
{
    *begin = GROUPS;
    *end = GROUPS;
    int longest = 1;
    int run = 0;
    for (int i = 0; i < GROUPS; i++) {
        run = group_of(bytes, i) == 0 ? run + 1 : 0;
        if (run > longest) {
            longest = run;
            *begin = i + 1 - run;
            *end = i + 1;
        }
    }
}

/* RFC 5952. Of the addresses with an IPv4 one inside only the mapped ones show it: they are what
 * a socket for both families sees. */
static void put_ipv6(struct sni_text *t, const uint8_t bytes[IPV6_BYTES])
{
    if (memcmp(bytes, mapped_prefix, MAPPED_AT) == 0) {
        sni_text_put(t, "::ffff:");
        put_ipv4(t, bytes + MAPPED_AT);
        return;
    }
    int begin;
    int end;
    find_zeros(bytes, &begin, &end);
    for (int i = 0; i < begin; i++) {
        sni_text_put(t, i > 0 ? ":" : "");
        put_group(t, group_of(bytes, i));
    }
    sni_text_put(t, begin < GROUPS ? "::" : "");
    for (int i = end; i < GROUPS; i++) {
        sni_text_put(t, i > end ? ":" : "");
        put_group(t, group_of(bytes, i));
    }
}

static void put_port(struct sni_text *t, const sn_addr *a)
{
    sni_text_put(t, ":");
    sni_text_put_number(t, a->port_);
}

static void put_inet6(struct sni_text *t, const sn_addr *a)
{
    sni_text_put(t, "[");
    put_ipv6(t, a->bytes_);
    if (a->scope_ != 0) {
        sni_text_put(t, "%");
        sni_text_put_number(t, a->scope_);
    }
    sni_text_put(t, "]");
    put_port(t, a);
}

static int put_unix(struct sni_text *t, const sn_addr *a)
{
    char name[NAME_BYTES_MAX + 1];
    bool abstract = a->length_ > 0 && a->bytes_[0] == '\0';
    size_t length = a->length_ - abstract;
    memcpy(name, a->bytes_ + abstract, length);
    name[length] = '\0';
    if (strlen(name) < length || (abstract && length == 0))
        return -EINVAL;
    sni_text_put(t, unix_prefix);
    sni_text_put(t, abstract ? "@" : "");
    sni_text_put(t, name);
    return 0;
}

static int put_addr(struct sni_text *t, const sn_addr *a)
{
    switch (sn_addr_kind_of(a)) {
    case SN_ADDR_NONE:
        return -EINVAL;
    case SN_ADDR_IPV4:
        put_ipv4(t, a->bytes_);
        put_port(t, a);
        return 0;
    case SN_ADDR_IPV6:
        put_inet6(t, a);
        return 0;
    case SN_ADDR_UNIX:
        return put_unix(t, a);
    }
    return -EINVAL;
}

int sn_addr_format(const sn_addr *addr, char *buf, size_t bytes)
{
    struct sni_text t;
    t.used = 0;
    if (bytes > 0)
        buf[0] = '\0';
    int rc = put_addr(&t, addr);
    if (rc < 0)
        return rc;
    if (t.used >= bytes)
        return -ENOSPC;
    memcpy(buf, t.bytes, t.used);
    buf[t.used] = '\0';
    return (int)t.used;
}

/* ---- asking --------------------------------------------------------------------------- */

/* Everybody asks this first, so what is no address can lead nobody out of bytes_. */
sn_addr_kind sn_addr_kind_of(const sn_addr *addr)
{
    if (addr == NULL)
        return SN_ADDR_NONE;
    if (addr->family_ == SN_ADDR_IPV4 && addr->length_ == IPV4_BYTES)
        return SN_ADDR_IPV4;
    if (addr->family_ == SN_ADDR_IPV6 && addr->length_ == IPV6_BYTES)
        return SN_ADDR_IPV6;
    bool abstract = addr->bytes_[0] == '\0'; /* and then the NUL comes on top */
    if (addr->family_ == SN_ADDR_UNIX && addr->length_ <= NAME_BYTES_MAX + (uint32_t)abstract)
        return SN_ADDR_UNIX;
    return SN_ADDR_NONE;
}

static bool has_port(const sn_addr *addr)
{
    sn_addr_kind kind = sn_addr_kind_of(addr);
    return kind == SN_ADDR_IPV4 || kind == SN_ADDR_IPV6;
}

uint16_t sn_addr_port(const sn_addr *addr)
{
    return has_port(addr) ? addr->port_ : 0;
}

int sn_addr_set_port(sn_addr *addr, uint16_t port)
{
    if (!has_port(addr))
        return -EINVAL;
    addr->port_ = port;
    return 0;
}

bool sn_addr_equal(const sn_addr *a, const sn_addr *b)
{
    sn_addr_kind kind = sn_addr_kind_of(a);
    if (kind != sn_addr_kind_of(b))
        return false;
    return kind == SN_ADDR_NONE ||
           (a->port_ == b->port_ && a->scope_ == b->scope_ && a->length_ == b->length_ &&
            memcmp(a->bytes_, b->bytes_, a->length_) == 0);
}

bool sn_addr_is_loopback(const sn_addr *addr)
{
    static const uint8_t one[IPV6_BYTES] = {[IPV6_BYTES - 1] = 1};
    switch (sn_addr_kind_of(addr)) {
    case SN_ADDR_IPV4:
        return addr->bytes_[0] == 127;
    case SN_ADDR_IPV6:
        return memcmp(addr->bytes_, one, IPV6_BYTES) == 0 ||
               (memcmp(addr->bytes_, mapped_prefix, MAPPED_AT) == 0 &&
                addr->bytes_[MAPPED_AT] == 127);
    case SN_ADDR_UNIX:
    case SN_ADDR_NONE:
        break;
    }
    return false;
}
