/* SPDX-License-Identifier: MIT */
/* Programs of the goker collection that hang because of locks (R160): never unlocked, locked in
 * different orders, read again while somebody waits to write, conditions and wait groups. */
#include "unit/observe/goker.h"
#include "unit/sync/guests.h"

/* --- never unlocked --- */

static int bootstrap(UNUSED void *arg)
{
    lock(0);
    bool is_closed = true;
    if (is_closed && !is_fixed)
        return 0; /* leaves the loop, and the lock locked */
    unlock(0);
    return 0;
}

static int manage(UNUSED void *arg)
{
    await(0);
    lock(0);
    unlock(0);
    return 0;
}

PROGRAM(cockroach_584_a_loop_is_left_without_unlocking, "manage")
{
    GO(manage);
    CHECK_EQ(sn_join(sn_spawn(bootstrap, NULL), NULL), 0);
    reach(0);
    return 0;
}

static int fail_with_read_lock(UNUSED void *arg)
{
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    bool has_client = false;
    if (!has_client && !is_fixed)
        return 0; /* the error path */
    return sn_rwlock_unlock_shared(&rw);
}

static int close_client(UNUSED void *arg)
{
    await(0);
    CHECK_EQ(sn_rwlock_lock(&rw, SN_FOREVER), 0);
    return sn_rwlock_unlock(&rw);
}

PROGRAM(etcd_5509_an_error_path_keeps_a_read_lock, "close_client")
{
    GO(close_client);
    CHECK_EQ(sn_join(sn_spawn(fail_with_read_lock, NULL), NULL), 0);
    reach(0);
    return 0;
}

static int delete_device(UNUSED void *arg)
{
    lock(0);
    for (int device = 0; device < 3; device++) {
        bool is_busy = device == 1;
        if (is_busy && !is_fixed)
            return 0;
    }
    unlock(0);
    return 0;
}

static int list_devices(UNUSED void *arg)
{
    await(0);
    lock(0);
    unlock(0);
    return 0;
}

PROGRAM(moby_17176_an_early_return_keeps_the_lock, "list_devices", "main")
{
    sn_task *t = sn_spawn(list_devices, NULL, .name = "list_devices");
    CHECK_EQ(sn_join(sn_spawn(delete_device, NULL), NULL), 0);
    reach(0);
    return sn_join(t, NULL);
}

/* --- locked twice: that is told at once, and nobody hangs --- */

static int log_header(UNUSED void *arg)
{
    int rc = sn_mutex_lock(&mu[0], SN_FOREVER);
    if (rc == 0) {
        rc = sn_mutex_lock(&mu[0], SN_FOREVER); /* what exit() does, called under the lock */
        unlock(0);
    }
    return rc;
}

MISUSE_TEST(cockroach_9935_a_method_locks_what_its_caller_holds, -EDEADLK,
            "a mutex is locked by who holds it")
{
    reset_all(false);
    return sn_run(log_header, NULL);
}

static int promote(UNUSED void *arg)
{
    int rc = sn_rwlock_lock(&rw, SN_FOREVER);
    if (rc == 0) {
        rc = sn_rwlock_lock_shared(&rw, SN_FOREVER);
        CHECK_EQ(sn_rwlock_unlock(&rw), 0);
    }
    return rc;
}

MISUSE_TEST(etcd_10492_a_checkpoint_reads_under_its_own_write_lock, -EDEADLK,
            "a lock is wanted by who writes under it")
{
    reset_all(false);
    return sn_run(promote, NULL);
}

/* --- locked in different orders --- */

static int lock_device_first(UNUSED void *arg)
{
    lock(0);
    if (!is_fixed)
        meet_here();
    lock(1);
    unlock(1);
    unlock(0);
    return 0;
}

static int lock_set_first(UNUSED void *arg)
{
    int first = is_fixed ? 0 : 1;
    lock(first);
    if (!is_fixed)
        meet_here();
    lock(1 - first);
    unlock(1 - first);
    unlock(first);
    return 0;
}

