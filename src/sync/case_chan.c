/* SPDX-License-Identifier: MIT */
/* case_chan.c - sending and receiving as cases of a select.
 *
 * The attempt is that of the plain call, and a counterpart serves the party as it serves any other;
 * see select.c for who wins. */
#include "sync/chan.h"

#include <sinew/errno.h>
#include <sinew/select.h>

static struct sni_chan *chan_of(const struct sni_case *c)
{
    return sni_container_of(c->source, struct sni_chan, source);
}

static struct sni_source *find_chan(struct sni_case *c)
{
    struct sni_chan *chan = sni_chan_find(c->at);
    return chan == NULL ? NULL : &chan->source;
}

static int attempt_send(struct sni_case *c, struct sni_wake *wake)
{
    return sni_chan_put(chan_of(c), c->value, wake);
}

static int attempt_recv(struct sni_case *c, struct sni_wake *wake)
{
    return sni_chan_take(chan_of(c), c->value, wake);
}

static struct sni_list *senders_line(struct sni_case *c)
{
    return &chan_of(c)->senders;
}

static struct sni_list *receivers_line(struct sni_case *c)
{
    return &chan_of(c)->receivers;
}

/* The value may have closed a oneshot channel; whoever got it may even have freed that. */
static void after_send(struct sni_case *c)
{
    const struct sni_chan *chan = sni_chan_find(c->at);
    if (c->result == 0 && chan != NULL && chan->oneshot)
        (void)sn_chan_close(c->at);
}

static const struct sni_case_kind send_kind = {.find = find_chan,
                                               .attempt = attempt_send,
                                               .line = senders_line,
                                               .after = after_send,
                                               .name = "send"};
static const struct sni_case_kind recv_kind = {
    .find = find_chan, .attempt = attempt_recv, .line = receivers_line, .name = "recv"};

/* What is opaque is not written: most of it is another kind's, and a case is made for each wait. It
 * is bytes, because an array of pointers is written all the same, by gcc, with zeros. */
static inline void fill_in(sn_case *c, const struct sni_case_kind *kind, sn_chan *ch, void *value)
{
    c->kind_ = kind;
    c->at_ = ch;
    c->value_ = value;
    c->result = 0;
}

sn_case sn_case_send(sn_chan *ch, const void *value)
{
    sn_case c;
    fill_in(&c, &send_kind, ch, (void *)(uintptr_t)value);
    return c;
}

sn_case sn_case_recv(sn_chan *ch, void *value)
{
    sn_case c;
    fill_in(&c, &recv_kind, ch, value);
    return c;
}
