/* SPDX-License-Identifier: MIT */
/* The io_uring driver under filters and limits (R43, R80): each refusal has its code and its word;
 * what the kernel does not take for now is not lost; and neither is a wake in the moment between
 * the owner's last look and its sleep, in which a filter can hold it. */
#include "uring_ring.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* From here on this thread, and what it starts, gets -error from one system call. */
static void deny(long number, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("this system lets nobody filter system calls");
}

static void check_denied(int rc, const char *reason)
{
    struct sni_uring_features features;
    struct sni_driver *driver;
    CHECK_EQ(sni_uring_probe(&features), rc);
    CHECK_STR_EQ(features.reason, reason);
    CHECK_EQ(sni_uring_create(NULL, &driver), rc);
}

TEST(a_forbidden_io_uring_is_eperm)
{
    require_uring();
    deny(SYS_io_uring_setup, EPERM);
    check_denied(-EPERM, "forbidden");
}

TEST(an_io_uring_that_is_hidden_is_enosys)
{
    require_uring();
    deny(SYS_io_uring_setup, ENOSYS);
    check_denied(-ENOSYS, "absent");
}

TEST(a_ring_that_may_be_made_and_not_entered_is_eperm)
{
    require_uring();
    deny(SYS_io_uring_enter, EPERM);
    check_denied(-EPERM, "forbidden");
}

TEST(a_ring_that_cannot_be_asked_what_it_can_do_is_eperm)
{
    require_uring();
    deny(SYS_io_uring_register, EPERM);
    check_denied(-EPERM, "forbidden");
}