PROGRAM(moby_4951_two_locks_in_opposite_order, "lock_device_first", "lock_set_first")
{
    GO(lock_device_first);
    GO(lock_set_first);
    return 0;
}

static int watch_cache(UNUSED void *arg)
{
    CHECK_EQ(sn_rwlock_lock(&rw, SN_FOREVER), 0);
    if (!is_fixed)
        meet_here();
    else
        CHECK_EQ(sn_rwlock_unlock(&rw), 0);
    lock(0); /* onEvent takes the other lock */
    unlock(0);
    return is_fixed ? 0 : sn_rwlock_unlock(&rw);
}

static int start_caching(UNUSED void *arg)
{
    lock(0);
    if (!is_fixed)
        meet_here();
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
    unlock(0);
    return 0;
}

PROGRAM(kubernetes_13135_a_mutex_and_a_rwlock_in_opposite_order, "watch_cache", "start_caching")
{
    GO(watch_cache);
    GO(start_caching);
    return 0;
}

static int release_lease(UNUSED void *arg)
{
    lock(0);
    if (!is_fixed)
        meet_here();
    else
        unlock(0);
    lock(1);
    unlock(1);
    if (!is_fixed)
        unlock(0);
    return 0;
}

static int acquire_lease(UNUSED void *arg)
{
    lock(1);
    if (!is_fixed)
        meet_here();
    lock(0);
    unlock(0);
    unlock(1);
    return 0;
}

PROGRAM(cockroach_7504_a_callback_takes_the_lock_of_its_caller, "release_lease", "acquire_lease",
        "main")
{
    GO(release_lease);
    return sn_join(sn_spawn(acquire_lease, NULL, .name = "acquire_lease"), NULL);
}

static int lock_round(void *arg)
{
    int me = *(int *)arg;
    int first = me, second = (me + 1) % 3;
    if (is_fixed && first > second) {
        first = 0;
        second = 2;
    }
    lock(first);
    if (!is_fixed) {
        CHECK_EQ(sn_wait_group_done(&group), 0);
        CHECK_EQ(sn_wait_group_wait(&group, SN_FOREVER), 0);
    }
    lock(second);
    unlock(second);
    unlock(first);
    return 0;
}

PROGRAM(kubernetes_30872_three_locks_in_a_ring, "informer", "controller", "deliverer")
{
    static const char *const names[] = {"informer", "controller", "deliverer"};
    CHECK_EQ(sn_wait_group_add(&group, 3), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sn_spawn_detached(lock_round, &i, .name = names[i], .copy_bytes = sizeof(i)), 0);
    return 0;
}

static int process_under_lock(UNUSED void *arg)
{
    lock(0);
    unlock(0);
    return 0;
}

PROGRAM(cockroach_10214_a_task_is_awaited_under_the_lock_it_needs, "process_under_lock", "main")
{
    lock(0);
    sn_task *t = sn_spawn(process_under_lock, NULL, .name = "process_under_lock");
    if (is_fixed)
        unlock(0);
    int rc = sn_join(t, NULL);
    if (!is_fixed)
        unlock(0);
    return rc;
}

/* --- read again while somebody waits to write --- */

/* Until a writer waits: then nobody new may read. */
static void until_writer_waits(void)
{
    while (sn_rwlock_lock_shared(&rw, SN_NOWAIT) == 0) {
        CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
        CHECK_EQ(sn_sleep(SN_US(50)), 0);
    }
}

static int write_once(UNUSED void *arg)
{
    await(0);
    CHECK_EQ(sn_rwlock_lock(&rw, SN_FOREVER), 0);
    return sn_rwlock_unlock(&rw);
}

static int read_twice(UNUSED void *arg)
{
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    reach(0);
    until_writer_waits();
    if (!is_fixed) { /* String() calls a method that reads, too */
        CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
        CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
    }
    return sn_rwlock_unlock_shared(&rw);
}

