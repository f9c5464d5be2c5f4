/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_policer.h - does a token bucket police this path, and at what rate?
 *
 * A token bucket lets a burst through and then drops to its rate, again and
 * again. Sampling waits for the first loss (the bucket is empty) and an
 * interval ends with a loss (empty again), so its mean is the token rate.
 * Two intervals in a row that agree are a policer: their mean stands for the
 * bandwidth from then on, until it expires and the path is probed anew.
 *
 * Equations
 *	interval: 4 to 16 rounds, lost / delivered >= 20 %
 *	bw       = delivered / (end - begin), clocks in ms
 *	agree    : |bw - bw'| <= bw' / 8, or <= 4 kbit/s
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c, "long-term" bandwidth sampling
 *	(bbr_lt_bw_sampling() and what it calls).
 *
 * Differs from source:
 *	- Comparisons use 64 bits where Linux uses 32, so they do not overflow
 *	  above 12 Gbit/s.
 */
#ifndef KNEE_BBR_POLICER_H
#define KNEE_BBR_POLICER_H

#include "bbr_model.h"

/* Rounds of an interval: enough to see a mean, not so many as to see two. */
#define BBR_POLICER_MIN_ROUNDS 4u
#define BBR_POLICER_MAX_ROUNDS (4 * BBR_POLICER_MIN_ROUNDS)
/* 50/256 = 20 % of what is delivered is lost as well. */
#define BBR_POLICER_LOSS_THRESH 50u
/* Intervals agree within 1/8, or within 4 kbit/s (bytes/s). */
#define BBR_POLICER_BW_RATIO (BBR_UNIT / 8)
#define BBR_POLICER_BW_DIFF (4000u / 8)
/* A rate found is used for 48 rounds. */
#define BBR_POLICER_USE_ROUNDS 48u

struct bbr_policer {
	u32 is_sampling;    /* 0 or 1 */
	u32 use_bw;	    /* 0 or 1: bw stands for the path's bandwidth */
	u32 rounds;	    /* of the interval, or of using bw */
	u32 bw;		    /* segments/us << 24; 0: none */
	u32 last_delivered; /* in->delivered when the interval began */
	u32 last_lost;	    /* in->lost when the interval began */
	u32 last_stamp_ms;  /* time when the interval began, ms, wraps */
};

/* What an ACK, or a timeout, shows a policer. */
struct bbr_policer_ack {
	u64 delivered_mstamp_us; /* tp->delivered_mstamp */
	u32 losses;		 /* newly marked lost, segments */
	u32 round_start;	 /* 0 or 1 */
	u32 is_app_limited;	 /* 0 or 1 */
	u32 margin_pct;		 /* of the pacing rate */
};

static u32 bbr_policer_ms(u64 mstamp_us)
{
	return (u32)(mstamp_us / CC_USEC_PER_MSEC);
}

static void bbr_policer_new_interval(struct bbr_policer *p,
				     const struct cc_in *in, u64 mstamp_us)
{
	p->last_stamp_ms = bbr_policer_ms(mstamp_us);
	p->last_delivered = in->delivered;
	p->last_lost = in->lost;
	p->rounds = 0;
}

/* Forgets the rate and waits for a loss. */
static void bbr_policer_reset(struct bbr_policer *p, const struct cc_in *in,
			      u64 mstamp_us)
{
	p->bw = 0;
	p->use_bw = 0;
	p->is_sampling = 0;
	bbr_policer_new_interval(p, in, mstamp_us);
}

/* A round with the rate in use has begun: was it the last? */
static u32 bbr_policer_expires(struct bbr_policer *p)
{
	return ++p->rounds >= BBR_POLICER_USE_ROUNDS;
}

static u32 bbr_policer_agrees(const struct bbr_policer *p,
			      const struct cc_in *in, u32 bw, u32 margin_pct)
{
	u32 diff = bw > p->bw ? bw - p->bw : p->bw - bw;

	if (!p->bw)
		return 0;
	return (u64)diff * BBR_UNIT <= (u64)p->bw * BBR_POLICER_BW_RATIO ||
	       bbr_bytes_per_sec(diff, BBR_UNIT, in->mss_bytes, margin_pct) <=
		       BBR_POLICER_BW_DIFF;
}

/* While no rate is in use. Returns 1 when this ACK found one. */
static u32 bbr_policer_sample(struct bbr_policer *p, const struct cc_in *in,
			      const struct bbr_policer_ack *ack)
{
	u32 lost, delivered, ms, bw;

	if (!p->is_sampling) {
		if (!ack->losses)
			return 0;
		bbr_policer_new_interval(p, in, ack->delivered_mstamp_us);
		p->is_sampling = 1;
	}
	if (ack->is_app_limited) {
		bbr_policer_reset(p, in, ack->delivered_mstamp_us);
		return 0;
	}
	if (ack->round_start)
		p->rounds++;
	if (p->rounds < BBR_POLICER_MIN_ROUNDS)
		return 0;
	if (p->rounds > BBR_POLICER_MAX_ROUNDS) {
		bbr_policer_reset(p, in, ack->delivered_mstamp_us);
		return 0;
	}
	if (!ack->losses)
		return 0;

	lost = in->lost - p->last_lost;
	delivered = in->delivered - p->last_delivered;
	if (!delivered || ((u64)lost << BBR_UNIT_SHIFT) <
				  (u64)delivered * BBR_POLICER_LOSS_THRESH)
		return 0;

	ms = bbr_policer_ms(ack->delivered_mstamp_us) - p->last_stamp_ms;
	if ((s32)ms < 1)
		return 0;
	if (ms >= CC_U32_MAX / CC_USEC_PER_MSEC) {
		bbr_policer_reset(p, in, ack->delivered_mstamp_us);
		return 0;
	}
	bw = (u32)cc_div((u64)delivered << BBR_BW_SHIFT, ms * CC_USEC_PER_MSEC);
	if (bbr_policer_agrees(p, in, bw, ack->margin_pct)) {
		p->bw = (u32)(((u64)bw + p->bw) >> 1);
		p->use_bw = 1;
		p->rounds = 0;
		return 1;
	}
	p->bw = bw;
	bbr_policer_new_interval(p, in, ack->delivered_mstamp_us);
	return 0;
}

#endif
