/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Compound - Reno's window, and one more that the delay governs.
 *
 * Two windows are added. The one is Reno's, and gives the flow what Reno would
 * have. The other, dwnd, grows fast while the RTT says that the path is empty
 * and shrinks as a queue builds up, so that in the end, with a full path, only
 * Reno's is left. A long fast path is filled like by a scalable algorithm, and
 * the flows beside are treated like by Reno.
 *
 * Equations (win = snd_cwnd = lwnd + dwnd, lwnd is Reno's share; per round)
 *	diff  = win - win base / rtt		packets in the queue
 *	lwnd += 1
 *	dwnd += max(alpha win^k - 1, 0)		diff < gamma
 *	dwnd  = max(dwnd - zeta diff, 0)	diff >= gamma
 *	loss:	lwnd /= 2, dwnd = max((1 - beta) win - lwnd / 2, 0)
 *		gamma = (1 - weight) gamma + weight 3/4 diff_reno,
 *		diff_reno = lwnd - lwnd base / rtt, of the last round
 *	alpha = 1/8, beta = 1/2, k = 3/4, zeta = 1, gamma = 5 to 30
 *
 * Source: draft-sridharan-tcpm-ctcp-02, section 3; Tan, Song, Zhang and
 *	Sridharan, "A Compound TCP Approach for High-speed and Long Distance
 *	Networks", IEEE INFOCOM 2006. Linux has no Compound.
 *
 * Differs from source:
 *	- The RTT of a round is its smallest, as with Vegas, and a round with
 *	  fewer than three samples or with losses changes nothing. The draft
 *	  takes a smoothed RTT.
 *	- The draft names no weight for gamma; here it is 0.8, as in the ns-3
 *	  model by the NITK.
 *	- After a pause that restarts the window dwnd is 0; the draft says
 *	  nothing of it.
 *	- The kernel keeps one window: what the stack takes off it (recovery,
 *	  clamp) is taken off Reno's share first.
 */
#include "vegas_rtt.h"

#define COMPOUND_BETA_SCALE 1024u
/* dwnd, gamma, alpha, zeta and the weight have 8 bits of fraction. */
#define COMPOUND_ONE 256u
/* Steps of Newton's iteration, enough for 64 bits from twice the root. */
#define COMPOUND_ROOT_STEPS 6
/* gamma aims at three quarters of the queue that Reno's share would build. */
#define COMPOUND_GAMMA_NUM 3u
#define COMPOUND_GAMMA_DEN 4u

/* clang-format off */
#define COMPOUND_PARAMS(P)                                                     \
	P(alpha, 32, 0, 256, "1/256",                                          \
	  "growth of dwnd per round over win^(3/4); the draft: 1/8")           \
	P(beta, 512, 1, 1023, "1/1024",                                        \
	  "share of the window given up at a loss; the draft: 1/2")            \
	P(zeta, 256, 0, 2560, "1/256",                                         \
	  "decrease of dwnd over the packets in the queue; the draft: 1")      \
	P(gamma_min, 5, 1, 1000, "segments",                                   \
	  "least packets in the queue that shrink dwnd; the draft: 5")         \
	P(gamma_max, 30, 1, 1000, "segments",                                  \
	  "most packets in the queue that let dwnd grow, and the first gamma; the draft: 30") \
	P(gamma_weight, 205, 0, 256, "1/256",                                  \
	  "weight of a loss in gamma, 0: fixed; the draft names none, ns-3 0.8") \
	P(low_window, 38, 2, 100000, "segments",                               \
	  "no dwnd below this window, where Reno does; the draft, as RFC 3649: 38")
/* clang-format on */

struct compound {
	CC_PARAM_FIELDS(COMPOUND_PARAMS)

	struct vegas_rtt rtt;
	u32 dwnd_q8;	   /* the delay's window, 1/256 segments */
	u32 prior_dwnd_q8; /* before the last loss, for its undo */
	u32 gamma_q8;	   /* diff above which dwnd shrinks, 1/256 segments */
	u32 diff_reno;	   /* of the last round, segments */
	u32 has_diff_reno; /* 0 or 1: since the last loss */
};

/* floor(square root of a), as cc_cube_root(). */
static u32 compound_sqrt(u64 a)
{
	u64 x;
	int i;

	if (!a)
		return 0;
	x = 1ull << ((cc_bit_length(a) + 1) / 2);
	for (i = 0; i < COMPOUND_ROOT_STEPS; i++)
		x = cc_min64(x, (x + cc_div(a, x)) / 2);
	return cc_saturate(x);
}

/* win^(3/4), 1/256: the root of win times the root of win. */
static u32 compound_pow_q8(u32 win)
{
	return compound_sqrt((u64)win * compound_sqrt((u64)win << 32));
}

static u32 compound_dwnd(const struct compound *s, const struct cc_out *out)
{
	u32 dwnd = s->dwnd_q8 / COMPOUND_ONE;

	return cc_min(dwnd, out->snd_cwnd ? out->snd_cwnd - 1 : 0);
}

static u32 compound_max_gamma_q8(const struct compound *s)
{
	return cc_max(s->gamma_min, s->gamma_max) * COMPOUND_ONE;
}

/* dwnd for the round to come. */
static u32 compound_next_dwnd_q8(const struct compound *s, u32 win, u32 diff)
{
	u64 step;

	if ((u64)diff * COMPOUND_ONE >= s->gamma_q8) {
		step = (u64)diff * s->zeta;
		return s->dwnd_q8 > step ? s->dwnd_q8 - (u32)step : 0;
	}
	if (win < s->low_window)
		return s->dwnd_q8;
	step = (u64)s->alpha * compound_pow_q8(win) / COMPOUND_ONE;
	if (step <= COMPOUND_ONE)
		return s->dwnd_q8;
	return cc_saturate(s->dwnd_q8 + step - COMPOUND_ONE);
}

static void compound_round(struct compound *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u32 win = out->snd_cwnd;
	u32 dwnd = compound_dwnd(s, out);
	u32 diff = vegas_rtt_queued(&s->rtt, win, s->rtt.min_us);
	u32 next_q8 = compound_next_dwnd_q8(s, win, diff);

	s->diff_reno = vegas_rtt_queued(&s->rtt, win - dwnd, s->rtt.min_us);
	s->has_diff_reno = 1;
	if (next_q8 > s->dwnd_q8 && win >= in->snd_cwnd_clamp)
		return;
	s->dwnd_q8 = next_q8;
	cc_set_cwnd(in, out,
		    cc_add_saturate(win - dwnd, next_q8 / COMPOUND_ONE));
	/* A window that the delay took back is not one to slow-start into. */
	out->snd_ssthresh = cc_min(out->snd_ssthresh,
				   cc_max(out->snd_cwnd, CC_MIN_SSTHRESH));
}

/* What a loss says of the room in the queue. */
static void compound_tune_gamma(struct compound *s)
{
	u64 gamma, sample;

	if (!s->has_diff_reno)
		return;
	s->has_diff_reno = 0;
	sample = (u64)s->diff_reno * COMPOUND_ONE * COMPOUND_GAMMA_NUM /
		 COMPOUND_GAMMA_DEN;
	sample = cc_min64(sample, compound_max_gamma_q8(s));
	gamma = (u64)s->gamma_q8 * (COMPOUND_ONE - s->gamma_weight) +
		sample * s->gamma_weight;
	s->gamma_q8 =
		cc_clamp((u32)(gamma / COMPOUND_ONE),
			 s->gamma_min * COMPOUND_ONE, compound_max_gamma_q8(s));
}

static void compound_init(struct compound *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)out;
	vegas_rtt_init(&s->rtt, in);
	s->dwnd_q8 = 0;
	s->prior_dwnd_q8 = 0;
	s->gamma_q8 = compound_max_gamma_q8(s);
	s->has_diff_reno = 0;
}

