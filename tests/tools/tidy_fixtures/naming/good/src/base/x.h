/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_X_H
#define SINEW_BASE_X_H

int sni_thing(void);
SN_API int sn_thing(void);
static inline int thing(void)
{
    return 0;
}
SNI_CHECK(sizeof(struct sni_x) == 4);

#endif
