/* SPDX-License-Identifier: MIT */
/* Addresses as the kernel has them (R82): what is bound is what getsockname gives back, and each
 * way in which Linux names Unix sockets. */
#include "harness.h"

#include "net/sockaddr.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static sn_addr parsed(const char *text)
{
    sn_addr a;
    CHECK_EQ(sn_addr_parse(text, &a), 0);
    return a;
}

static const char *formatted(const sn_addr *a)
{
    static char text[SN_ADDR_TEXT_MAX];
    CHECK_GE(sn_addr_format(a, text, sizeof(text)), 0);
    return text;
}

/* A socket of the family of `a`, bound to it; negative errno if the kernel will not. */
static int bound_to(const sn_addr *a)
{
    struct sockaddr_storage s;
    socklen_t bytes;
    CHECK_EQ(sni_sockaddr_from(a, &s, &bytes), 0);
    int fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&s, bytes) == 0)
        return fd;
    int rc = -errno;
    CHECK_EQ(close(fd), 0);
    return rc;
}

static sn_addr name_of(int fd)
{
    struct sockaddr_storage s;
    socklen_t bytes = sizeof(s);
    sn_addr a;
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&s, &bytes), 0);
    CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), 0);
    return a;
}

/* The kernel is given `text`, and gives it back. */
static void check_bound(const char *text)
{
    sn_addr a = parsed(text);
    int fd = bound_to(&a);
    if (fd < 0)
        FAIL("%s cannot be bound: %d", text, fd);
    sn_addr b = name_of(fd);
    CHECK_STR_EQ(formatted(&b), text);
    CHECK(sn_addr_equal(&a, &b));
    CHECK_EQ(close(fd), 0);
}

/* Binding to port 0 has the kernel choose one, which has to arrive in the right order of bytes. */
static void check_chosen_port(const char *text)
{
    sn_addr any = parsed(text);
    int fd = bound_to(&any);
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        SKIP("this machine has no address for %s", text);
    CHECK_GE(fd, 0);
    sn_addr chosen = name_of(fd);
    CHECK_GT(sn_addr_port(&chosen), 0);
    CHECK_EQ(bound_to(&chosen), -EADDRINUSE);
    CHECK_EQ(sn_addr_set_port(&chosen, 0), 0);
    CHECK(sn_addr_equal(&chosen, &any));
    CHECK_EQ(close(fd), 0);
}

TEST(an_ipv4_socket_has_the_address_it_was_bound_to)
{
    check_chosen_port("127.0.0.1:0");
    check_chosen_port("127.1.2.3:0");
}

TEST(an_ipv6_socket_has_the_address_it_was_bound_to)
{
    check_chosen_port("[::1]:0");
}

TEST(ports_and_hosts_are_in_the_order_of_the_network)
{
    struct sockaddr_storage s;
    socklen_t bytes;
    sn_addr four = parsed("1.2.3.4:258");
    CHECK_EQ(sni_sockaddr_from(&four, &s, &bytes), 0);
    CHECK_EQ(bytes, sizeof(struct sockaddr_in));
    CHECK_EQ(s.ss_family, AF_INET);
    CHECK_MEM_EQ((char *)&s + offsetof(struct sockaddr_in, sin_port), "\1\2\1\2\3\4", 6);

    struct sockaddr_in6 in6;
    sn_addr six = parsed("[102:304::f%16909060]:258");
    CHECK_EQ(sni_sockaddr_from(&six, &s, &bytes), 0);
    CHECK_EQ(bytes, sizeof(in6));
    memcpy(&in6, &s, sizeof(in6));
    CHECK_EQ(in6.sin6_family, AF_INET6);
    CHECK_EQ(in6.sin6_port, htons(258));
    CHECK_EQ(in6.sin6_flowinfo, 0);
    CHECK_EQ(in6.sin6_scope_id, 16909060); /* this one is in the order of the machine */
    CHECK_MEM_EQ(&in6.sin6_addr, "\1\2\3\4\0\0\0\0\0\0\0\0\0\0\0\x0f", 16);

    in6.sin6_flowinfo = htonl(77);
    memcpy(&s, &in6, sizeof(in6));
    sn_addr again;
    CHECK_EQ(sni_sockaddr_to(&s, sizeof(in6), &again), 0);
    CHECK(sn_addr_equal(&again, &six));
}

