/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * LP - TCP Low Priority: take what others leave, and yield before a loss.
 *
 * Of a round trip only the way there is the sender's queue. TCP's timestamps
 * tell how long it took, but for the offset between two clocks. Once the
 * smoothed one-way delay has risen by a part of what it was seen to rise at
 * most, somebody else wants the path: LP halves its window at once, then waits
 * for three round trips, in which the next such sign makes the window one.
 *
 * Equations (owd = rcv_tsval - rcv_tsecr in ms, min and max since the last sign)
 *	sowd  = 7/8 sowd + 1/8 owd
 *	sign:   sowd >= min + 0.15 (max - min)
 *	        then w = w / 2, or 1 during the inference of the last sign;
 *	        min = sowd, max = 2 sowd
 *	inference = 3 RTT after a sign, without growth
 *	else as Reno
 *
 *	        sign: w / 2                       3 RTT without a sign
 *	GROW ----------------> INFERENCE (no growth) ------------------> GROW
 *	                         |   ^
 *	                         +---+ sign: w = 1
 *
 * Source: Kuzmanovic and Knightly, "TCP-LP: A Distributed Algorithm for Low
 *	Priority Data Transfer", IEEE INFOCOM 2003, section III; Linux 6.12
 *	net/ipv4/tcp_lp.c.
 *
 * Differs from source:
 *	- Paper: max is the largest delay, and only a sign begins an inference.
 *	  Linux takes for max the largest but one, and starts anew from sowd at
 *	  every sign. So here.
 *	- The estimate of the other end's clock rate is Linux', which keeps no
 *	  fraction: any sample below it takes one off, and only one higher by 64
 *	  adds. Where it comes above 1000 Hz the delay loses the remote part
 *	  altogether (1000 / rate is 0). Both as in Linux.
 *	- By default Linux adds a random offset to the other end's clock. The
 *	  delay is then the offset, but for a trifle, and sowd of 32 bits cannot
 *	  hold it: from 2^29 ms on no sign is ever seen, and LP is Reno, as
 *	  measured in Linux 6.12. So here and in the simulator. It yields where
 *	  the other end has net.ipv4.tcp_timestamps = 2, which adds none.
 */
#include "cc_algorithm.h"

/* Our timestamps count ms. Hz. */
#define LP_TS_HZ 1000u
/* Weight of a new clock rate: 1/64; of a new delay: 1/8. */
#define LP_RATE_SHIFT 6
#define LP_DELAY_SHIFT 3

/* clang-format off */
#define LP_PARAMS(P)                                                           \
	P(threshold, 15, 1, 99, "%",                                           \
	  "rise of the delay over its range that is a sign; the paper, section III.B: 0.15") \
	P(inference, 3, 0, 100, "rounds",                                      \
	  "time without growth after a sign; the paper, section III.C: 3 RTT")
/* clang-format on */

struct lp {
	CC_PARAM_FIELDS(LP_PARAMS)

	u32 sowd_q3;	  /* smoothed one-way delay, 1/8 ms; 0: none yet */
	u32 owd_min_ms;	  /* smallest since the last sign; ~0: none yet */
	u32 owd_max_ms;	  /* largest but one */
	u32 owd_top_ms;	  /* largest */
	u32 remote_hz;	  /* rate of the other end's clock; 0: not known */
	u32 prior_tsval;  /* of the last RTT sample, the other end's unit */
	u32 prior_tsecr;  /* and our echo, ms */
	u32 last_sign_ms; /* time of the last sign; 0: none */
	u32 inference_ms; /* length of an inference */
	u32 is_inferring; /* 0 or 1: within the inference of the last sign */
};

static u32 lp_now_ms(const struct cc_in *in)
{
	return (u32)(in->now_us / CC_USEC_PER_MSEC);
}

static void lp_estimate_remote_hz(struct lp *s, const struct cc_in *in)
{
	u32 remote = in->rcv_tsval - s->prior_tsval;
	u32 local = in->rcv_tsecr - s->prior_tsecr;

	if (s->prior_tsval && s->prior_tsecr && remote && local) {
		u64 hz = LP_TS_HZ * remote / local;
		u64 scaled = (u64)s->remote_hz << LP_RATE_SHIFT;

		if (scaled)
			scaled += hz - s->remote_hz;
		else
			scaled = hz << LP_RATE_SHIFT;
		s->remote_hz = (u32)(scaled >> LP_RATE_SHIFT);
	}
	s->prior_tsval = in->rcv_tsval;
	s->prior_tsecr = in->rcv_tsecr;
}

