/* SPDX-License-Identifier: MIT */
/* ring.c - making a ring as good as this kernel can, and the system calls on it.
 *
 * Which flags. What the kernel has to do for a request when its socket becomes ready (receive,
 * complete) is *task work* of the thread that submitted it, and the flags say when that runs:
 *
 *     DEFER_TASKRUN   only inside the owner's own io_uring_enter. Cheapest; but while the owner
 *                     computes, nobody else sees its completions, ever. Rejected: R85.
 *     plain           at once, by an interrupt, whatever the owner does: visible to others in
 *                     some 50 us, and each completion disturbs a computing owner.
 *     COOP_TASKRUN    when the owner enters the kernel for any reason, a timer tick included.
 *                     A tick is up to 4 ms or more, with IORING_SQ_TASKRUN to be seen meanwhile.
 *
 * We take COOP_TASKRUN, and whoever reaps for a computing owner interrupts it himself (a *nudge*):
 * then those pay who need it, when they need it. A fence in all threads does it
 * (sni_plat_fence_all): it sends an interrupt to each processor that runs a thread of this
 * process, and task work is done when the interrupt returns. A signal would do the same and break
 * the owner's system calls. Measured with both threads pinned, on a virtual machine with 2
 * processors (medians of 51): a busy owner's receive is reaped by another thread after 3.4 ms with
 * COOP_TASKRUN alone, 50 us with a nudge, 35 us on a plain ring. A process must ask once to be
 * nudged, which takes 4 us while it has one thread and 10 to 25 ms afterwards: so it is done when a
 * ring is made at the latest, and whoever will start threads that make rings says so before
 * (sni_uring_expect). Where it is refused, the tick remains.
 *
 * Task work belongs to the *submitting* thread, which need not be the owner: cancelling from
 * another thread submits, and takes along what the owner has put. So nobody here asks who the
 * owner is. Whoever reaps lets the kernel do its own work, and if the flag is then still up, it
 * is somebody else's work, and that one is nudged.
 *
 * Which kernels. 5.7 is the least (requests wait by poll instead of a worker thread); what came
 * later is used where it is. The flags of the set-up are tried from the newest on, since an old
 * kernel refuses all of them for one it does not know. */
#include "io/uring/ring.h"

#include "base/assert.h"
#include "plat/thread.h"

#include <sinew/errno.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ENTRIES_DEFAULT = 256,
    ENTRIES_MAX = 32768, /* the kernel's own limit, so that the multiple below is not absurd */
    WORKERS_DEFAULT = 4,
    COMPLETIONS_PER_ENTRY = 4, /* more room than the kernel's 2: operations wait long      */
    SQPOLL_IDLE_MS = 10,       /* then the kernel's thread sleeps until it is called       */
    OPCODES_MAX = 256,
    REGISTER_SEND_MSG_RING = 31, /* younger than liburing 2.3's header, as is the next */
    SETUP_NO_SQARRAY = 1 << 16,  /* the entries are taken as they lie, by no array of indices */
};

static const char *reason_of(int rc)
{
    switch (rc) {
    case -ENOSYS:
        return "absent";
    case -EPERM:
    case -EACCES:
        return "forbidden";
    case -ENOMEM:
        return "memory";
    case -EMFILE:
    case -ENFILE:
        return "descriptors";
    default:
        return "refused";
    }
}

static int fail(struct sni_uring_features *out, int rc, const char *reason)
{
    out->reason = reason;
    return rc;
}

/* The set-up, with the best flags that the kernel takes. */
static int set_up(struct sni_ring *ring, const struct sni_uring_config *config)
{
    static const struct {
        uint32_t features;
        unsigned flags;
    } tries[] = {
        {SNI_URING_COOP | SNI_URING_SUBMIT_ALL,
         IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL},
        {SNI_URING_SUBMIT_ALL, IORING_SETUP_SUBMIT_ALL},
        {0, 0},
    };
    uint32_t entries = config->entries != 0 ? config->entries : ENTRIES_DEFAULT;
    if (entries > ENTRIES_MAX)
        entries = ENTRIES_MAX;
    int rc = -EINVAL;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && rc == -EINVAL; i++) {
        if ((tries[i].features & config->without) != 0)
            continue;
        struct io_uring_params params = {
            .flags = tries[i].flags | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE |
                     (config->sqpoll ? IORING_SETUP_SQPOLL : 0u),
            .cq_entries = entries * COMPLETIONS_PER_ENTRY,
            .sq_thread_idle = SQPOLL_IDLE_MS,
        };
        rc = io_uring_queue_init_params(entries, &ring->map, &params);
        ring->features = tries[i].features;
    }
    return rc;
}

