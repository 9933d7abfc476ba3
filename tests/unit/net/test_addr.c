/* SPDX-License-Identifier: MIT */
/* Addresses in text (R82): what is accepted, what is refused, and the one text of each. The fuzz
 * test (tests/fuzz/fuzz_addr.c) compares far more of them with inet_pton. */
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sinew/addr.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static sn_addr parsed(const char *text)
{
    sn_addr a;
    int rc = sn_addr_parse(text, &a);
    if (rc != 0)
        FAIL("\"%s\" is refused with %d", text, rc);
    return a;
}

static const char *formatted(const sn_addr *a)
{
    static char text[SN_ADDR_TEXT_MAX];
    int length = sn_addr_format(a, text, sizeof(text));
    CHECK_GE(length, 0);
    CHECK_EQ(length, strlen(text));
    return text;
}

/* The text is accepted, and written as `canonical`, which is the same address. */
static void check_text(const char *text, const char *canonical)
{
    sn_addr a = parsed(text);
    CHECK_STR_EQ(formatted(&a), canonical);
    sn_addr again = parsed(canonical);
    CHECK(sn_addr_equal(&a, &again));
}

static void check_refused(const char *text, int code)
{
    static const sn_addr none = {0};
    sn_addr a;
    memset(&a, 0xaa, sizeof(a));
    int rc = sn_addr_parse(text, &a);
    if (rc != code)
        FAIL("\"%s\" gives %d instead of %d", text, rc, code);
    CHECK_EQ(sn_addr_kind_of(&a), SN_ADDR_NONE);
    CHECK_MEM_EQ(&a, &none, sizeof(a));
}

static void check_all_refused(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_refused(texts[i], -EINVAL);
}

TEST(an_ipv4_address_is_four_parts_and_a_port)
{
    check_text("127.0.0.1:80", "127.0.0.1:80");
    check_text("0.0.0.0:0", "0.0.0.0:0");
    check_text("255.255.255.255:65535", "255.255.255.255:65535");
    check_text("1.20.199.9:8080", "1.20.199.9:8080");
    sn_addr a = parsed("1.2.3.4:258");
    CHECK_EQ(sn_addr_kind_of(&a), SN_ADDR_IPV4);
    CHECK_EQ(sn_addr_port(&a), 258);
    CHECK_MEM_EQ(a.bytes_, "\1\2\3\4", 4);
}

TEST(an_ipv4_address_that_others_may_read_differently_is_refused)
{
    static const char *const texts[] = {
        "127.0.0.01:80",   "127.0.00.1:80", "010.0.0.1:80",     "0127.0.0.1:80",
        "0x7f.0.0.1:80",   "127.1:80",      "127.0.1:80",       "2130706433:80",
        "1.2.3.4.5:80",    "1.2.3.256:80",  "1.2.3.1000:80",    "1.2.3.4294967297:80",
        "1.2.3.-4:80",     "1.2.3.+4:80",   "1..3.4:80",        ".1.2.3:80",
        "1.2.3.:80",       "1.2.3.4.:80",   "1.2.3.4",          "1,2,3,4:80",
        "[1.2.3.4]:80",    "1.2.3.4%1:80",  "1.2.3.4/8:80",     "ipv4:1.2.3.4:80",
        "tcp://1.2.3.4:8", "1.2.3.4 :80",   " 1.2.3.4:80",      "1.2.3. 4:80",
        "1.2.3.4\t:80",    "1.2.3.4:80\n",  "\xd9\xa1.2.3.4:1",
    };
    check_all_refused(texts, COUNT(texts));
}

TEST(a_port_is_a_plain_decimal_number_and_is_never_left_out)
{
    static const char *const ports[] = {
        "",     ":",    ":-1",   ":+1",     ":65536", ":99999",      ":100000",
        ":00",  ":080", ":0x50", ":http",   ": 80",   ":80 ",        ":80a",
        "::80", ":80:", ":8 0",  ":80\r\n", ":80:80", ":4294967376", ":18446744073709551696",
        "80",   ";80",  ":80/",  ":80]",    ":80%1",  ":8e1",
    };
    static const char *const hosts[] = {"127.0.0.1", "[::1]", "[fe80::1%3]"};
    char text[64];
    for (size_t h = 0; h < COUNT(hosts); h++) {
        for (size_t p = 0; p < COUNT(ports); p++) {
            snprintf(text, sizeof(text), "%s%s", hosts[h], ports[p]);
            check_refused(text, -EINVAL);
        }
        for (int port = 0; port <= 65535; port++) {
            snprintf(text, sizeof(text), "%s:%d", hosts[h], port);
            sn_addr a = parsed(text);
            CHECK_EQ(sn_addr_port(&a), port);
            CHECK_STR_EQ(formatted(&a), text);
        }
    }
}

