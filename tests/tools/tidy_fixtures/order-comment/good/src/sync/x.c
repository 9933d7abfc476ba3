/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
int sni_f(struct x *x)
{
    sni_atomic_store(&x->state, 1, seq_cst);


    sni_atomic_store(&x->state, 1, release); /* pairs with the acquire below */


    /* acquire: pairs with the release above */
    if (!sni_atomic_cas(&x->state, &found, ARMING,
                        acquire, relaxed))
        return 0;



    return sni_atomic_load(&x->release, seq_cst);
}