/* Does the kernel know all that the driver uses? */
static int check_opcodes(struct sni_ring *ring)
{
    static const uint8_t needed[] = {IORING_OP_POLL_ADD, IORING_OP_ACCEPT,       IORING_OP_CONNECT,
                                     IORING_OP_RECV,     IORING_OP_SEND,         IORING_OP_RECVMSG,
                                     IORING_OP_SENDMSG,  IORING_OP_ASYNC_CANCEL, IORING_OP_TIMEOUT};
    struct io_uring_probe *probe =
        calloc(1, sizeof(*probe) + OPCODES_MAX * sizeof(struct io_uring_probe_op));
    if (probe == NULL)
        return -ENOMEM;
    int rc = io_uring_register_probe(&ring->map, probe, OPCODES_MAX);
    if (rc == -EINVAL)
        rc = -ENOSYS;
    for (size_t i = 0; i < sizeof(needed) && rc == 0; i++)
        rc = io_uring_opcode_supported(probe, needed[i]) ? 0 : -ENOSYS;
    free(probe);
    return rc;
}

/* Try the message by sending one to ourselves. */
static bool can_message(struct sni_ring *ring)
{
    if (sni_ring_message(ring, 0) < 0)
        return false;
    sni_ring_seen(ring, sni_ring_head(ring) + sni_ring_ready(ring, sni_ring_head(ring)));
    return true;
}

int sni_ring_init(struct sni_ring *ring, const struct sni_uring_config *config,
                  struct sni_uring_features *out)
{
    *out = (struct sni_uring_features){.reason = "ok"};
    *ring = (struct sni_ring){0};
    int rc = set_up(ring, config);
    if (rc < 0)
        return fail(out, rc == -EACCES ? -EPERM : rc, reason_of(rc));
    const unsigned must = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_FAST_POLL;
    rc = (ring->map.features & must) == must ? check_opcodes(ring) : -ENOSYS;
    if (rc == -ENOSYS) {
        (void)fail(out, rc, "old");
        goto finish_ring;
    }
    if (rc == 0) /* a filter may let us make a ring and not enter it */
        rc = io_uring_enter((unsigned)ring->map.ring_fd, 0, 0, 0, NULL);
    if (rc < 0) {
        (void)fail(out, rc, reason_of(rc));
        goto finish_ring;
    }
    if ((ring->map.flags & SETUP_NO_SQARRAY) == 0) /* newer than 2.3, liburing does without */
        for (unsigned i = 0; i < ring->map.sq.ring_entries; i++)
            ring->map.sq.array[i] = i;
    unsigned workers = config->workers_max != 0 ? config->workers_max : WORKERS_DEFAULT;
    unsigned most[2] = {workers, workers};
    (void)io_uring_register_iowq_max_workers(&ring->map, most); /* before 5.15 there is no cap */
    if ((ring->map.features & IORING_FEAT_EXT_ARG) != 0)
        ring->features |= SNI_URING_EXT_ARG;
    if ((ring->map.features & IORING_FEAT_CQE_SKIP) != 0)
        ring->features |= SNI_URING_CQE_SKIP;
    if ((config->without & SNI_URING_SEND_MSG) == 0 && can_message(ring))
        ring->features |= SNI_URING_SEND_MSG;
    /* Not to be asked for: a kernel without it answers -EAGAIN, and is served all the same. */
    ring->features |= SNI_URING_PATIENCE;
    ring->features |= SNI_URING_KEEPER; /* as long as epoll is not refused: see uring.c */
    ring->features &= ~config->without;
    if ((ring->features & SNI_URING_COOP) != 0) /* so that the process may be nudged */
        (void)sni_plat_fence_all_prepare(true);
    out->bits = ring->features;
    return 0;

finish_ring:
    sni_ring_finish(ring);
    return rc;
}

static void unmap(void *memory, size_t bytes)
{
    size_t page = 4096; /* whole pages, or the sanitizer keeps the rest in mind */
    (void)munmap(memory, (bytes + page - 1) & ~(page - 1));
}

/* As io_uring_queue_exit does, but by the C library's calls: a thread sanitizer hears of those, and
 * does not take the memory of the next ring at this address for the same. */
