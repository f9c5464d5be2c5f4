/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Illinois - loss says when to slow down, delay says how fast to speed up.
 *
 * As Reno it halves or less at a loss; but how much it adds per round trip,
 * and how much a loss takes, follow the queueing delay of the last round trip.
 * While the queue is empty it adds ten segments per round trip; as the queue
 * fills, alpha falls to a third of a segment, so the window rises steeply and
 * then flattens below the loss point. A loss without a queue, likely noise,
 * takes an eighth; one with a full queue takes half.
 *
 * Equations (w = snd_cwnd, segments; da = mean queueing delay of the last
 * round trip, dm = largest RTT - smallest RTT ever; d1 = dm / 100,
 * d2 = dm / 10, d3 = 8 dm / 10)
 *	growth	= alpha segments per round trip
 *	alpha	= 10					da <= d1
 *		= k1 / (k2 + da), which falls to 0.3 at da = dm
 *	k1	= (dm - d1) 0.3 * 10 / (10 - 0.3)
 *	k2	= (dm - d1) 0.3 / (10 - 0.3) - d1
 *	beta	= 1/8					da <= d2
 *		= 1/2					da >= d3
 *		  linear in da between
 *	loss	: ssthresh = max(w - beta w, 2)
 *	w < 15	: alpha = 1, beta = 1/2 (Reno)
 *
 *	alpha 10 |---.                 1/2 |          ,-----
 *	         |    \                    |       ,-'
 *	         |     `._                 |    ,-'
 *	     0.3 |________`----       1/8 |---'
 *	         0   d1        dm  da      0   d2     d3   da
 *
 * Source: Liu, Basar and Srikant, "TCP-Illinois: A Loss and Delay-Based
 *	Congestion Control Algorithm for High-Speed Networks", Performance
 *	Evaluation 65(6-7), 2008, section 3 (VALUETOOLS 2006); Linux 6.12
 *	net/ipv4/tcp_illinois.c for fixed point, rounds and the theta rule.
 *
 * Differs from source:
 *	- alpha_min is 38/128 = 0.297 in Linux and here, not 0.3.
 *	- The paper lets alpha return to 10 when da stays low for theta round
 *	  trips. Linux and this file count low round trips since alpha was last
 *	  10, and a high one between does not start the count anew; meanwhile
 *	  alpha keeps its value at low delay.
 *	- RTTs count as at most 3.36 s (Linux).
 *	- The largest RTT never ages, as in Linux: a single slow segment widens
 *	  the scale of delay for the rest of the connection.
 *	- What slow start leaves of an ACK, and what is over one window's worth
 *	  of credit, is dropped, as in Linux.
 *	- Linux counts a round trip's samples in 16 bits, which wrap; here 32.
 *	  Products that leave 32 bits in Linux do not here.
 */
#include "cc_algorithm.h"

/* alpha is in units of 1/128 segment; the paper's 0.3, 10, and Reno's 1. */
#define ILLINOIS_ALPHA_SHIFT 7
#define ILLINOIS_ALPHA_BASE (1u << ILLINOIS_ALPHA_SHIFT)
#define ILLINOIS_ALPHA_MIN (3 * ILLINOIS_ALPHA_BASE / 10)
#define ILLINOIS_ALPHA_MAX (10 * ILLINOIS_ALPHA_BASE)
/* beta is in units of 1/64; the paper's 1/8 and 1/2. */
#define ILLINOIS_BETA_SHIFT 6
#define ILLINOIS_BETA_MIN 8u
#define ILLINOIS_BETA_MAX 32u
#define ILLINOIS_BETA_BASE ILLINOIS_BETA_MAX
/* The paper's eta_1, eta_2, eta_3: 0.01, 0.1 and 0.8 of the largest delay. */
#define ILLINOIS_D1(dm) ((dm) / 100)
#define ILLINOIS_D2(dm) ((dm) / 10)
#define ILLINOIS_D3(dm) ((dm)*8 / 10)
/* Keeps RTT x ALPHA_MAX inside 32 bits (Linux). us. */
#define ILLINOIS_MAX_RTT_US (CC_U32_MAX / ILLINOIS_ALPHA_MAX)
/* Smallest RTT while there is none. us. */
#define ILLINOIS_NO_RTT_US 0x7fffffffu

/* clang-format off */
#define ILLINOIS_PARAMS(P)                                                     \
	P(win_thresh, 15, 0, 1000000, "segments",                              \
	  "below this window it is Reno (Linux)")                              \
	P(theta, 5, 1, 255, "rounds",                                          \
	  "round trips of low delay before alpha returns to 10 (Linux)")
/* clang-format on */

struct illinois {
	CC_PARAM_FIELDS(ILLINOIS_PARAMS)

	u64 sum_rtt_us;	 /* of the samples of this round trip */
	u32 cnt_rtt;	 /* samples in this round trip */
	u32 base_rtt_us; /* smallest RTT */
	u32 max_rtt_us;	 /* largest RTT */
	u32 end_seq;	 /* the round trip ends when this is acked */
	u32 alpha;	 /* growth per round trip, 1/128 segment */
	u32 beta;	 /* window taken at a loss, 1/64 */
	u32 acked;	 /* packets acked by the ACK cong_avoid() will see */
	u32 rtt_above;	 /* 0 or 1: the delay has been above d1 */
	u32 rtt_low;	 /* round trips below d1 since alpha was 10 */
};

static void illinois_begin_round(struct illinois *s, const struct cc_in *in)
{
	s->end_seq = in->snd_nxt;
	s->cnt_rtt = 0;
	s->sum_rtt_us = 0;
}