static void compound_ssthresh(struct compound *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u32 win = out->snd_cwnd;
	u32 lwnd = (win - compound_dwnd(s, out)) / 2;
	u32 kept = (u32)((u64)win * (COMPOUND_BETA_SCALE - s->beta) /
			 COMPOUND_BETA_SCALE);
	u32 dwnd = kept > lwnd ? kept - lwnd : 0;

	(void)in;
	compound_tune_gamma(s);
	s->prior_dwnd_q8 = s->dwnd_q8;
	s->dwnd_q8 = cc_saturate((u64)dwnd * COMPOUND_ONE);
	out->ret = cc_max(lwnd + dwnd, CC_MIN_SSTHRESH);
}

static void compound_cong_avoid(struct compound *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 may_grow = cc_is_cwnd_limited(in, out);
	u32 has_avoided = !cc_in_slow_start(out);

	cc_reno_cong_avoid(in, out, in->acked);
	if (!s->rtt.is_on || !vegas_rtt_round_ends(&s->rtt, in))
		return;
	if (may_grow && has_avoided && s->rtt.samples >= VEGAS_MIN_SAMPLES)
		compound_round(s, in, out);
	vegas_rtt_new_round(&s->rtt);
}

static void compound_undo_cwnd(struct compound *s, const struct cc_in *in,
			       struct cc_out *out)
{
	s->dwnd_q8 = cc_max(s->dwnd_q8, s->prior_dwnd_q8);
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* After a timeout nothing learned about the path is trusted. */
static void compound_set_state(struct compound *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)out;
	vegas_rtt_set_state(&s->rtt, in);
	if (in->state != CC_CA_LOSS)
		return;
	s->dwnd_q8 = 0;
	s->gamma_q8 = compound_max_gamma_q8(s);
	s->has_diff_reno = 0;
	if (in->srtt_us)
		s->rtt.base_us = cc_min(in->srtt_us, VEGAS_NO_RTT);
}

static void compound_cwnd_event(struct compound *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)out;
	if (in->event == CC_EVENT_CWND_RESTART)
		s->dwnd_q8 = 0;
}

static void compound_pkts_acked(struct compound *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)out;
	vegas_rtt_sample(&s->rtt, in);
}

/* clang-format off */
#define COMPOUND_OPS(OP)                                                       \
	OP(compound, init)                                                     \
	OP(compound, ssthresh)                                                 \
	OP(compound, cong_avoid)                                               \
	OP(compound, undo_cwnd)                                                \
	OP(compound, set_state)                                                \
	OP(compound, cwnd_event)                                               \
	OP(compound, pkts_acked)

CC_ALGORITHM(compound, struct compound, COMPOUND_PARAMS, COMPOUND_OPS, 0,
	.summary = "Reno's window plus one that the delay governs; Windows Server before CUBIC",
	.source = "draft-sridharan-tcpm-ctcp-02; Tan et al., INFOCOM 2006",
	.use_when = "long fast paths shared with Reno; to see what Windows servers did",
	.year = 2006)
/* clang-format on */