void sni_ring_finish(struct sni_ring *ring)
{
    const struct io_uring_sq *sq = &ring->map.sq;
    const struct io_uring_cq *cq = &ring->map.cq;
    unmap(sq->sqes, sq->ring_entries * sizeof(struct io_uring_sqe));
    unmap(sq->ring_ptr, sq->ring_sz);
    if (cq->ring_ptr != NULL && cq->ring_ptr != sq->ring_ptr)
        unmap(cq->ring_ptr, cq->ring_sz);
    (void)close(ring->map.ring_fd);
}

struct io_uring_sqe *sni_ring_put(struct sni_ring *ring)
{
    struct io_uring_sq *sq = &ring->map.sq;
    /* acquire: pairs with the kernel's release of the head, after it has read the entries */
    unsigned head = sni_atomic_load(sni_ring_word(sq->khead), acquire);
    if (ring->tail - head >= sq->ring_entries)
        return NULL;
    struct io_uring_sqe *sqe = &sq->sqes[ring->tail++ & sq->ring_mask];
    memset(sqe, 0, sizeof(*sqe)); /* not by liburing: since 2.3 only what a request needs is set */
    return sqe;
}

unsigned sni_ring_publish(struct sni_ring *ring)
{
    struct io_uring_sq *sq = &ring->map.sq;
    /* release: pairs with the kernel's acquire of the tail, before it reads the entries */
    sni_atomic_store(sni_ring_word(sq->ktail), ring->tail, release);
    /* relaxed: a number that may be too large by now, which the kernel does not mind */
    return ring->tail - sni_atomic_load(sni_ring_word(sq->khead), relaxed);
}

/* What an enter must say so that the kernel's thread, if there is one, looks at the ring. */
static unsigned wakeup_flag(struct sni_ring *ring)
{
    if ((ring->map.flags & IORING_SETUP_SQPOLL) == 0)
        return 0;
    sni_atomic_fence(seq_cst); /* between our tail and its flag; pairs with the kernel's, where
                                  the thread raises the flag and looks at the tail once more */
    return (sni_ring_flags(ring) & IORING_SQ_NEED_WAKEUP) != 0 ? IORING_ENTER_SQ_WAKEUP : 0;
}

/* A completion that was lost cannot be replaced: its operation would wait for ever, and its buffer
 * would never be known to be free. */
static void check_dropped(int rc)
{
    sni_assert(rc != -EBADR, "the kernel had no memory and dropped completions of a ring");
}

int sni_ring_push(struct sni_ring *ring, bool events)
{
    unsigned publ = sni_ring_publish(ring);
    unsigned flags = wakeup_flag(ring) | (events ? IORING_ENTER_GETEVENTS : 0);
    bool polled = (ring->map.flags & IORING_SETUP_SQPOLL) != 0;
    if (flags == 0 && (publ == 0 || polled))
        return 0;
    int rc = io_uring_enter((unsigned)ring->map.ring_fd, publ, 0, flags, NULL);
    check_dropped(rc);
    return polled && rc > 0 ? 0 : rc;
}

/* Without EXT_ARG: the ring's descriptor is readable when a completion is there. */
static void sleep_by_poll(struct sni_ring *ring, unsigned publ, int64_t ns)
{
    unsigned flags = wakeup_flag(ring);
    if (publ != 0 || flags != 0)
        (void)io_uring_enter((unsigned)ring->map.ring_fd, publ, 0, flags, NULL);
    struct pollfd one = {.fd = ring->map.ring_fd, .events = POLLIN};
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)ppoll(&one, 1, ns != INT64_MAX ? &time : NULL, NULL);
}

void sni_ring_sleep(struct sni_ring *ring, unsigned publ, int64_t ns)
{
    if ((ring->features & SNI_URING_EXT_ARG) == 0) {
        sleep_by_poll(ring, publ, ns);
        return;
    }
    struct __kernel_timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    struct io_uring_getevents_arg arg = {
        .sigmask_sz = _NSIG / 8,
        .ts = ns != INT64_MAX ? (uint64_t)(uintptr_t)&time : 0,
    };
    /* Whatever else it returns: who waits looks for himself. */
    check_dropped(io_uring_enter2((unsigned)ring->map.ring_fd, publ, 1,
                                  IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG | wakeup_flag(ring),
                                  (sigset_t *)(void *)&arg, sizeof(arg)));
}

int sni_ring_message(struct sni_ring *ring, uint64_t user_data)
{
    struct io_uring_sqe sqe;
    memset(&sqe, 0, sizeof(sqe));
    sqe.opcode = IORING_OP_MSG_RING;
    sqe.fd = ring->map.ring_fd;
    sqe.off = user_data;
    return io_uring_register((unsigned)-1, REGISTER_SEND_MSG_RING, &sqe, 1);
}
