/* SPDX-License-Identifier: MIT */
/* probe.c - adding counters up, and what they are called; see probe.h.
 *
 * The rare half: workers count inline, and come here only through whoever watches them. */
#include "probe/probe.h"

struct label {
    const char *name;
    const char *text;
};

static const struct label labels[SNI_PROBE_COUNTERS_N] = {
#define LABEL(name, text) {#name, text},
    SNI_PROBE_COUNTERS(LABEL)
#undef LABEL
};

void sni_probe_collect(struct sni_probe_sum *sum, const struct sni_probe *p)
{
    for (int i = 0; i < SNI_PROBE_COUNTERS_N; i++)
        sum->count[i] += sni_probe_get(p, (enum sni_probe_counter)i);
}

void sni_probe_total(struct sni_probe_sum *sum, const struct sni_probe *first, size_t n,
                     size_t stride_bytes)
{
    *sum = (struct sni_probe_sum){{0}};
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)first + i * stride_bytes;
        sni_probe_collect(sum, (const struct sni_probe *)(const void *)at);
    }
}

const char *sni_probe_name(enum sni_probe_counter which)
{
    return (unsigned)which < SNI_PROBE_COUNTERS_N ? labels[which].name : NULL;
}

const char *sni_probe_text(enum sni_probe_counter which)
{
    return (unsigned)which < SNI_PROBE_COUNTERS_N ? labels[which].text : NULL;
}