TEST(no_descriptor_left_is_emfile)
{
    require_uring();
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = dup(0);
    CHECK_EQ(close(next), 0);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    check_denied(-EMFILE, "descriptors");

    /* One for the ring and none for the eventfd. */
    none.rlim_cur++;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sni_driver *driver;
    const struct sni_uring_config old = {.without = SNI_URING_SEND_MSG};
    CHECK_EQ(sni_uring_create(&old, &driver), -EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(no_locked_memory_is_enomem_or_does_not_matter)
{
    require_uring();
    struct rlimit none = {0};
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    struct sni_uring_features features;
    struct sni_driver *driver;
    int rc = sni_uring_create(NULL, &driver);
    CHECK_EQ(sni_uring_probe(&features), rc);
    if (rc == 0) {
        recv_one(driver);
        sni_driver_finish(driver);
    } else {
        CHECK_EQ(rc, -ENOMEM);
        CHECK_STR_EQ(features.reason, "memory");
    }
}

#ifdef SINEW_HARNESS_WRAP
TEST(no_memory_is_enomem_and_leaves_nothing_behind)
{
    require_uring();
    struct sni_driver *driver;
    int rc = -ENOMEM;
    for (uint64_t k = 1; rc != 0; k++) {
        CHECK_EQ(rc, -ENOMEM);
        CHECK_LT(k, 100);
        alloc_fail_at(k);
        rc = sni_uring_create(NULL, &driver);
    }
    alloc_fail_at(0);
    recv_one(driver);
    sni_driver_finish(driver);
}

#endif

TEST(the_size_of_a_ring_is_what_the_kernel_makes_of_it)
{
    static const uint32_t entries[] = {1, 3, 4096, UINT32_MAX};
    require_uring();
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct sni_driver *driver = ring_with((struct sni_uring_config){.entries = entries[i]});
        recv_one(driver);
        sni_driver_finish(driver);
    }
}

/* ---- a kernel that takes nothing for now -------------------------------------------------- */

enum { ENTRIES = 8, OPS = 40 };

static struct sni_op ops[OPS];
static char bytes[OPS];
static int fds[2];

/* Eight entries fill the ring; the others, and the cancellations behind them, must wait. */
static void *submit_in_vain(void *arg)
{
    struct sni_driver *driver = arg;
    deny(SYS_io_uring_enter, EAGAIN);
    for (int i = 0; i < OPS; i++)
        op_recv(driver, &ops[i], fds[0], &bytes[i], 1);
    sni_driver_flush(driver);
    (void)sni_driver_reap(driver);
    sni_driver_wait(driver, sni_plat_now_ns() + MS(1));
    CHECK_EQ(sni_driver_pending(driver), OPS);
    sni_driver_cancel(&ops[3], -ETIMEDOUT); /* in the ring: must wait, too */
    CHECK(!op_is_over(&ops[3]));
    sni_driver_cancel(&ops[4], -ETIMEDOUT);
    sni_driver_cancel(&ops[30], -EBADF); /* not in the ring: over at once */
    CHECK(op_is_over(&ops[30]));
    CHECK_EQ(ops[30].result, -EBADF);
    sni_driver_wait(driver, INT64_MAX); /* does not sleep for ever */
    return NULL;
}

static void refused(uint32_t without)
{
    struct sni_driver *driver =
        ring_with((struct sni_uring_config){.entries = ENTRIES, .without = without});
    pthread_t thread;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(pthread_create(&thread, NULL, submit_in_vain, driver), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(op_end(&ops[3]), -ETIMEDOUT);
    CHECK_EQ(op_end(&ops[4]), -ETIMEDOUT);
    char data[OPS] = {0};
    CHECK_EQ(write(fds[1], data, OPS), OPS);
    for (int i = 0; i < OPS; i++)
        if (i != 3 && i != 4 && i != 30)
            CHECK_EQ(op_end(&ops[i]), 1);
    char left[OPS];
    CHECK_EQ(read(fds[0], left, OPS), 3);
    CHECK_EQ(sni_driver_pending(driver), 0);
    close_both(fds);
    sni_driver_finish(driver);
}

TEST(what_the_kernel_does_not_take_now_it_takes_later)
{
    refused(0);
    refused(SNI_URING_ALL);
}

enum { FLOOD = 100 };

static struct sni_op flood[FLOOD];

static void *reap_in_vain(void *arg)
{
    unsigned n = 0;
    deny(SYS_io_uring_enter, EAGAIN);
    for (int i = 0; i < 10; i++)
        n += sni_driver_reap_patiently(arg);
    CHECK_EQ(n, 4 * ENTRIES); /* what the ring had room for; the rest is the kernel's */
    return NULL;
}

TEST(completions_that_the_kernel_keeps_for_now_do_not_hold_up_who_reaps)
{
    struct sni_driver *driver = ring_with((struct sni_uring_config){.entries = ENTRIES});
    char data[FLOOD] = {0};
    char into[FLOOD];
    pthread_t thread;
    pair(fds, SOCK_STREAM);
    CHECK_EQ(write(fds[1], data, FLOOD), FLOOD);
    for (int i = 0; i < FLOOD; i++)
        op_recv(driver, &flood[i], fds[0], &into[i], 1);
    sni_driver_flush(driver);
    CHECK_EQ(pthread_create(&thread, NULL, reap_in_vain, driver), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < FLOOD; i++)
        CHECK_EQ(op_end(&flood[i]), 1);
    close_both(fds);
    sni_driver_finish(driver);
}

/* ---- held between the last look and the sleep --------------------------------------------- */

struct held {
    struct sni_driver *driver;
    SNI_ATOMIC(int) listener; /* 0 before there is one */
};

/* Whoever sleeps in a ring, by whatever call, is first reported to the listener. */
static int listen_to_sleeps(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), /* at least one completion is wanted */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return (int)fd;
}

static void *sleep_held(void *arg)
{
    struct held *h = arg;
    int listener = listen_to_sleeps();
    sni_atomic_store(&h->listener, listener, release); /* release: pairs with the acquire below */
    if (listener > 0)
        sni_driver_wait(h->driver, INT64_MAX);
    return NULL;
}

static void hold(struct sni_uring_config config)
{
    struct held h = {.driver = ring_with(config)};
    pthread_t thread;
    int listener;
    CHECK_EQ(pthread_create(&thread, NULL, sleep_held, &h), 0);
    while ((listener = sni_atomic_load(&h.listener, acquire)) == 0) /* acquire: as above */
        sni_plat_thread_yield();
    if (listener < 0)
        SKIP("this system lets nobody watch system calls");
    bool woken = false;
    struct pollfd event = {.fd = listener, .events = POLLIN};
    while (poll(&event, 1, -1) == 1 && (event.revents & POLLIN) != 0) {
        struct seccomp_notif call = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue; /* the kernel's work interrupted the call: it comes again */
        /* Here it is, with its mind made up to sleep. */
        if (!woken)
            sni_driver_wake(h.driver);
        woken = true;
        for (int i = 0; i < 3; i++)
            (void)sni_driver_reap_patiently(h.driver);
        struct seccomp_notif_resp go_on = {.id = call.id,
                                           .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
    }
    CHECK(woken); /* and the listener has nobody to listen to any more */
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(close(listener), 0);
    recv_one(h.driver);
    sni_driver_finish(h.driver);
}

TEST(a_wake_is_not_lost_when_its_completion_is_reaped_before_the_owner_sleeps)
{
    hold((struct sni_uring_config){0});
    hold((struct sni_uring_config){.without = SNI_URING_SEND_MSG});
    hold((struct sni_uring_config){.without = SNI_URING_ALL});
    hold((struct sni_uring_config){.sqpoll = true});
}