TEST(a_unix_socket_has_the_path_it_was_bound_to)
{
    char text[SN_ADDR_TEXT_MAX];
    CHECK_EQ(chdir(temp_dir()), 0);
    snprintf(text, sizeof(text), "unix:%s/s", temp_dir());
    check_bound(text);
    check_bound("unix:relative");
    check_bound("unix:./@at");
    CHECK_EQ(access("s", F_OK), 0);
    CHECK_EQ(access("relative", F_OK), 0);
    CHECK_EQ(access("@at", F_OK), 0);
    memset(text, 0, sizeof(text));
    strcpy(text, "unix:");
    memset(text + 5, 'p', 107);
    check_bound(text);
    CHECK_EQ(access(text + 5, F_OK), 0);
}

TEST(an_abstract_name_is_kept_by_the_kernel_and_leaves_no_file)
{
    char text[SN_ADDR_TEXT_MAX] = {0};
    CHECK_EQ(chdir(temp_dir()), 0);
    snprintf(text, sizeof(text), "unix:@sinew %ld", (long)getpid());
    check_bound(text);
    CHECK_NE(access(text + 5, F_OK), 0);
    CHECK_NE(access(text + 6, F_OK), 0);
    size_t used = strlen(text);
    memset(text + used, 'n', sizeof(text) - 1 - used);
    check_bound(text);
}

TEST(a_unix_socket_without_a_name_is_written_as_an_empty_path)
{
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    sn_addr a = name_of(fd[0]);
    CHECK_EQ(sn_addr_kind_of(&a), SN_ADDR_UNIX);
    CHECK_STR_EQ(formatted(&a), "unix:");
    struct sockaddr_storage s;
    socklen_t bytes;
    CHECK_EQ(sni_sockaddr_from(&a, &s, &bytes), 0);
    CHECK_EQ(bytes, offsetof(struct sockaddr_un, sun_path));
    sn_addr again;
    CHECK_EQ(sni_sockaddr_to(&s, bytes, &again), 0);
    CHECK(sn_addr_equal(&a, &again));
    CHECK_EQ(close(fd[0]), 0);
    CHECK_EQ(close(fd[1]), 0);
}

TEST(a_datagram_from_a_sender_without_a_name_comes_with_no_address)
{
    int fd[2];
    char byte;
    struct sockaddr_storage s;
    socklen_t bytes = sizeof(s);
    sn_addr a;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fd), 0);
    CHECK_EQ(send(fd[1], "x", 1, 0), 1);
    CHECK_EQ(recvfrom(fd[0], &byte, 1, 0, (struct sockaddr *)&s, &bytes), 1);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), -EINVAL);
    CHECK_EQ(close(fd[0]), 0);
    CHECK_EQ(close(fd[1]), 0);
}

static struct sockaddr_storage unix_storage(const char *path, size_t length, socklen_t *bytes)
{
    struct sockaddr_storage s;
    memset(&s, '@', sizeof(s)); /* what is behind the end must not matter */
    s.ss_family = AF_UNIX;
    memcpy((char *)&s + offsetof(struct sockaddr_un, sun_path), path, length);
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return s;
}

TEST(a_path_is_given_to_the_kernel_with_its_nul_and_a_name_with_the_one_in_front)
{
    static const struct {
        const char *text;
        const char *path;
        size_t length;
    } row[] = {{"unix:/ab", "/ab\0", 4}, {"unix:@ab", "\0ab", 3}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        socklen_t bytes;
        socklen_t wanted;
        struct sockaddr_storage s;
        struct sockaddr_storage same = unix_storage(row[i].path, row[i].length, &wanted);
        sn_addr a = parsed(row[i].text);
        CHECK_EQ(sni_sockaddr_from(&a, &s, &bytes), 0);
        CHECK_EQ(bytes, wanted);
        CHECK_MEM_EQ(&s, &same, bytes);
    }
}

TEST(a_path_ends_with_a_nul_or_with_the_bytes)
{
    static const struct {
        const char *path;
        size_t length;
        const char *text;
    } row[] = {
        {"/a", 2, "unix:/a"},   {"/a\0", 3, "unix:/a"},   {"/a\0b", 4, "unix:/a"},
        {"\0a", 2, "unix:@a"},  {"\0@", 2, "unix:@@"},    {"@a", 2, "unix:./@a"},
        {"@\0", 2, "unix:./@"}, {"./@a", 4, "unix:./@a"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        socklen_t bytes;
        sn_addr a;
        struct sockaddr_storage s = unix_storage(row[i].path, row[i].length, &bytes);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), 0);
        CHECK_STR_EQ(formatted(&a), row[i].text);
        sn_addr b = parsed(row[i].text);
        CHECK(sn_addr_equal(&a, &b));
    }
}

