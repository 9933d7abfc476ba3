/* SPDX-License-Identifier: MIT */
/* driver.h - who waits for the kernel: one interface, a folder of code for each way.
 *
 * A *driver* is one worker's (or one plain thread's) door to the kernel: a ring, an epoll
 * instance, a list for poll(2), or a script in a test. Its owner sleeps in it. Operations are
 * given to it and come back complete.
 *
 * Others may also use it: give it an operation on a descriptor that is registered there, cancel
 * one, and above all reap it while its owner is busy with a long task (R85). So there is a lock:
 * everything but `wait` and `wake` is called under it. It is held for a few instructions, at
 * most for one system call that does not wait.
 *
 * Order of locks: a wheel's, a file's, a driver's. Completing claims a waiter under the
 * driver's lock; that queues a task and takes no further lock of these.
 *
 * Tickets. A driver that keeps registrations (sticky) is told by the kernel that a descriptor has
 * *become* ready, and remembers it; that it is so no more only its users find out. They say so by
 * `flags` of a POLL of a kept descriptor. In: the ticket that the file had before the try which
 * failed (EAGAIN, or came out short); 0 if it had none, or nothing was tried. Out: a new ticket,
 * for the file to keep. So the owner's loop is, for each direction of a file:
 *
 *     ticket = file's ticket;        // first this, then the try
 *     rc = recv(...);                // not -EAGAIN: done
 *     op.flags = ticket; submit; wait until it is complete;
 *     file's ticket = op.flags; again
 *
 * A short read is a guess (`is_guess`), though a good one: it may also have been cut where the
 * stream ends or urgent data lie, and then there is more. A driver that was told of either does not
 * believe it, and the POLL is over at once: one try in vain.
 *
 * A ticket is no proof but to the driver that gave it. A file that moves to another one comes
 * there, with its first POLL, with the newest ticket of the old one, and the new tickets are newer.
 * So the old ones that are still about prove nothing.
 *
 * A ticket is a number from 1 to SNI_TICKET_MAX. An older one than possible costs a try in vain; a
 * newer one than the try loses a wake-up. Drivers that ask the kernel anew each time leave `flags`
 * alone, and all do so of a descriptor that is not kept. */
#ifndef SINEW_IO_DRIVER_H
#define SINEW_IO_DRIVER_H

#include "io/op.h"
#include "plat/thread.h"

#include <stdbool.h>
#include <stdint.h>

enum { SNI_TICKET_MAX = 0x7FFFFFFF };

struct sni_driver_ops {
    const char *name;

    /* Bits 1 << sni_op_kind: the kinds it can do; POLL is always among them. */
    uint32_t native;

    /* It keeps registrations: a file stays with the driver of its first POLL, there it is
     * registered. Otherwise an operation goes to the driver of the worker it is made on. */
    bool sticky;

    /* Locked. Take `op`: complete it, now or later. Errors are completions too (out of memory,
     * a bad descriptor). What it needs of the kernel may be put off until `flush`. */
    void (*submit)(struct sni_driver *driver, struct sni_op *op);

    /* Locked. `op` is pending: complete it, now or soon. Twice is once. */
    void (*cancel)(struct sni_driver *driver, struct sni_op *op);

    /* Locked. The descriptor will be closed, or kept by another driver: no operation on it is
     * pending, and none will be before it, or the number, is used anew. NULL if the driver keeps
     * nothing.
     *
     * Returns  the newest ticket that was given for it, or a newer one; 0: none */
    uint32_t (*forget)(struct sni_driver *driver, int fd);

    /* Locked. Hand to the kernel what was put off. NULL if nothing ever is. */
    void (*flush)(struct sni_driver *driver);

    /* Locked. Complete what the kernel has ready, without waiting; flushes too. Fair: in the
     * order in which the kernel tells, at most some hundred in one call.
     *
     * Returns  how many were completed */
    unsigned (*reap)(struct sni_driver *driver);

    /* Locked; its owner only, which will sleep next unless something is found. As reap, but what
     * was put off may stay so: the wait hands it over. NULL: reap will do. */
    unsigned (*glance)(struct sni_driver *driver);

    /* Not locked; its owner only. Hand over what was put off, and sleep until something can be
     * reaped, or somebody has called `wake` since the last `wait` returned, or `until_ns` (of
     * sni_plat_now_ns) has passed; sometimes earlier. Nothing is completed.
     *
     * It may be a plain thread that waits here for an operation of its own, whose waiter is then
     * claimed without anybody being unparked. So the completion of an operation with a thread for
     * a waiter (waiter.fiber is NULL), by whomever, makes `wait` return, now or when next
     * called. */
    void (*wait)(struct sni_driver *driver, int64_t until_ns);

    /* Not locked; any thread. Make `wait` return, now or when it is next called. */
    void (*wake)(struct sni_driver *driver);

    /* Not locked; any thread. A descriptor that is readable while something can be reaped. NULL:
     * there is none. */
    int (*fd)(const struct sni_driver *driver);

    /* Locked; its owner only, which is awake, and lets somebody else wait for `fd` when it has
     * flushed. A wake that came when the sleep was over, and that a reap has met, makes `fd`
     * readable no longer. NULL: there is nothing to do. */
    void (*hush)(struct sni_driver *driver);

