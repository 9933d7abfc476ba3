/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
int sni_f(struct x *x)
{
    /* this comment is too far away */



    sni_atomic_store(&x->state, 1, release);
    if (!sni_atomic_cas(&x->state, &found, ARMING,
                        acquire, relaxed))
        return 0;
    atomic_fetch_add_explicit(&x->n, 1, memory_order_relaxed);
    sni_atomic_fence(release);
    return sni_atomic_load_acquire(&x->state);
}