TEST(what_is_no_address_at_all_is_refused)
{
    static const char *const texts[] = {
        "",
        ":",
        ":80",
        "80",
        "*:80",
        "*",
        "localhost:80",
        "localhost",
        "[]:80",
        "[",
        "[]",
        "[:80",
        "]:80",
        "[::1:80",
        "::1]:80",
        "[[::1]]:80",
        "unix",
        "UNIX:/x",
        "Unix:/x",
        "uni:/x",
        "unix/x",
        " unix:/x",
        "/run/x.sock",
        "@name",
        "inet:1.2.3.4:5",
        "[unix:/x]:1",
    };
    check_all_refused(texts, COUNT(texts));
    check_refused(NULL, -EINVAL);
    CHECK_EQ(sn_addr_parse("1.2.3.4:5", NULL), -EINVAL);
}

TEST(an_ipv6_address_is_read_in_all_the_ways_of_rfc_4291)
{
    check_text("[::]:0", "[::]:0");
    check_text("[::1]:80", "[::1]:80");
    check_text("[1::]:80", "[1::]:80");
    check_text("[2001:DB8:0:0:8:800:200C:417A]:80", "[2001:db8::8:800:200c:417a]:80");
    check_text("[FF01:0:0:0:0:0:0:101]:80", "[ff01::101]:80");
    check_text("[0:0:0:0:0:0:0:0]:80", "[::]:80");
    check_text("[0000:0000:0000:0000:0000:0000:0000:0001]:80", "[::1]:80");
    check_text("[0:0:0:0:0:0:13.1.68.3]:80", "[::d01:4403]:80");
    check_text("[::13.1.68.3]:80", "[::d01:4403]:80");
    check_text("[0:0:0:0:0:FFFF:129.144.52.38]:80", "[::ffff:129.144.52.38]:80");
    check_text("[::FFFF:129.144.52.38]:80", "[::ffff:129.144.52.38]:80");
    check_text("[1:2:3:4:5:6:7.8.9.10]:80", "[1:2:3:4:5:6:708:90a]:80");
    check_text("[1::7.8.9.10]:80", "[1::708:90a]:80");
    check_text("[1:2:3:4:5:6:7:8]:80", "[1:2:3:4:5:6:7:8]:80");
    sn_addr a = parsed("[1:203::ff]:258");
    CHECK_EQ(sn_addr_kind_of(&a), SN_ADDR_IPV6);
    CHECK_EQ(sn_addr_port(&a), 258);
    CHECK_MEM_EQ(a.bytes_, "\0\1\2\3\0\0\0\0\0\0\0\0\0\0\0\xff", 16);
}

TEST(an_ipv6_address_is_written_as_rfc_5952_wants_it)
{
    /* lower case, and no zeros in front */
    check_text("[2001:0DB8:00AB:000C:1:1:1:1]:1", "[2001:db8:ab:c:1:1:1:1]:1");
    /* one group of zeros is not shortened, though it may be read so */
    check_text("[2001:db8::1:1:1:1:1]:1", "[2001:db8:0:1:1:1:1:1]:1");
    check_text("[::2:3:4:5:6:7:8]:1", "[0:2:3:4:5:6:7:8]:1");
    check_text("[1:2:3:4:5:6:7::]:1", "[1:2:3:4:5:6:7:0]:1");
    /* two are, in the front, inside and at the end */
    check_text("[0:0:3:4:5:6:7:8]:1", "[::3:4:5:6:7:8]:1");
    check_text("[1:2:0:0:5:6:7:8]:1", "[1:2::5:6:7:8]:1");
    check_text("[1:2:3:4:5:6:0:0]:1", "[1:2:3:4:5:6::]:1");
    /* the longest run, and the first of two */
    check_text("[1:0:0:4:0:0:0:8]:1", "[1:0:0:4::8]:1");
    check_text("[1:0:0:0:5:0:0:8]:1", "[1::5:0:0:8]:1");
    check_text("[1:0:0:4:5:0:0:8]:1", "[1::4:5:0:0:8]:1");
    check_text("[0:0:3:4:5:6:0:0]:1", "[::3:4:5:6:0:0]:1");
    /* as IPv4 only where it is mapped */
    check_text("[::ffff:0:0]:1", "[::ffff:0.0.0.0]:1");
    check_text("[::ffff:102:304]:1", "[::ffff:1.2.3.4]:1");
    check_text("[::fffe:102:304]:1", "[::fffe:102:304]:1");
    check_text("[1::ffff:102:304]:1", "[1::ffff:102:304]:1");
    check_text("[64:ff9b::1.2.3.4]:1", "[64:ff9b::102:304]:1");
}

