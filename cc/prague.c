/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * TCP Prague - DCTCP for the Internet: a queue of a millisecond, ECT(1).
 *
 * An L4S queue marks early and often; this sender answers each mark with as
 * little as it deserves. The window has a fraction, so that one mark in a round
 * takes off less than a segment; it grows with every unmarked packet, also
 * while it is being cut, so that there is no cycle of all and nothing; it is
 * paced, since a burst alone would be marked. Flows of short RTT behave as if
 * theirs were 25 ms, and so leave something to the others.
 *
 * Equations (W: window in segments with 20 bits of fraction)
 *	F = CE marked packets delivered / packets delivered, per round
 *	alpha = (1 - g) alpha + g F,	g = 1/16, from the first mark on
 *	each ACK: W += unmarked acked * I / W
 *		I = 1, or (srtt / 25 ms)^2 below 25 ms, after 500 rounds
 *	marks, once per round: W -= W alpha / 2
 *	loss: W = W / 2, no growth until it is repaired
 *	snd_cwnd moves by one per ACK towards W, rounded up, at least 2
 *	pacing rate = W mss / srtt, twice that in slow start
 *	in balance on a queue that marks a share p: W = 2 / p
 *
 * Source: draft-briscoe-iccrg-prague-congestion-control-04, section 2;
 *	RFC 9331 section 4 (what L4S asks of it); the Linux implementation of
 *	the L4S team, tcp_prague.c v0.6, for widths and order of steps.
 *
 * Differs from source:
 *	- Bursts: the draft limits a TSO packet to 250 us at the pacing rate.
 *	  The hook for it is not in stock Linux, whose TSO packets last 1 ms.
 *	- ECT(1) and AccECN: algorithms of the kernel may ask for them from 7.0
 *	  on, struct_ops may not. What is sent from here is ECT(0), which an L4S
 *	  queue takes for classic traffic, and up to 6.19 the feedback is that of
 *	  classic ECN, exact when the other end runs dctcp.
 *	- Without AccECN v0.6 swaps itself for Reno. This file keeps its window
 *	  and pacing, without RTT independence: one segment per round, half at
 *	  a loss.
 *	- ssthresh is set once, to the window that a cut aims at; v0.6 lets it
 *	  follow snd_cwnd down, with the same end.
 *	- A round's growth is at most that of slow start, however small W is.
 *	- v0.7 adds a mode that keeps a rate instead of a window below 4
 *	  packets, smaller packets below 1 Mbit/s and +-3 % of pacing within a
 *	  round; none of it is here.
 */
#include "cc_algorithm.h"

/* Bits of fraction of the window: a mark in a round of a thousand packets
 * still takes off hundreds of units. */
#define PRAGUE_FRAC_BITS 20
#define PRAGUE_ONE (1ull << PRAGUE_FRAC_BITS)
/* A window of any u32 of segments. */
#define PRAGUE_MAX_FRAC ((u64)CC_U32_MAX << PRAGUE_FRAC_BITS)

/* alpha has 20 bits; it is stored times 1/g, which keeps the remainders. */
#define PRAGUE_ALPHA_BITS 20
#define PRAGUE_MAX_ALPHA (1ull << PRAGUE_ALPHA_BITS)
#define PRAGUE_SHIFT_G 4 /* g = 1/16, draft section 2.4.2 */

/* Two segments, so that a delayed ACK does not wait for its timer. */
#define PRAGUE_MIN_CWND 2u
/* 100 kbit/s, the least that is paced. bytes/s. */
#define PRAGUE_MIN_RATE 12500ull
/* RTT assumed for the first pacing rate without a sample. us. */
#define PRAGUE_DEFAULT_RTT_US 1000u
/* Above it the increase is not scaled: v0.6 keeps 64 bits from overflowing. */
#define PRAGUE_MAX_SCALED_RTT_US 100000u

/* clang-format off */
#define PRAGUE_PARAMS(P)                                                       \
	P(rtt_target, 25000, 0, PRAGUE_MAX_SCALED_RTT_US, "us",                \
	  "RTT as which shorter ones behave, 0: none; draft section 2.4.4: 25 ms") \
	P(rtt_transition, 500, 0, 1000000, "rounds",                           \
	  "rounds after slow start until then; draft section 2.4.4: 500")      \
	P(alpha_on_init, 1024, 0, 1024, "1/1024",                              \
	  "alpha at the first mark; draft section 2.4.2: 1, which halves")
/* clang-format on */

struct prague {
	CC_PARAM_FIELDS(PRAGUE_PARAMS)
	u32 next_seq;	       /* snd_nxt when this round began */
	u64 frac_cwnd;	       /* W, segments << 20 */
	u64 upscaled_alpha;    /* alpha << 24: 20 bits and 1/g */
	u64 ai_per_ack;	       /* I, 1 << 20 */
	u64 alpha_mstamp_us;   /* when alpha was last updated */
	u64 cwr_mstamp_us;     /* when a mark last cut the window */
	u32 old_delivered;     /* in->delivered when this round began */
	u32 old_delivered_ce;  /* in->delivered_ce when this round began */
	u32 last_delivered_ce; /* in->delivered_ce at the last ACK */
	u32 loss_cwnd;	       /* window before the last loss, segments */
	u32 round;	       /* rounds since slow start */
	u32 saw_ce;	       /* 0 or 1: the path marks */
	u32 in_loss;	       /* 0 or 1: a loss is being repaired */
};