PROGRAM(cockroach_6181_a_reader_reads_again_behind_a_writer, "write_once", "read_twice")
{
    GO(write_once);
    GO(read_twice);
    return 0;
}

static int compute_overlap(UNUSED void *arg)
{
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    return sn_rwlock_unlock_shared(&rw);
}

PROGRAM(kubernetes_58107_a_reader_waits_for_another_reader_behind_a_writer, "write_once",
        "compute_overlap", "main")
{
    GO(write_once);
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    reach(0);
    until_writer_waits();
    sn_task *t = sn_spawn(compute_overlap, NULL, .name = "compute_overlap");
    if (is_fixed)
        CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
    int rc = sn_join(t, NULL);
    if (!is_fixed)
        CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
    return rc;
}

static int fetch_remote(UNUSED void *arg)
{
    await(0);
    CHECK_EQ(sn_rwlock_lock(&rw, SN_FOREVER), 0); /* writer, who then wants the url's lock */
    lock(0);
    unlock(0);
    return sn_rwlock_unlock(&rw);
}

static int unlock_url(UNUSED void *arg)
{
    lock(0);
    CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    reach(0);
    until_writer_waits();
    if (!is_fixed)
        CHECK_EQ(sn_rwlock_lock_shared(&rw, SN_FOREVER), 0);
    CHECK_EQ(sn_rwlock_unlock_shared(&rw), 0);
    unlock(0);
    return 0;
}

PROGRAM(hugo_3251_a_reader_with_a_mutex_reads_again, "fetch_remote", "unlock_url")
{
    GO(fetch_remote);
    GO(unlock_url);
    return 0;
}

/* --- conditions --- */

static int wait_active(UNUSED void *arg)
{
    lock(0);
    while (!flag)
        CHECK_EQ(sn_cond_wait(&cond, &mu[0], SN_FOREVER), 0);
    unlock(0);
    return 0;
}

PROGRAM(moby_30408_a_failed_manifest_is_never_signalled, "wait_active")
{
    GO(wait_active);
    bool failed = true;
    if (failed && !is_fixed)
        return 0; /* nobody waits for a plugin that failed, one thought */
    lock(0);
    flag = true;
    CHECK_EQ(sn_cond_broadcast(&cond), 0);
    unlock(0);
    return 0;
}

static int wait_for_signal(UNUSED void *arg)
{
    await(0);
    lock(0);
    if (!is_fixed || !flag)
        CHECK_EQ(sn_cond_wait(&cond, &mu[0], SN_FOREVER), 0);
    unlock(0);
    return 0;
}

PROGRAM(moby_29733_a_signal_before_the_wait_is_lost, "wait_for_signal")
{
    GO(wait_for_signal);
    lock(0);
    flag = true;
    CHECK_EQ(sn_cond_signal(&cond), 0);
    unlock(0);
    reach(0);
    return 0;
}

/* --- wait groups --- */

static int unmount(UNUSED void *arg)
{
    return sn_wait_group_done(&group);
}

PROGRAM(moby_25384_the_group_is_awaited_inside_the_loop, "main")
{
    CHECK_EQ(sn_wait_group_add(&group, 2), 0);
    for (int plugin = 0; plugin < 2; plugin++) {
        GO(unmount);
        if (!is_fixed)
            CHECK_EQ(sn_wait_group_wait(&group, SN_FOREVER), 0);
    }
    return sn_wait_group_wait(&group, SN_FOREVER);
}

static int run_worker(UNUSED void *arg)
{
    bool may_start = false;
    if (!may_start && !is_fixed)
        return 0; /* refused, but counted */
    return sn_wait_group_done(&group);
}

PROGRAM(cockroach_1055_a_refused_worker_is_not_counted_down, "main")
{
    CHECK_EQ(sn_wait_group_add(&group, 1), 0);
    GO(run_worker);
    return sn_wait_group_wait(&group, SN_FOREVER);
}