TEST(a_malformed_ipv6_address_is_refused)
{
    static const char *const texts[] = {
        "[1:2:3:4:5:6:7]:80",
        "[1:2:3:4:5:6:7:8:9]:80",
        "[1:2:3:4:5:6:7:8:]:80",
        "[1:2:3:4:5:6:7:8::]:80",
        "[::1:2:3:4:5:6:7:8]:80",
        "[1:2:3:4::5:6:7:8]:80", /* the gap would stand for nothing */
        "[1::2::3]:80",
        "[::1::]:80",
        "[:::]:80",
        "[1:::2]:80",
        "[:]:80",
        "[:1]:80",
        "[1:]:80",
        "[:1:2:3:4:5:6:7]:80",
        "[1:2:3:4:5:6:7:]:80",
        "[::12345]:80",
        "[::00001]:80",
        "[::g]:80",
        "[::-1]:80",
        "[:: 1]:80",
        "[::1 ]:80",
        "[ ::1]:80",
        "[::0x1]:80",
        "[::1.2.3]:80",
        "[::1.2.3.4.5]:80",
        "[::1.2.3.04]:80",
        "[::1.2.3.256]:80",
        "[::1.2.3.4:5]:80",
        "[1.2.3.4::]:80",
        "[::f.2.3.4]:80",
        "[1:2:3:4:5:6:7:1.2.3.4]:80",
        "[1:2:3:4:5:1.2.3.4]:80",
        "[::1]80",
        "[::1] :80",
        "[::1]]:80",
        "[::1/128]:80",
        "::1:80",
        "::1",
        "1:2:3:4:5:6:7:8:80",
    };
    check_all_refused(texts, COUNT(texts));
}

TEST(the_interface_of_an_ipv6_address_is_a_number)
{
    check_text("[fe80::1%3]:80", "[fe80::1%3]:80");
    check_text("[FE80:0::1%4294967295]:80", "[fe80::1%4294967295]:80");
    check_text("[ff02::%1]:80", "[ff02::%1]:80");
    check_text("[::ffff:1.2.3.4%7]:80", "[::ffff:1.2.3.4%7]:80");
    static const char *const texts[] = {
        "[fe80::1%]:80",
        "[fe80::1%eth0]:80",
        "[fe80::1%0]:80",
        "[fe80::1%03]:80",
        "[fe80::1%4294967296]:80",
        "[fe80::1%-1]:80",
        "[fe80::1%3%4]:8",
        "[fe80::1%3 ]:80",
        "[fe80::1%253]:80x",
        "[%3]:80",
        "[fe80%3::1]:80",
        "[fe80::1]%3:80",
        "[fe80::1%18446744073709551617]:80",
    };
    check_all_refused(texts, COUNT(texts));
}

TEST(a_unix_socket_has_a_path_or_an_abstract_name)
{
    check_text("unix:/run/x.sock", "unix:/run/x.sock");
    check_text("unix:x", "unix:x");
    check_text("unix:./@x", "unix:./@x");
    check_text("unix:unix:", "unix:unix:");
    check_text("unix:a b:c\\d\n\xff", "unix:a b:c\\d\n\xff");
    check_text("unix:@name", "unix:@name");
    check_text("unix:@@", "unix:@@");
    check_text("unix:@/a b", "unix:@/a b");
    sn_addr path = parsed("unix:name");
    sn_addr name = parsed("unix:@name");
    CHECK_EQ(sn_addr_kind_of(&path), SN_ADDR_UNIX);
    CHECK_EQ(sn_addr_kind_of(&name), SN_ADDR_UNIX);
    CHECK(!sn_addr_equal(&path, &name));
    check_refused("unix:", -EINVAL);
    check_refused("unix:@", -EINVAL);
}