TEST(an_abstract_name_that_no_text_can_hold_is_kept_but_not_written)
{
    static const struct {
        const char *name;
        size_t length;
    } row[] = {{"\0", 1}, {"\0a\0", 3}, {"\0\0", 2}, {"\0a\0b", 4}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        socklen_t bytes;
        socklen_t bytes_again;
        sn_addr a;
        char text[SN_ADDR_TEXT_MAX] = "old";
        struct sockaddr_storage s = unix_storage(row[i].name, row[i].length, &bytes);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), 0);
        CHECK_EQ(sn_addr_format(&a, text, sizeof(text)), -EINVAL);
        CHECK_STR_EQ(text, "");
        struct sockaddr_storage again;
        CHECK_EQ(sni_sockaddr_from(&a, &again, &bytes_again), 0);
        CHECK_EQ(bytes, bytes_again);
        CHECK_MEM_EQ(&s, &again, bytes);
    }
}

TEST(a_path_for_which_there_is_no_room_is_an_error)
{
    char path[110];
    socklen_t bytes;
    sn_addr a;
    memset(path, 'p', sizeof(path));
    for (size_t length = 1; length <= sizeof(path); length++) {
        path[0] = 'p';
        struct sockaddr_storage s = unix_storage(path, length, &bytes);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), length <= 107 ? 0 : -ENAMETOOLONG);
        path[0] = '@';
        s = unix_storage(path, length, &bytes);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), length <= 105 ? 0 : -ENAMETOOLONG);
        path[0] = '\0';
        s = unix_storage(path, length, &bytes);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), length <= 108 ? 0 : -EINVAL);
    }
    CHECK_EQ(sn_addr_kind_of(&a), SN_ADDR_NONE);
}

/* One byte more than a sockaddr_un with its NUL has room for, which Linux allows. */
TEST(the_kernel_gives_a_path_of_108_bytes_which_is_an_error)
{
    char path[108];
    socklen_t bytes;
    sn_addr a;
    CHECK_EQ(chdir(temp_dir()), 0);
    memset(path, 'p', sizeof(path));
    struct sockaddr_storage s = unix_storage(path, sizeof(path), &bytes);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&s, bytes), 0);
    bytes = sizeof(s);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&s, &bytes), 0);
    CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), -ENAMETOOLONG);
    CHECK_EQ(close(fd), 0);
}

TEST(what_is_too_short_or_of_another_family_is_an_error)
{
    static const sn_addr none = {0};
    struct sockaddr_storage s;
    socklen_t bytes;
    sn_addr a;
    static const char *const texts[] = {"1.2.3.4:5", "[::1]:5"};
    for (size_t i = 0; i < 2; i++) {
        sn_addr from = parsed(texts[i]);
        CHECK_EQ(sni_sockaddr_from(&from, &s, &bytes), 0);
        CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), 0);
        CHECK_EQ(sni_sockaddr_to(&s, sizeof(s), &a), 0);
        CHECK_EQ(sni_sockaddr_to(&s, sizeof(s) + 1, &a), -EINVAL);
        for (socklen_t less = 0; less < bytes; less++) {
            memset(&a, 0xaa, sizeof(a));
            CHECK_EQ(sni_sockaddr_to(&s, less, &a), -EINVAL);
            CHECK_MEM_EQ(&a, &none, sizeof(a));
        }
    }
    s = unix_storage("", 0, &bytes);
    CHECK_EQ(sni_sockaddr_to(&s, bytes, &a), 0);
    CHECK_STR_EQ(formatted(&a), "unix:");
    CHECK_EQ(sni_sockaddr_to(&s, 0, &a), -EINVAL);
    CHECK_EQ(sni_sockaddr_to(&s, 1, &a), -EINVAL);
    s.ss_family = AF_UNSPEC;
    CHECK_EQ(sni_sockaddr_to(&s, 0, &a), -EINVAL);
    CHECK_EQ(sni_sockaddr_to(&s, sizeof(s), &a), -EAFNOSUPPORT);
    s.ss_family = AF_PACKET;
    CHECK_EQ(sni_sockaddr_to(&s, sizeof(s), &a), -EAFNOSUPPORT);
    CHECK_EQ(sni_sockaddr_from(&none, &s, &bytes), -EINVAL);
    CHECK_EQ(bytes, 0);
}
