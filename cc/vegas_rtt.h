/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * vegas_rtt.h - the two round-trip times that Vegas and its heirs compare: the
 * smallest ever, which is the path, and the smallest of this round, which is
 * the path and the queue. Shared by vegas.c, veno.c and yeah.c.
 *
 * Source: Brakmo and Peterson, IEEE JSAC 13(8), 1995, section V; Linux 6.12
 *	net/ipv4/tcp_vegas.c for when they are taken and forgotten.
 */
#ifndef KNEE_VEGAS_RTT_H
#define KNEE_VEGAS_RTT_H

#include "cc_algorithm.h"

/* No sample yet. us. */
#define VEGAS_NO_RTT 0x7fffffffu
/* A round with fewer may hold nothing but delayed ACKs. Samples. */
#define VEGAS_MIN_SAMPLES 3u

struct vegas_rtt {
	u32 base_us;	   /* smallest RTT since the last pause */
	u32 min_us;	   /* smallest RTT of this round */
	u32 samples;	   /* RTT samples of this round */
	u32 round_end_seq; /* the round ends when this is acked */
	u32 is_on; /* 0 or 1: nothing is lost or reordered, so RTTs tell */
};

static inline void vegas_rtt_new_round(struct vegas_rtt *r)
{
	r->samples = 0;
	r->min_us = VEGAS_NO_RTT;
}

static inline void vegas_rtt_enable(struct vegas_rtt *r, const struct cc_in *in)
{
	r->is_on = 1;
	r->round_end_seq = in->snd_nxt;
	vegas_rtt_new_round(r);
}

static inline void vegas_rtt_init(struct vegas_rtt *r, const struct cc_in *in)
{
	r->base_us = VEGAS_NO_RTT;
	vegas_rtt_enable(r, in);
}

/* set_state(): what is measured during recovery is the recovery. */
static inline void vegas_rtt_set_state(struct vegas_rtt *r,
				       const struct cc_in *in)
{
	if (in->state == CC_CA_OPEN)
		vegas_rtt_enable(r, in);
	else
		r->is_on = 0;
}

/* cwnd_event(): after a pause the path may be another one. */
static inline u32 vegas_rtt_is_restart(const struct cc_in *in)
{
	return in->event == CC_EVENT_CWND_RESTART ||
	       in->event == CC_EVENT_TX_START;
}

/* pkts_acked() */
static inline void vegas_rtt_sample(struct vegas_rtt *r, const struct cc_in *in)
{
	u32 rtt_us;

	if (in->ack_rtt_us < 0)
		return;
	/* One more, so that it is never 0. */
	rtt_us = cc_min(cc_saturate((u64)in->ack_rtt_us + 1), VEGAS_NO_RTT);
	r->base_us = cc_min(r->base_us, rtt_us);
	r->min_us = cc_min(r->min_us, rtt_us);
	r->samples = cc_add_saturate(r->samples, 1);
}

/* Has this ACK ended the round? Begins the next, but keeps its samples. */
static inline u32 vegas_rtt_round_ends(struct vegas_rtt *r,
				       const struct cc_in *in)
{
	if (!cc_after(in->snd_una, r->round_end_seq))
		return 0;
	r->round_end_seq = in->snd_nxt;
	return 1;
}

/* What the queue holds of `cwnd`, were it over `per_us`. Segments. */
static inline u32 vegas_rtt_queued(const struct vegas_rtt *r, u32 cwnd,
				   u32 per_us)
{
	u32 queue_us = r->min_us > r->base_us ? r->min_us - r->base_us : 0;

	return cc_saturate(cc_div((u64)cwnd * queue_us, per_us));
}

#endif