/* The one-way delay, ms, with whatever offset the clocks have; 0: not known. */
static u32 lp_owd_ms(struct lp *s, const struct cc_in *in)
{
	lp_estimate_remote_hz(s, in);
	if (!s->remote_hz)
		return 0;
	return in->rcv_tsval * (LP_TS_HZ / s->remote_hz) - in->rcv_tsecr;
}

static void lp_sample(struct lp *s, const struct cc_in *in)
{
	u32 owd_ms = lp_owd_ms(s, in);

	if (!owd_ms)
		return;
	s->owd_min_ms = cc_min(s->owd_min_ms, owd_ms);
	/* The top may be a stray: the largest is the one below. */
	if (owd_ms > s->owd_top_ms) {
		s->owd_max_ms = s->owd_top_ms ? s->owd_top_ms : owd_ms;
		s->owd_top_ms = owd_ms;
	} else {
		s->owd_max_ms = cc_max(s->owd_max_ms, owd_ms);
	}
	if (s->sowd_q3)
		s->sowd_q3 += owd_ms - (s->sowd_q3 >> LP_DELAY_SHIFT);
	else
		s->sowd_q3 = owd_ms << LP_DELAY_SHIFT;
}

static u32 lp_sees_sign(const struct lp *s)
{
	u32 range_ms = s->owd_max_ms - s->owd_min_ms;

	return s->sowd_q3 >> LP_DELAY_SHIFT >=
	       s->owd_min_ms + s->threshold * range_ms / 100;
}

static void lp_init(struct lp *s, const struct cc_in *in, struct cc_out *out)
{
	(void)in;
	(void)out;
	s->sowd_q3 = 0;
	s->owd_min_ms = CC_U32_MAX;
	s->owd_max_ms = 0;
	s->owd_top_ms = 0;
	s->remote_hz = 0;
	s->prior_tsval = 0;
	s->prior_tsecr = 0;
	s->last_sign_ms = 0;
	s->inference_ms = 0;
	s->is_inferring = 0;
}

static void lp_ssthresh(struct lp *s, const struct cc_in *in,
			struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_reno_ssthresh(out);
}

static void lp_cong_avoid(struct lp *s, const struct cc_in *in,
			  struct cc_out *out)
{
	if (!s->is_inferring)
		cc_reno_cong_avoid(in, out, in->acked);
}

static void lp_undo_cwnd(struct lp *s, const struct cc_in *in,
			 struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void lp_pkts_acked(struct lp *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 now_ms = lp_now_ms(in);
	u32 rtt_ms = now_ms - in->rcv_tsecr;

	if (in->ack_rtt_us > 0)
		lp_sample(s, in);
	if ((s32)rtt_ms > 0)
		s->inference_ms = s->inference * rtt_ms;
	s->is_inferring =
		s->last_sign_ms && now_ms - s->last_sign_ms < s->inference_ms;
	if (!lp_sees_sign(s))
		return;

	s->owd_min_ms = s->sowd_q3 >> LP_DELAY_SHIFT;
	s->owd_max_ms = s->sowd_q3 >> (LP_DELAY_SHIFT - 1);
	s->owd_top_ms = s->owd_max_ms;
	out->snd_cwnd = s->is_inferring ? 1 : cc_max(out->snd_cwnd / 2, 1);
	s->last_sign_ms = now_ms;
}

/* clang-format off */
#define LP_OPS(OP)                                                             \
	OP(lp, init)                                                           \
	OP(lp, ssthresh)                                                       \
	OP(lp, cong_avoid)                                                     \
	OP(lp, undo_cwnd)                                                      \
	OP(lp, pkts_acked)

CC_ALGORITHM(lp, struct lp, LP_PARAMS, LP_OPS, 0,
	.summary = "low priority: halves, then stops, as soon as the one-way delay rises",
	.source = "Kuzmanovic and Knightly, INFOCOM 2003; Linux 6.12 tcp_lp.c",
	.use_when = "background transfers to hosts with tcp_timestamps = 2, on paths above 10 ms; else it is Reno",
	.year = 2003)
/* clang-format on */