static u32 illinois_alpha(struct illinois *s, u32 da, u32 dm)
{
	u32 d1 = ILLINOIS_D1(dm);
	u64 rise, range;

	if (da <= d1) {
		if (!s->rtt_above)
			return ILLINOIS_ALPHA_MAX;
		/* One fast round trip alone is no empty queue. */
		s->rtt_low++;
		if (s->rtt_low < s->theta)
			return s->alpha;
		s->rtt_low = 0;
		s->rtt_above = 0;
		return ILLINOIS_ALPHA_MAX;
	}
	s->rtt_above = 1;

	/* k1 / (k2 + da), times (alpha_max - alpha_min) / alpha_min. */
	range = dm - d1;
	rise = (u64)(da - d1) * (ILLINOIS_ALPHA_MAX - ILLINOIS_ALPHA_MIN) /
	       ILLINOIS_ALPHA_MIN;
	return (u32)cc_div(range * ILLINOIS_ALPHA_MAX, range + rise);
}

static u32 illinois_beta(u32 da, u32 dm)
{
	u32 d2 = ILLINOIS_D2(dm), d3 = ILLINOIS_D3(dm);

	if (da <= d2)
		return ILLINOIS_BETA_MIN;
	if (da >= d3 || d3 <= d2)
		return ILLINOIS_BETA_MAX;
	return ILLINOIS_BETA_MIN +
	       (u32)cc_div((u64)(ILLINOIS_BETA_MAX - ILLINOIS_BETA_MIN) *
				   (da - d2),
			   d3 - d2);
}

/* Once per round trip. */
static void illinois_update(struct illinois *s, const struct cc_in *in,
			    u32 cwnd)
{
	if (cwnd < s->win_thresh) {
		s->alpha = ILLINOIS_ALPHA_BASE;
		s->beta = ILLINOIS_BETA_BASE;
	} else if (s->cnt_rtt) {
		u32 mean = (u32)cc_div(s->sum_rtt_us, s->cnt_rtt);
		u32 da = mean - s->base_rtt_us;
		u32 dm = s->max_rtt_us - s->base_rtt_us;

		s->alpha = illinois_alpha(s, da, dm);
		s->beta = illinois_beta(da, dm);
	}
	illinois_begin_round(s, in);
}

static void illinois_init(struct illinois *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)out;
	s->alpha = ILLINOIS_ALPHA_MAX;
	s->beta = ILLINOIS_BETA_BASE;
	s->base_rtt_us = ILLINOIS_NO_RTT_US;
	s->max_rtt_us = 0;
	s->acked = 0;
	s->rtt_above = 0;
	s->rtt_low = 0;
	illinois_begin_round(s, in);
}

static void illinois_ssthresh(struct illinois *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u64 cwnd = out->snd_cwnd;

	(void)in;
	out->ret = cc_max((u32)(cwnd - (cwnd * s->beta >> ILLINOIS_BETA_SHIFT)),
			  CC_MIN_SSTHRESH);
}

static void illinois_cong_avoid(struct illinois *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 delta;

	if (cc_after(in->snd_una, s->end_seq))
		illinois_update(s, in, out->snd_cwnd);
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		cc_slow_start(in, out, in->acked);
		return;
	}

	out->snd_cwnd_cnt = cc_add_saturate(out->snd_cwnd_cnt, s->acked);
	s->acked = 1;
	delta = cc_saturate((u64)out->snd_cwnd_cnt * s->alpha >>
			    ILLINOIS_ALPHA_SHIFT);
	if (delta >= out->snd_cwnd) {
		u32 n = (u32)cc_div(delta, out->snd_cwnd);

		cc_set_cwnd(in, out, cc_add_saturate(out->snd_cwnd, n));
		out->snd_cwnd_cnt = 0;
	}
}

static void illinois_undo_cwnd(struct illinois *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void illinois_set_state(struct illinois *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)out;
	if (in->state != CC_CA_LOSS)
		return;
	s->alpha = ILLINOIS_ALPHA_BASE;
	s->beta = ILLINOIS_BETA_BASE;
	s->rtt_low = 0;
	s->rtt_above = 0;
	illinois_begin_round(s, in);
}

static void illinois_pkts_acked(struct illinois *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 rtt_us;

	(void)out;
	s->acked = in->acked;
	if (in->ack_rtt_us < 0)
		return;
	rtt_us = cc_min(cc_saturate((u64)in->ack_rtt_us), ILLINOIS_MAX_RTT_US);
	s->base_rtt_us = cc_min(s->base_rtt_us, rtt_us);
	s->max_rtt_us = cc_max(s->max_rtt_us, rtt_us);
	s->cnt_rtt = cc_add_saturate(s->cnt_rtt, 1);
	s->sum_rtt_us += rtt_us;
}

/* clang-format off */
#define ILLINOIS_OPS(OP)                                                       \
	OP(illinois, init)                                                     \
	OP(illinois, ssthresh)                                                 \
	OP(illinois, cong_avoid)                                               \
	OP(illinois, undo_cwnd)                                                \
	OP(illinois, set_state)                                                \
	OP(illinois, pkts_acked)

CC_ALGORITHM(illinois, struct illinois, ILLINOIS_PARAMS, ILLINOIS_OPS, 0,
	.summary = "Reno whose increase and decrease follow the queueing delay",
	.source = "Liu, Basar, Srikant, Perf. Eval. 65 (2008); Linux 6.12 tcp_illinois.c",
	.use_when = "long fat paths with some buffer and steady RTTs",
	.year = 2006)
/* clang-format on */