TEST(a_path_or_abstract_name_may_have_107_bytes)
{
    static const char *const prefixes[] = {"unix:", "unix:@"};
    for (size_t p = 0; p < COUNT(prefixes); p++) {
        size_t before = strlen(prefixes[p]);
        for (size_t length = 1; length < 4000; length = length < 200 ? length + 1 : length * 2) {
            char text[5000] = {0};
            memcpy(text, prefixes[p], before);
            memset(text + before, 'x', length);
            if (length <= 107)
                check_text(text, text);
            else
                check_refused(text, -ENAMETOOLONG);
        }
    }
}

/* What a buffer of exactly `bytes` gets; the byte after it must stay. */
static void check_format_into(const sn_addr *a, const char *text, size_t bytes)
{
    char buf[SN_ADDR_TEXT_MAX + 8];
    memset(buf, '#', sizeof(buf));
    int rc = sn_addr_format(a, buf, bytes);
    if (bytes > strlen(text)) {
        CHECK_EQ(rc, strlen(text));
        CHECK_STR_EQ(buf, text);
    } else {
        CHECK_EQ(rc, -ENOSPC);
        if (bytes > 0)
            CHECK_STR_EQ(buf, "");
    }
    for (size_t i = bytes; i < sizeof(buf); i++)
        CHECK_EQ(buf[i], '#');
}

TEST(a_text_is_written_whole_or_not_at_all)
{
    char longest[SN_ADDR_TEXT_MAX] = "unix:@";
    memset(longest + strlen(longest), 'n', 107);
    CHECK_EQ(strlen(longest), SN_ADDR_TEXT_MAX - 1);
    const char *const texts[] = {
        "0.0.0.0:0", "255.255.255.255:65535",
        "[::]:1",    "unix:x",
        longest,     "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        sn_addr a = parsed(texts[i]);
        for (size_t bytes = 0; bytes <= SN_ADDR_TEXT_MAX; bytes++)
            check_format_into(&a, texts[i], bytes);
        CHECK_EQ(sn_addr_format(&a, NULL, 0), -ENOSPC);
    }
}

TEST(memory_that_never_held_an_address_is_none)
{
    sn_addr zero = {0};
    sn_addr garbage[6];
    memset(garbage, 0xa5, sizeof(garbage));
    garbage[1].family_ = SN_ADDR_IPV4;
    garbage[2].family_ = SN_ADDR_IPV6;
    garbage[3].family_ = SN_ADDR_UNIX;
    garbage[4].family_ = SN_ADDR_UNIX;
    garbage[4].length_ = 108; /* a path of which the NUL has no room */
    garbage[5].family_ = SN_ADDR_UNIX;
    garbage[5].length_ = 109;
    garbage[5].bytes_[0] = 0;
    for (int i = -2; i < (int)COUNT(garbage); i++) {
        sn_addr *a = i == -2 ? NULL : i == -1 ? &zero : &garbage[i];
        char text[] = "old";
        CHECK_EQ(sn_addr_kind_of(a), SN_ADDR_NONE);
        CHECK_EQ(sn_addr_port(a), 0);
        CHECK_EQ(sn_addr_set_port(a, 1), -EINVAL);
        CHECK_EQ(sn_addr_format(a, text, sizeof(text)), -EINVAL);
        CHECK_STR_EQ(text, "");
        CHECK(!sn_addr_is_loopback(a));
        CHECK(sn_addr_equal(a, &zero));
    }
}

TEST(a_port_can_be_changed_where_there_is_one)
{
    sn_addr four = parsed("1.2.3.4:80");
    sn_addr six = parsed("[::1%5]:80");
    sn_addr local = parsed("unix:/x");
    CHECK_EQ(sn_addr_set_port(&four, 65535), 0);
    CHECK_EQ(sn_addr_set_port(&six, 0), 0);
    CHECK_EQ(sn_addr_set_port(&local, 80), -EINVAL);
    CHECK_STR_EQ(formatted(&four), "1.2.3.4:65535");
    CHECK_STR_EQ(formatted(&six), "[::1%5]:0");
    CHECK_STR_EQ(formatted(&local), "unix:/x");
    CHECK_EQ(sn_addr_port(&four), 65535);
    CHECK_EQ(sn_addr_port(&local), 0);
}