static u32 prague_is_rtt_independent(const struct prague *s,
				     const struct cc_in *in,
				     const struct cc_out *out)
{
	return in->ecn_mode == CC_ECN_ACCURATE && !cc_in_slow_start(out) &&
	       s->round >= s->rtt_transition;
}

/* W in whole segments, rounded up. */
static u32 prague_target_cwnd(const struct prague *s)
{
	u64 cwnd = (s->frac_cwnd + PRAGUE_ONE - 1) >> PRAGUE_FRAC_BITS;

	return cc_max(cc_saturate(cwnd), PRAGUE_MIN_CWND);
}

static void prague_set_frac(struct prague *s, u64 frac)
{
	s->frac_cwnd = cc_min64(frac, PRAGUE_MAX_FRAC);
}

static void prague_pace(const struct prague *s, const struct cc_in *in,
			struct cc_out *out)
{
	u32 srtt_us = in->srtt_us ? in->srtt_us : PRAGUE_DEFAULT_RTT_US;
	/* bytes << 20 per us, then per second: the window's 52 bits leave
	 * none for both factors at once. */
	u64 per_segment = (u64)in->mss_bytes * CC_USEC_PER_SEC / srtt_us;
	u64 whole = s->frac_cwnd >> PRAGUE_FRAC_BITS;
	u64 part = s->frac_cwnd & (PRAGUE_ONE - 1);
	u64 rate;

	per_segment = cc_min64(per_segment, CC_U32_MAX);
	rate = whole * per_segment + (part * per_segment >> PRAGUE_FRAC_BITS);
	rate = cc_max64(rate, PRAGUE_MIN_RATE);
	if (out->snd_cwnd < out->snd_ssthresh / 2 && rate <= CC_U64_MAX / 2)
		rate *= 2;
	out->pacing_rate = cc_min64(rate, in->max_pacing_rate);
}

/* What a round adds to the window: less than a segment for a short RTT. */
static void prague_scale_increase(struct prague *s, const struct cc_in *in)
{
	u64 rtt = in->srtt_us, target = s->rtt_target;

	s->ai_per_ack = PRAGUE_ONE;
	if (in->ecn_mode == CC_ECN_ACCURATE && s->round >= s->rtt_transition &&
	    rtt && rtt < target && target <= PRAGUE_MAX_SCALED_RTT_US)
		s->ai_per_ack = cc_div((rtt * rtt << PRAGUE_FRAC_BITS) +
					       target * target / 2,
				       target * target);
}

static void prague_begin_round(struct prague *s, const struct cc_in *in,
			       const struct cc_out *out)
{
	s->next_seq = in->snd_nxt;
	s->old_delivered = in->delivered;
	s->old_delivered_ce = in->delivered_ce;
	if (!cc_in_slow_start(out))
		s->round = cc_add_saturate(s->round, 1);
	prague_scale_increase(s, in);
}

static void prague_init(struct prague *s, const struct cc_in *in,
			struct cc_out *out)
{
	u64 alpha = (u64)cc_min(s->alpha_on_init, 1024)
		    << (PRAGUE_ALPHA_BITS - 10);

	s->frac_cwnd = (u64)out->snd_cwnd << PRAGUE_FRAC_BITS;
	s->upscaled_alpha = alpha << PRAGUE_SHIFT_G;
	s->alpha_mstamp_us = in->now_us;
	s->cwr_mstamp_us = 0;
	s->last_delivered_ce = in->delivered_ce;
	s->loss_cwnd = 0;
	s->round = 0;
	s->saw_ce = 0;
	s->in_loss = 0;
	prague_begin_round(s, in, out);
	out->pacing_status = CC_PACING_NEEDED;
	prague_pace(s, in, out);
}

/* Unmarked packets let the window grow, whatever became of the others. */
static void prague_grow(struct prague *s, const struct cc_in *in,
			struct cc_out *out, u32 acked)
{
	u64 increase;

	if (!acked || s->in_loss || !cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		s->frac_cwnd = (u64)out->snd_cwnd << PRAGUE_FRAC_BITS;
		if (!acked)
			return;
	}
	acked = cc_min(acked, (u32)PRAGUE_ONE);
	increase = cc_div(acked * cc_min64(s->ai_per_ack, PRAGUE_ONE)
				  << PRAGUE_FRAC_BITS,
			  s->frac_cwnd);
	increase = cc_min64(increase, (u64)acked << PRAGUE_FRAC_BITS);
	prague_set_frac(s, s->frac_cwnd + increase);
}

static void prague_step(struct prague *s, const struct cc_in *in,
			struct cc_out *out)
{
	u32 target = prague_target_cwnd(s);

	if (out->snd_cwnd == target)
		return;
	if (out->snd_cwnd > target)
		cc_set_cwnd(in, out, out->snd_cwnd - 1);
	else
		cc_set_cwnd(in, out, out->snd_cwnd + 1);
	prague_scale_increase(s, in);
}

