/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * hystartpp.h - HyStart++: leave the first slow start before it overshoots.
 *
 * When a round's smallest RTT rises, a queue may be growing, or it may be
 * jitter. HyStart++ does not decide at once: it goes on at a quarter of the
 * speed (conservative slow start, CSS). Falls the RTT below where CSS began,
 * the rise was jitter and slow start goes on; else CSS ends in avoidance.
 *
 * Equations (rtt: minima of a round, of at least 8 samples)
 *	enter CSS:  rtt >= rtt_last_round + clamp(rtt_last_round / 8, 4 ms, 16 ms)
 *	resume:	    rtt < rtt at which CSS began
 *	per ACK:    cwnd += min(acked, L), in CSS a quarter of that
 *	L	    8 segments, infinite when paced
 *
 *	            rtt rises            5 rounds, the first may be a part
 *	SLOW START -----------> CSS ------------------------> AVOIDANCE
 *	     ^                   |        ssthresh = cwnd
 *	     +-------------------+
 *	           rtt falls
 *
 * Source: RFC 9406 sections 4.2 and 4.3.
 *
 * Differs from source:
 *	- Bytes there are segments here; in CSS the quarters left over count
 *	  toward the next ACK.
 *	- "The initial slow start" is told by a ssthresh that is still
 *	  infinite. An undo of the first loss brings it back.
 */
#ifndef KNEE_HYSTARTPP_H
#define KNEE_HYSTARTPP_H

#include "cc_algorithm.h"

/* RFC 9406 section 4.3: MIN_RTT_THRESH, MAX_RTT_THRESH, us; */
#define HYSTARTPP_RISE_MIN_US 4000u
#define HYSTARTPP_RISE_MAX_US 16000u
/* MIN_RTT_DIVISOR, N_RTT_SAMPLE, CSS_GROWTH_DIVISOR, CSS_ROUNDS; */
#define HYSTARTPP_RISE_DIVISOR 8u
#define HYSTARTPP_MIN_SAMPLES 8u
#define HYSTARTPP_CSS_DIVISOR 4u
#define HYSTARTPP_CSS_ROUNDS 5u
/* L, the growth per ACK of a sender that nothing paces, segments. */
#define HYSTARTPP_BURST 8u

struct hystartpp {
	u32 round_end_seq;     /* the round ends when this is acked, bytes */
	u32 round_rtt_us;      /* smallest RTT of this round; ~0: none yet */
	u32 last_round_rtt_us; /* and of the round before; ~0: none */
	u32 samples;	       /* RTT samples in the round, counted to 8 */
	u32 css_rtt_us;	       /* round_rtt_us when CSS began; 0: not in CSS */
	u32 css_rounds;	       /* rounds of CSS begun */
	u32 css_credit;	       /* acked in CSS, not yet grown by, segments */
};

static void hystartpp_round(struct hystartpp *h, const struct cc_in *in)
{
	h->round_end_seq = in->snd_nxt;
	h->last_round_rtt_us = h->round_rtt_us;
	h->round_rtt_us = CC_U32_MAX;
	h->samples = 0;
}

static void hystartpp_reset(struct hystartpp *h, const struct cc_in *in)
{
	h->round_rtt_us = CC_U32_MAX;
	hystartpp_round(h, in);
	h->css_rtt_us = 0;
	h->css_rounds = 0;
	h->css_credit = 0;
}

static u32 hystartpp_is_initial(const struct cc_out *out)
{
	return cc_in_slow_start(out) &&
	       out->snd_ssthresh >= CC_INFINITE_SSTHRESH;
}

static u32 hystartpp_has_risen(const struct hystartpp *h)
{
	u32 rise = cc_clamp(h->last_round_rtt_us / HYSTARTPP_RISE_DIVISOR,
			    HYSTARTPP_RISE_MIN_US, HYSTARTPP_RISE_MAX_US);

	return h->last_round_rtt_us != CC_U32_MAX &&
	       h->round_rtt_us >= (u64)h->last_round_rtt_us + rise;
}

/* For pkts_acked(). */
static void hystartpp_sample(struct hystartpp *h, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 rtt_us;

	if (in->ack_rtt_us < 0 || !hystartpp_is_initial(out))
		return;
	if (!cc_before(in->snd_una, h->round_end_seq)) {
		hystartpp_round(h, in);
		if (h->css_rtt_us && ++h->css_rounds > HYSTARTPP_CSS_ROUNDS) {
			out->snd_ssthresh = out->snd_cwnd;
			return;
		}
	}

	/* 0 stands for "not in CSS". */
	rtt_us = cc_max(cc_saturate((u64)in->ack_rtt_us), 1);
	h->round_rtt_us = cc_min(h->round_rtt_us, rtt_us);
	if (h->samples < HYSTARTPP_MIN_SAMPLES)
		h->samples++;
	if (h->samples < HYSTARTPP_MIN_SAMPLES)
		return;
	if (!h->css_rtt_us) {
		if (!hystartpp_has_risen(h))
			return;
		h->css_rtt_us = h->round_rtt_us;
		h->css_rounds = 1;
		h->css_credit = 0;
	} else if (h->round_rtt_us < h->css_rtt_us) {
		h->css_rtt_us = 0;
	}
}

/* Of `acked` packets, those by which slow start grows. */
static u32 hystartpp_growth(struct hystartpp *h, const struct cc_in *in,
			    const struct cc_out *out, u32 acked)
{
	if (!hystartpp_is_initial(out))
		return acked;
	if (in->pacing_status == CC_PACING_NONE)
		acked = cc_min(acked, HYSTARTPP_BURST);
	if (!h->css_rtt_us)
		return acked;
	h->css_credit = cc_add_saturate(h->css_credit, acked);
	acked = h->css_credit / HYSTARTPP_CSS_DIVISOR;
	h->css_credit %= HYSTARTPP_CSS_DIVISOR;
	return acked;
}

#endif