TEST(addresses_are_equal_only_in_all_their_parts)
{
    static const char *const texts[] = {
        "1.2.3.4:80",    "1.2.3.4:81",     "1.2.3.5:80",     "[::ffff:1.2.3.4]:80",
        "[::1]:80",      "[::1]:81",       "[::1%1]:80",     "[::1%2]:80",
        "[::2]:80",      "[::1.2.3.4]:80", "[102:304::]:80", "unix:/a",
        "unix:/ab",      "unix:a",         "unix:@a",        "unix:@ab",
        "unix:\1\2\3\4",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        for (size_t j = 0; j < COUNT(texts); j++) {
            sn_addr a = parsed(texts[i]);
            sn_addr b = parsed(texts[j]);
            if (sn_addr_equal(&a, &b) != (i == j))
                FAIL("%s and %s are %s", texts[i], texts[j], i == j ? "two" : "one");
        }
        sn_addr none = {0};
        sn_addr a = parsed(texts[i]);
        CHECK(!sn_addr_equal(&a, &none));
        CHECK(!sn_addr_equal(&none, &a));
        CHECK(!sn_addr_equal(NULL, &a));
    }
}

TEST(loopback_is_127_in_both_families_and_one)
{
    static const char *const inside[] = {"127.0.0.1:1", "127.0.0.0:0", "127.255.255.255:9",
                                         "[::1]:80", "[::ffff:127.3.2.1]:80"};
    static const char *const outside[] = {
        "126.255.255.255:1",
        "128.0.0.1:1",
        "0.0.0.0:1",
        "1.0.0.127:1",
        "[::]:1",
        "[::2]:1",
        "[::1:1]:1",
        "[1::1]:1",
        "[::127.0.0.1]:1",
        "[7f00::1]:1",
        "[::ffff:1.0.0.127]:1",
        "[1::ffff:127.0.0.1]:1",
        "unix:/x",
        "unix:@x",
        "unix:\x7f\x01\x01\x01",
    };
    for (size_t i = 0; i < COUNT(inside); i++) {
        sn_addr a = parsed(inside[i]);
        CHECK(sn_addr_is_loopback(&a));
    }
    for (size_t i = 0; i < COUNT(outside); i++) {
        sn_addr a = parsed(outside[i]);
        if (sn_addr_is_loopback(&a))
            FAIL("%s is taken for loopback", outside[i]);
    }
}

/* Each of the 256 ways to have groups that are zero or not. glibc writes ::a.b.c.d where six groups
 * are zeros; RFC 5952 leaves that to addresses known to hold IPv4, which these are not. */
TEST(ipv6_is_written_as_the_c_library_does_except_for_the_deprecated_form)
{
    int compared = 0;
    for (unsigned mask = 0; mask < 256; mask++) {
        uint8_t bytes[16] = {0};
        for (unsigned i = 0; i < 8; i++)
            bytes[2 * i + 1] = mask >> i & 1 ? (uint8_t)(0xa0 + i) : 0;
        char host[INET6_ADDRSTRLEN];
        char text[INET6_ADDRSTRLEN + 8];
        CHECK(inet_ntop(AF_INET6, bytes, host, sizeof(host)) != NULL);
        snprintf(text, sizeof(text), "[%s]:1", host);
        sn_addr a = parsed(text);
        CHECK_MEM_EQ(a.bytes_, bytes, sizeof(bytes));
        if (strchr(host, '.') == NULL) {
            CHECK_STR_EQ(formatted(&a), text);
            compared++;
        }
    }
    CHECK_EQ(compared, 254);
}

/* The text ends where memory does, cut at each of its bytes. */
TEST(nothing_behind_the_end_of_a_text_is_looked_at)
{
    static const char *const texts[] = {
        "127.0.0.1:80", "[fe80::1%3]:80",           "[1:2:3:4:5:6:7.8.9.10]:80",
        "[1::]:8",      "[1:2:3:4:5:6:7:8]:",       "unix:/run/x",
        "unix:@name",   "[::ffff:1.2.3.4%7]:65535",
    };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    CHECK_EQ(mprotect(map + page, page, PROT_NONE), 0);
    for (size_t i = 0; i < COUNT(texts); i++) {
        for (size_t length = 0; length <= strlen(texts[i]); length++) {
            char *text = map + page - length - 1;
            memcpy(text, texts[i], length);
            text[length] = '\0';
            sn_addr a;
            int rc = sn_addr_parse(text, &a);
            CHECK_EQ(rc == 0, sn_addr_kind_of(&a) != SN_ADDR_NONE);
        }
    }
    CHECK_EQ(munmap(map, 2 * page), 0);
}