/* A round is over, and with short RTTs also as much time as they claim. */
static void prague_update_alpha(struct prague *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 delivered = in->delivered - s->old_delivered;
	u32 delivered_ce = in->delivered_ce - s->old_delivered_ce;
	u64 alpha = s->upscaled_alpha;

	if (cc_before(in->snd_una, s->next_seq))
		return;
	if (prague_is_rtt_independent(s, in, out) &&
	    cc_elapsed(in->now_us, s->alpha_mstamp_us) < s->rtt_target)
		return;
	/* Until the first mark nothing says that this path marks at all. */
	if (s->saw_ce) {
		alpha -= alpha >> PRAGUE_SHIFT_G;
		alpha += ((u64)delivered_ce << PRAGUE_ALPHA_BITS) /
			 cc_max(delivered, 1);
		s->upscaled_alpha =
			cc_min64(alpha, PRAGUE_MAX_ALPHA << PRAGUE_SHIFT_G);
		s->alpha_mstamp_us = in->now_us;
	}
	prague_begin_round(s, in, out);
}

static void prague_cong_control(struct prague *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 marked = in->delivered_ce - s->last_delivered_ce;
	u32 acked = in->rs_acked_sacked;

	s->last_delivered_ce = in->delivered_ce;
	if (marked)
		s->saw_ce = 1;
	prague_grow(s, in, out, acked > marked ? acked - marked : 0);
	prague_step(s, in, out);
	prague_update_alpha(s, in, out);
	prague_pace(s, in, out);
}

/* The window that the steps of the next ACKs lead to ends slow start. */
static void prague_aim(const struct prague *s, struct cc_out *out)
{
	out->snd_ssthresh = prague_target_cwnd(s);
}

static void prague_enter_loss(struct prague *s, struct cc_out *out)
{
	s->loss_cwnd = out->snd_cwnd;
	s->frac_cwnd -= s->frac_cwnd >> 1;
	s->in_loss = 1;
	prague_aim(s, out);
}

static void prague_enter_cwr(struct prague *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u64 alpha =
		cc_min64(s->upscaled_alpha >> PRAGUE_SHIFT_G, PRAGUE_MAX_ALPHA);
	u64 whole = s->frac_cwnd >> PRAGUE_FRAC_BITS;
	u64 part = s->frac_cwnd & (PRAGUE_ONE - 1);

	if (prague_is_rtt_independent(s, in, out) &&
	    cc_elapsed(in->now_us, s->cwr_mstamp_us) < s->rtt_target)
		return;
	s->cwr_mstamp_us = in->now_us;
	/* W alpha / 2, rounded to nearest; alpha's scale is that of W. */
	s->frac_cwnd -=
		alpha * whole / 2 +
		((alpha * part + PRAGUE_MAX_ALPHA) >> (PRAGUE_ALPHA_BITS + 1));
	prague_aim(s, out);
}

static void prague_set_state(struct prague *s, const struct cc_in *in,
			     struct cc_out *out)
{
	if (in->state == in->ca_state)
		return;
	if (in->state == CC_CA_RECOVERY)
		prague_enter_loss(s, out);
	else if (in->state == CC_CA_CWR)
		prague_enter_cwr(s, in, out);
	else if (in->state == CC_CA_OPEN)
		s->in_loss = 0;
}

static void prague_cwnd_event(struct prague *s, const struct cc_in *in,
			      struct cc_out *out)
{
	if (in->event == CC_EVENT_LOSS)
		prague_enter_loss(s, out);
}

/* The cut is made where the state is entered, by what the cause deserves. */
static void prague_ssthresh(struct prague *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = out->snd_ssthresh;
}

static void prague_undo_cwnd(struct prague *s, const struct cc_in *in,
			     struct cc_out *out)
{
	(void)in;
	s->in_loss = 0;
	out->ret = cc_max(out->snd_cwnd, s->loss_cwnd);
	prague_set_frac(s, (u64)out->ret << PRAGUE_FRAC_BITS);
}

/* Bursts as small as the pacing rate allows. */
static void prague_min_tso_segs(struct prague *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 1;
}

/* clang-format off */
#define PRAGUE_OPS(OP)                                                         \
	OP(prague, init)                                                       \
	OP(prague, ssthresh)                                                   \
	OP(prague, cong_control)                                               \
	OP(prague, undo_cwnd)                                                  \
	OP(prague, set_state)                                                  \
	OP(prague, cwnd_event)                                                 \
	OP(prague, min_tso_segs)

CC_ALGORITHM(prague, struct prague, PRAGUE_PARAMS, PRAGUE_OPS,
	CC_FLAG_NEEDS_ECN | CC_FLAG_NEEDS_ACCECN | CC_FLAG_ECT_1,
	.summary = "DCTCP for the Internet: fractional window, paced, ECT(1)",
	.source = "draft-briscoe-iccrg-prague-congestion-control-04; tcp_prague.c v0.6",
	.use_when = "where the bottleneck has an L4S queue and delay matters most",
	.year = 2021)
/* clang-format on */
