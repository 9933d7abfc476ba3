/* SPDX-License-Identifier: MIT */
/* fault.c (linux) - see fault.h.
 *
 * Why a chain: other parts of a process have their own use for SIGSEGV (sanitizers, language
 * runtimes, crash reporters). We answer only for what the house claims and pass on the rest as
 * if we were not there. A fault that nobody handled before us ends the process the usual way,
 * with the core dump pointing at the guilty instruction: the default action is restored and the
 * instruction tried again.
 *
 * What the handler reads is written before the handler is in place, and stays. */
#define _GNU_SOURCE 1
#include "plat/fault.h"

#include "base/atomic.h"
#include "plat/memory.h"
#include "plat/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

enum { ALTERNATE_BYTES = 64 * 1024 };

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static struct {
    struct sni_mutex mutex; /* guards installs and removes                               */
    unsigned users;         /* installs not yet removed                                  */
    SNI_ATOMIC(sni_fault_fn) fn;
    struct sigaction before_segv; /* constant while fn is set                             */
    struct sigaction before_bus;
} house;

/* ---- the handler ------------------------------------------------------------------- */

/* Let the default action have it. A fault comes again by itself; a signal that somebody sent
 * must be sent again, and arrives when the handler returns. */
static void give_up(int sig, const siginfo_t *info)
{
    struct sigaction dfl;
    memset(&dfl, 0, sizeof(dfl));
    dfl.sa_handler = SIG_DFL;
    sigemptyset(&dfl.sa_mask);
    sigaction(sig, &dfl, NULL);
    if (info->si_code <= 0)
        raise(sig);
}

static void pass_on(int sig, siginfo_t *info, void *frame)
{
    const struct sigaction *before = sig == SIGSEGV ? &house.before_segv : &house.before_bus;
    bool informed = (before->sa_flags & SA_SIGINFO) != 0;
    if (!informed && before->sa_handler == SIG_IGN && info->si_code <= 0)
        return; /* sent by somebody, to one who does not care */
    if (!informed && (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)) {
        give_up(sig, info);
        return;
    }
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, &before->sa_mask, &mask);
    if (informed)
        before->sa_sigaction(sig, info, frame);
    else
        before->sa_handler(sig);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void on_fault(int sig, siginfo_t *info, void *frame)
{
    int saved = errno;
    /* acquire: pairs with the release in sni_plat_fault_install */
    sni_fault_fn fn = sni_atomic_load(&house.fn, acquire);
    bool real = info->si_code > 0; /* raised by an instruction, not sent */
    if (fn == NULL || !real || fn(info->si_addr, frame) == 0)
        pass_on(sig, info, frame);
    errno = saved;
}

/* ---- install and remove ------------------------------------------------------------ */

static int take(int sig, struct sigaction *before)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof(ours));
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return sigaction(sig, &ours, before) == 0 ? 0 : -errno;
}

static void give_back(int sig, const struct sigaction *before)
{
    struct sigaction now;
    if (sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == on_fault)
        sigaction(sig, before, NULL);
}

static int take_both(sni_fault_fn fn)
{
    /* What was there before must be known before the handler can need it. */
    if (sigaction(SIGSEGV, NULL, &house.before_segv) < 0 ||
        sigaction(SIGBUS, NULL, &house.before_bus) < 0)
        return -errno;
    /* release: the two above, to the handler's acquire */
    sni_atomic_store(&house.fn, fn, release);
    int rc = take(SIGSEGV, NULL);
    if (rc < 0)
        return rc;
    rc = take(SIGBUS, NULL);
    if (rc < 0)
        give_back(SIGSEGV, &house.before_segv);
    return rc;
}

int sni_plat_fault_install(sni_fault_fn fn)
{
    int rc = 0;
    sni_mutex_lock(&house.mutex);
    /* relaxed: written under the mutex only */
    if (house.users > 0 && sni_atomic_load(&house.fn, relaxed) != fn)
        rc = -EBUSY;
    else if (house.users == 0)
        rc = take_both(fn);
    if (rc == 0)
        house.users++;
    sni_mutex_unlock(&house.mutex);
    return rc;
}

void sni_plat_fault_remove(void)
{
    sni_mutex_lock(&house.mutex);
    if (--house.users == 0) {
        give_back(SIGSEGV, &house.before_segv);
        give_back(SIGBUS, &house.before_bus);
        /* Somebody who came later may still pass faults on to us. relaxed: NULL needs no more */
        sni_atomic_store(&house.fn, NULL, relaxed);
    }
    sni_mutex_unlock(&house.mutex);
}

/* ---- alternate stacks -------------------------------------------------------------- */

/* What the kernel writes for a signal depends on the processor's registers. */
static size_t alternate_bytes(void)
{
    size_t page = sni_plat_page_bytes();
    size_t frame = getauxval(AT_MINSIGSTKSZ);
    return (ALTERNATE_BYTES + frame + page - 1) / page * page;
}

int sni_plat_fault_thread_init(struct sni_fault_thread *t)
{
    stack_t now;
    *t = (struct sni_fault_thread){NULL, 0};
    if (sigaltstack(NULL, &now) < 0)
        return -errno;
    if ((now.ss_flags & SS_DISABLE) == 0)
        return 0;
    size_t page = sni_plat_page_bytes();
    size_t bytes = page + alternate_bytes();
    void *base = NULL;
    int rc = sni_plat_reserve(&base, bytes);
    if (rc < 0)
        return rc;
    (void)sni_plat_guard(base, page, SNI_GUARD_AUTO); /* good to have, and no more */
    stack_t ours = {.ss_sp = (char *)base + page, .ss_size = bytes - page};
    if (sigaltstack(&ours, NULL) < 0) {
        rc = -errno;
        sni_plat_release(base, bytes);
        return rc;
    }
    *t = (struct sni_fault_thread){base, bytes};
    return 0;
}

void sni_plat_fault_thread_finish(struct sni_fault_thread *t)
{
    if (t->base_ == NULL)
        return;
    stack_t off = {.ss_flags = SS_DISABLE};
    stack_t now;
    /* Somebody may have put another in its place since, which is theirs to keep. */
    if (sigaltstack(NULL, &now) == 0 && (char *)now.ss_sp > (char *)t->base_ &&
        (char *)now.ss_sp < (char *)t->base_ + t->bytes_)
        sigaltstack(&off, NULL);
    sni_plat_release(t->base_, t->bytes_);
    *t = (struct sni_fault_thread){NULL, 0};
}

/* ---- the machine's state ----------------------------------------------------------- */

#if defined(__x86_64__)
#define REGISTER_SP(m) ((m)->gregs[REG_RSP])
#define REGISTER_PC(m) ((m)->gregs[REG_RIP])
#elif defined(__aarch64__)
#define REGISTER_SP(m) ((m)->sp)
#define REGISTER_PC(m) ((m)->pc)
#elif defined(__riscv)
#define REGISTER_SP(m) ((m)->__gregs[REG_SP])
#define REGISTER_PC(m) ((m)->__gregs[REG_PC])
#else
#define REGISTER_SP(m) ((void)(m), 0) /* not known: reports do without */
#define REGISTER_PC(m) ((void)(m), 0)
#endif

void *sni_plat_fault_sp(const void *frame)
{
    const mcontext_t *machine = &((const ucontext_t *)frame)->uc_mcontext;
    return (void *)(uintptr_t)REGISTER_SP(machine);
}

void *sni_plat_fault_pc(const void *frame)
{
    const mcontext_t *machine = &((const ucontext_t *)frame)->uc_mcontext;
    return (void *)(uintptr_t)REGISTER_PC(machine);
}
