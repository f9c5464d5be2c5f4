/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * YeAH - fast while the path is empty, Reno when it is not.
 *
 * Two modes, by the estimated queue. With a short queue the window grows as
 * Scalable TCP does, 1 % per round trip. With a long one it grows as Reno
 * does, and before the queue overflows YeAH takes out what it believes to have
 * put there ("precautionary decongestion"), though never below the window that
 * a Reno flow in its place would have, so that it is not starved by one.
 *
 * Equations (w = snd_cwnd, rtt = smallest of the round, base = smallest ever)
 *	Q = w (rtt - base) / rtt		packets in the queue
 *	slow mode when Q > alpha or rtt - base > base / phy
 *	decongestion at Q > alpha:  w = max(w - min(Q / gamma, w / 2), w_reno)
 *	loss, Reno flows absent:  w -= max(min(Q, w / 2), w / 8); else w / 2
 *	w_reno: half the window when slow mode begins, then + 1 per round trip
 *
 * Source: Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed
 *	TCP", PFLDnet 2007; Linux 6.12 net/ipv4/tcp_yeah.c.
 *
 * Differs from source:
 *	- Linux and this file count an ACK that ends slow start on to avoidance.
 *	- The paper's phy compares rtt / base with 1 + 1/phy; the same.
 */
#include "vegas_rtt.h"

/* Packets acked per segment of growth in fast mode: 1 % (Scalable TCP). */
#define YEAH_SCALABLE_AI_CNT 100u
/* Linux keeps products with 128 inside 32 bits. */
#define YEAH_MAX_CWND (CC_U32_MAX / 128)
/* Slow rounds are counted no further than this. */
#define YEAH_MAX_SLOW_ROUNDS 0xffffffu

/* clang-format off */
#define YEAH_PARAMS(P)                                                         \
	P(alpha, 80, 1, 100000, "segments",                                    \
	  "queue that ends fast mode; Linux: 80")                              \
	P(gamma, 1, 1, 100, "",                                                \
	  "decongestion takes 1/gamma of the queue out; Linux: 1")             \
	P(delta, 3, 1, 31, "",                                                 \
	  "least cut at a loss: 1/2^delta of the window; Linux: 3")            \
	P(epsilon, 1, 1, 31, "",                                               \
	  "most that decongestion takes: 1/2^epsilon of the window; Linux: 1") \
	P(phy, 8, 1, 1000, "",                                                 \
	  "queueing delay of 1/phy of the base RTT ends fast mode; Linux: 8")  \
	P(rho, 16, 1, 10000, "rounds",                                         \
	  "slow rounds after which Reno flows are there: halve; Linux: 16")    \
	P(zeta, 50, 1, 10000, "rounds",                                        \
	  "fast rounds after which they are gone; Linux: 50")
/* clang-format on */

struct yeah {
	CC_PARAM_FIELDS(YEAH_PARAMS)

	struct vegas_rtt rtt;
	u32 last_queue;	 /* Q of the last round, segments */
	u32 slow_rounds; /* rounds in slow mode without a fast one between */
	u32 fast_rounds; /* fast rounds since the last loss */
	u32 reno_cwnd;	 /* w_reno, segments */
};

static void yeah_init(struct yeah *s, const struct cc_in *in,
		      struct cc_out *out)
{
	(void)out;
	vegas_rtt_init(&s->rtt, in);
	s->slow_rounds = 0;
	s->reno_cwnd = CC_MIN_SSTHRESH;
}

static void yeah_ssthresh(struct yeah *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;
	u32 cut = cc_max(cwnd >> 1, 2);

	(void)in;
	if (s->slow_rounds < s->rho)
		cut = cc_max(cc_min(s->last_queue, cut), cwnd >> s->delta);
	s->fast_rounds = 0;
	s->reno_cwnd = cc_max(s->reno_cwnd >> 1, 2);
	out->ret = cc_max(cwnd > cut ? cwnd - cut : 0, CC_MIN_SSTHRESH);
}