    /* Not locked. Its owner goes, and no operation is pending: give back what is the kernel's. The
     * lock stays until `finish`, for files that have their home here. NULL: it is all done by
     * `finish`; then it is no home, unless it is sticky. */
    void (*retire)(struct sni_driver *driver);

    /* Not locked, nobody else knows it any more. No operation is pending. Free everything. */
    void (*finish)(struct sni_driver *driver);
};

/* The head of every driver. */
struct sni_driver {
    const struct sni_driver_ops *ops; /* immutable                                          */
    const void *group; /* whose workers turn it, as long as one of them lives; set before use    */
    struct sni_mutex lock;
    SNI_ATOMIC(uint32_t) holders; /* its owner, and the files that have their home there       */
    bool retired;                 /* under the lock: its owner has gone, nobody turns it        */
    struct sni_list all;          /* operations it has, in the order of their submission       */
    SNI_ATOMIC(uint32_t) pending; /* their number; changed under the lock, read by anybody     */
    SNI_ATOMIC(uint32_t) crowd;   /* so many are a crowd, see sni_driver_is_crowded             */
};

/* ---- what the rest of the house calls --------------------------------------------------- */

void sni_driver_init(struct sni_driver *driver, const struct sni_driver_ops *ops);

/* Give `op`, whose waiter is begun, to the driver. The wait may be committed right after.
 *
 * Returns  whether it is complete already */
bool sni_driver_submit(struct sni_driver *driver, struct sni_op *op);

/* The same for who holds the driver's lock, and has linked op->on_file: the end of the operation
 * takes it out of there, under that lock. */
bool sni_driver_submit_locked(struct sni_driver *driver, struct sni_op *op);

/* Ask that `op`, which was submitted and whose memory the caller knows to be alive, be over
 * soon, because of `why` (-ETIMEDOUT, -ECANCELED, -EBADF). The first reason counts. Nothing
 * happens if it is complete. */
void sni_driver_cancel(struct sni_op *op, int why);

/* The same for all operations of a chain, which the driver's lock guards. */
void sni_driver_cancel_chain(struct sni_driver *driver, struct sni_chain *const *chain, int why);

/* Cancel `op` and return when it is complete, by reaping the driver as often as needed. For
 * owners that cannot wait: the drop of a future. Its waiter has been claimed; if it is awaited,
 * nobody is woken. */
void sni_driver_cancel_now(struct sni_op *op, int why);

/* The owner of `op` never goes on: as sni_driver_cancel_now, and nobody is woken. A connection that
 * was accepted all the same, and descriptors that were received, are closed. `op` may be complete,
 * but its owner must not have looked at the result. */
void sni_driver_take_back(struct sni_op *op);

/* Cancel all operations, because of -ECANCELED, and return when they are complete. For the end
 * of a runtime whose tasks will not run again. */
void sni_driver_cancel_all(struct sni_driver *driver);

/* The descriptor `fd`, registered here, will be closed, or is to be registered elsewhere. Returns a
 * ticket that none given for it here is newer than. */
uint32_t sni_driver_forget(struct sni_driver *driver, int fd);

/* Pass on what was put off. */
void sni_driver_flush(struct sni_driver *driver);

/* Complete what is ready. Returns the number; 0 also if somebody else is just at it. */
unsigned sni_driver_reap(struct sni_driver *driver);

/* The same before the caller waits: a system call that the wait makes too is saved. */
unsigned sni_driver_glance(struct sni_driver *driver);

/* Reap, with the lock taken even if somebody else has it. */
unsigned sni_driver_reap_patiently(struct sni_driver *driver);

void sni_driver_wait(struct sni_driver *driver, int64_t until_ns);
void sni_driver_wake(struct sni_driver *driver);

/* Its owner goes; NULL is fine. No operation is pending. It is freed when no file has its home
 * there any more. */
void sni_driver_finish(struct sni_driver *driver);

/* A file has its home there, or no more. */
void sni_driver_hold(struct sni_driver *driver);
void sni_driver_release(struct sni_driver *driver);

/* Whether its owner has gone. */
bool sni_driver_is_retired(struct sni_driver *driver);

/* A descriptor that is readable while something can be reaped, or -1. */
int sni_driver_fd(const struct sni_driver *driver);

/* By its owner, when it was reaped: that descriptor is not readable because of a wake, and will be
 * when something can be reaped. sni_driver_flush follows. */
void sni_driver_hush(struct sni_driver *driver);

/* How many operations it has now. */
uint32_t sni_driver_pending(const struct sni_driver *driver);

/* Has it so many that bytes are better waited for by a POLL than by an operation that receives
 * them? Any thread. From how many on, the driver says; UINT32_MAX, as at first: never. */
bool sni_driver_is_crowded(const struct sni_driver *driver);
void sni_driver_set_crowd(struct sni_driver *driver, uint32_t crowd);

/* Its owner is one of several workers that take each other's tasks: fewer are a crowd then. What an
 * operation that receives has brought is for the thread that submitted it to fetch, even while that
 * one has lost its processor; a POLL tells whoever looks. */
void sni_driver_set_shared(struct sni_driver *driver);

#endif