static void yeah_slow_round(struct yeah *s, struct cc_out *out, u32 queue)
{
	u32 cwnd = out->snd_cwnd;

	if (queue > s->alpha && cwnd > s->reno_cwnd) {
		u32 cut = cc_min((u32)cc_div(queue, s->gamma),
				 cwnd >> s->epsilon);

		out->snd_cwnd = cc_max(cwnd - cut, s->reno_cwnd);
		out->snd_ssthresh = out->snd_cwnd;
	}
	if (s->reno_cwnd <= 2)
		s->reno_cwnd = cc_max(out->snd_cwnd >> 1, 2);
	else
		s->reno_cwnd = cc_add_saturate(s->reno_cwnd, 1);
	s->slow_rounds = cc_min(s->slow_rounds + 1, YEAH_MAX_SLOW_ROUNDS);
}

static void yeah_fast_round(struct yeah *s)
{
	s->fast_rounds = cc_add_saturate(s->fast_rounds, 1);
	if (s->fast_rounds > s->zeta) {
		s->reno_cwnd = 2;
		s->fast_rounds = 0;
	}
	s->slow_rounds = 0;
}

static void yeah_round(struct yeah *s, struct cc_out *out)
{
	u32 queue_us = s->rtt.min_us - s->rtt.base_us;
	u32 queue = vegas_rtt_queued(&s->rtt, out->snd_cwnd, s->rtt.min_us);

	if (queue > s->alpha || queue_us > cc_div(s->rtt.base_us, s->phy))
		yeah_slow_round(s, out, queue);
	else
		yeah_fast_round(s);
	s->last_queue = queue;
}

static void yeah_grow(const struct yeah *s, const struct cc_in *in,
		      struct cc_out *out)
{
	u32 acked = in->acked;

	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	if (s->slow_rounds)
		cc_cong_avoid_ai(in, out, out->snd_cwnd, acked);
	else
		cc_cong_avoid_ai(in, out,
				 cc_min(out->snd_cwnd, YEAH_SCALABLE_AI_CNT),
				 acked);
}

static void yeah_cong_avoid(struct yeah *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (!cc_is_cwnd_limited(in, out))
		return;
	yeah_grow(s, in, out);
	out->snd_cwnd = cc_min(out->snd_cwnd, YEAH_MAX_CWND);
	if (!vegas_rtt_round_ends(&s->rtt, in))
		return;
	if (s->rtt.samples >= VEGAS_MIN_SAMPLES)
		yeah_round(s, out);
	cc_set_cwnd(in, out, out->snd_cwnd);
	vegas_rtt_new_round(&s->rtt);
}

static void yeah_undo_cwnd(struct yeah *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void yeah_set_state(struct yeah *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)out;
	vegas_rtt_set_state(&s->rtt, in);
}

static void yeah_cwnd_event(struct yeah *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	if (vegas_rtt_is_restart(in))
		vegas_rtt_init(&s->rtt, in);
}

static void yeah_pkts_acked(struct yeah *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	vegas_rtt_sample(&s->rtt, in);
}

/* clang-format off */
#define YEAH_OPS(OP)                                                           \
	OP(yeah, init)                                                         \
	OP(yeah, ssthresh)                                                     \
	OP(yeah, cong_avoid)                                                   \
	OP(yeah, undo_cwnd)                                                    \
	OP(yeah, set_state)                                                    \
	OP(yeah, cwnd_event)                                                   \
	OP(yeah, pkts_acked)

CC_ALGORITHM(yeah, struct yeah, YEAH_PARAMS, YEAH_OPS, 0,
	.summary = "grows by 1 % per round trip on a short queue, as Reno on a long one",
	.source = "Baiocchi, Castellani, Vacirca, PFLDnet 2007; Linux 6.12 tcp_yeah.c",
	.use_when = "fast long paths shared with Reno, where queues should stay short",
	.year = 2007)
/* clang-format on */
