/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * NV (New Vegas) - Vegas for data centers, where RTTs are short and ACKs lumpy.
 *
 * With no queue, rate and window are proportional: a window that carries less
 * than its rate times the least RTT stands in a queue. NV measures the rate as
 * what an ACK's packet had in flight over its RTT, takes the best of many ACKs,
 * and judges only when it has enough of them: interrupt moderation and segment
 * offload make single measurements worthless. The least RTT is forgotten every
 * few seconds, at random times, so that flows learn it in each other's pauses.
 *
 * Equations (w = snd_cwnd; rate in bytes/us over a round of ACKs)
 *	rate    = max of in flight / RTT, the RTT smoothed by 1/2
 *	max_win = rate min_rtt / mss + pad
 *	w > max_win:		   ssthresh = max_win, w -= max(30 % of the gap, 2)
 *	w <= max_win - pad_buffer: grow, as Reno or slower after timeouts
 *	loss:			   ssthresh = 0.8 w
 *
 * Source: L. Brakmo, "TCP-NV: An Update to TCP-Vegas", 2010; Linux 6.12
 *	net/ipv4/tcp_nv.c for all of it.
 *
 * Differs from source:
 *	- Linux counts the rate in 100 bit/s; the same here, for its rounding.
 *	- A base RTT that a sock_ops program may give is not there.
 *	- Linux' growth rate above Reno's is off by default, and left out.
 */
#include "cc_algorithm.h"

#define NV_NO_RTT CC_U32_MAX
/* Per byte and us, in 100 bit/s. */
#define NV_RATE_UNIT 80000u
/* Windows that are too small to judge by grow by this, up to a bound. */
#define NV_LEAST_WINDOW 4u
#define NV_LEAST_WINDOW_STEP 2u
#define NV_LEAST_WINDOW_MAX 81u
/* ACKs before a judgment: down, up, and out of slow start. */
#define NV_CALLS_DOWN 60u
#define NV_CALLS_UP 20u
#define NV_CALLS_SSTHRESH 30u
#define NV_CALLS_MAX 255u
/* Round trips before one, and after which growth stops without one. */
#define NV_MIN_ROUNDS 2u
#define NV_STOP_ROUNDS 10u
/* Judgments without congestion that undo one step of slower growth. */
#define NV_CALM_JUDGMENTS 8u
#define NV_SLOWEST 8u
/* min_rtt is first forgotten after this. s. */
#define NV_FIRST_RESET_SEC 2u

/* clang-format off */
#define NV_PARAMS(P)                                                           \
	P(pad, 10, 0, 10000, "segments",                                       \
	  "allowed in the queue; Linux: 10")                                   \
	P(pad_buffer, 2, 0, 10000, "segments",                                 \
	  "below the pad by as much the window grows; Linux: 2")               \
	P(reset_period, 5, 1, 3600, "s",                                       \
	  "after 0.75 to 1.25 of it min_rtt is forgotten; Linux: 5")           \
	P(loss_keep, 819, 1, 1023, "1/1024",                                   \
	  "window kept at a loss; Linux: 0.8")                                 \
	P(cong_dec, 38, 1, 128, "1/128",                                       \
	  "share of the gap given up; Linux: 30 %")
/* clang-format on */

struct nv {
	CC_PARAM_FIELDS(NV_PARAMS)

	u32 may_grow;	     /* 0 or 1 */
	u32 must_reset;	     /* 0 or 1: at the end of recovery */
	u32 slowness;	     /* growth is Reno's over 2^this */
	u32 calls;	     /* ACKs since the last judgment, to 255 */
	u32 rounds;	     /* round trips since then */
	u32 least_window;    /* below it nothing is judged, segments */
	u32 last_rtt_us;     /* smoothed; 0: none */
	u32 min_rtt_us;	     /* in use */
	u32 next_min_rtt_us; /* of the period under way */
	u32 reset_at;	     /* jiffies */
	u32 max_rate;	     /* since the last judgment, 100 bit/s */
	u32 round_end_seq;   /* a round trip ends when this is acked */
	u32 last_una;	     /* snd_una of the last ACK */
	u32 calm;	     /* judgments without congestion in a row */
};

static void nv_reset(struct nv *s, const struct cc_in *in)
{
	s->must_reset = 0;
	s->calm = 0;
	s->rounds = 0;
	s->last_rtt_us = 0;
	s->max_rate = 0;
	s->round_end_seq = in->snd_una;
	s->calls = 0;
	s->last_una = in->snd_una;
}

static void nv_init(struct nv *s, const struct cc_in *in, struct cc_out *out)
{
	(void)out;
	nv_reset(s, in);
	s->may_grow = 1;
	s->slowness = 0;
	s->reset_at = in->jiffies + NV_FIRST_RESET_SEC * in->hz;
	s->min_rtt_us = NV_NO_RTT;
	s->next_min_rtt_us = NV_NO_RTT;
	s->least_window = NV_LEAST_WINDOW;
}

static void nv_ssthresh(struct nv *s, const struct cc_in *in,
			struct cc_out *out)
{
	(void)in;
	out->ret = cc_max((u32)(((u64)out->snd_cwnd * s->loss_keep) >> 10),
			  CC_MIN_SSTHRESH);
}

static void nv_cong_avoid(struct nv *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 acked = in->acked;
	u64 w;

	if (!cc_is_cwnd_limited(in, out) || !s->may_grow)
		return;
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	w = (u64)out->snd_cwnd << cc_min(s->slowness, NV_SLOWEST);
	cc_cong_avoid_ai(in, out, cc_max(cc_saturate(w), 4), acked);
}

static void nv_undo_cwnd(struct nv *s, const struct cc_in *in,
			 struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void nv_set_state(struct nv *s, const struct cc_in *in,
			 struct cc_out *out)
{
	(void)out;
	if (in->state == CC_CA_OPEN && s->must_reset) {
		nv_reset(s, in);
		return;
	}
	if (in->state < CC_CA_CWR)
		return;
	s->must_reset = 1;
	s->may_grow = 0;
	if (in->state == CC_CA_LOSS)
		s->slowness = cc_min(s->slowness + 1, NV_SLOWEST);
}

/* The smoothed RTT, and the rate that this ACK shows. */
static void nv_measure(struct nv *s, const struct cc_in *in)
{
	u32 rtt_us = cc_saturate((u64)in->ack_rtt_us);
	u64 rate;

	if (s->last_rtt_us)
		rtt_us = (u32)(((u64)rtt_us + s->last_rtt_us) / 2);
	else
		s->min_rtt_us = rtt_us << 1;
	s->last_rtt_us = rtt_us;
	rate = cc_div((u64)in->ack_in_flight_bytes * NV_RATE_UNIT,
		      cc_max(rtt_us, 1));
	s->max_rate = cc_max(s->max_rate, (u32)rate);
	s->calls = cc_min(s->calls + 1, NV_CALLS_MAX);
	s->min_rtt_us = cc_min(s->min_rtt_us, rtt_us);
	s->next_min_rtt_us = cc_min(s->next_min_rtt_us, rtt_us);
}

static void nv_forget_min_rtt(struct nv *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u64 period = (u64)s->reset_period * in->hz;

	if (cc_before(in->jiffies, s->reset_at))
		return;
	s->min_rtt_us = s->next_min_rtt_us;
	s->next_min_rtt_us = NV_NO_RTT;
	/* 384 to 639 of 512. */
	s->reset_at =
		in->jiffies +
		(u32)((period * (384 + (cc_random(in, out) & 0xff))) >> 9);
	s->least_window = cc_max(s->least_window / 2, NV_LEAST_WINDOW);
}

/* One ACK in a whole round trip: lumps hide the path from so small a window. */
static u32 nv_is_too_small(struct nv *s, const struct cc_in *in,
			   u32 acked_bytes)
{
	if (s->calls != 1 || s->least_window >= NV_LEAST_WINDOW_MAX ||
	    acked_bytes < (u64)(s->least_window - 1) * in->mss_bytes)
		return 0;
	s->least_window = cc_min(s->least_window + NV_LEAST_WINDOW_STEP,
				 NV_LEAST_WINDOW_MAX);
	s->round_end_seq = in->snd_nxt + s->least_window * in->mss_bytes;
	s->calls = 0;
	s->may_grow = 1;
	return 1;
}

/* Returns 1 when the congestion was acted on. */
static u32 nv_congested(struct nv *s, struct cc_out *out, u32 max_win)
{
	u32 gap = out->snd_cwnd - max_win;

	if (s->rounds < NV_MIN_ROUNDS)
		return 0;
	if (out->snd_ssthresh == CC_INFINITE_SSTHRESH) {
		if (s->calls < NV_CALLS_SSTHRESH)
			return 0;
	} else if (s->calls < NV_CALLS_DOWN) {
		if (s->rounds > NV_STOP_ROUNDS)
			s->may_grow = 0;
		return 0;
	}
	s->may_grow = 0;
	out->snd_ssthresh = max_win;
	if (gap > 2)
		out->snd_cwnd -=
			cc_max((u32)(((u64)gap * s->cong_dec) >> 7), 2);
	else
		out->snd_cwnd = max_win;
	s->calm = 0;
	return 1;
}

static u32 nv_calm(struct nv *s)
{
	if (s->calls < NV_CALLS_UP)
		return 0;
	s->may_grow = 1;
	s->calm = cc_add_saturate(s->calm, 1);
	if (s->slowness && s->calm > NV_CALM_JUDGMENTS) {
		s->slowness--;
		s->calm = 0;
	}
	return 1;
}

static void nv_judge(struct nv *s, const struct cc_in *in, struct cc_out *out)
{
	u64 window = cc_div((u64)s->max_rate * s->min_rtt_us,
			    (u64)NV_RATE_UNIT * in->mss_bytes);
	u32 max_win = cc_saturate(window + s->pad);
	u32 done;

	if (out->snd_cwnd > max_win)
		done = nv_congested(s, out, max_win);
	else if (max_win >= s->pad_buffer &&
		 out->snd_cwnd <= max_win - s->pad_buffer)
		done = nv_calm(s);
	else
		return;
	if (!done)
		return;
	s->calls = 0;
	s->rounds = 0;
	s->max_rate = 0;
	out->snd_cwnd = cc_max(out->snd_cwnd, CC_MIN_SSTHRESH);
}

static void nv_pkts_acked(struct nv *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 acked_bytes = in->snd_una - s->last_una;

	if (in->ack_rtt_us < 0 || in->ca_state > CC_CA_DISORDER)
		return;
	s->last_una = in->snd_una;
	if (!in->ack_in_flight_bytes)
		return;
	nv_measure(s, in);
	nv_forget_min_rtt(s, in, out);
	if (!cc_before(s->round_end_seq, in->snd_una))
		return;
	s->round_end_seq = in->snd_nxt;
	s->rounds = cc_min(s->rounds + 1, NV_CALLS_MAX);
	if (!nv_is_too_small(s, in, acked_bytes))
		nv_judge(s, in, out);
}

/* clang-format off */
#define NV_OPS(OP)                                                             \
	OP(nv, init)                                                           \
	OP(nv, ssthresh)                                                       \
	OP(nv, cong_avoid)                                                     \
	OP(nv, undo_cwnd)                                                      \
	OP(nv, set_state)                                                      \
	OP(nv, pkts_acked)

CC_ALGORITHM(nv, struct nv, NV_PARAMS, NV_OPS, 0,
	.summary = "Vegas that judges by the best rate of many ACKs; for data centers",
	.source = "Brakmo, TCP-NV, 2010; Linux 6.12 tcp_nv.c",
	.use_when = "short fast paths within a data center, where every sender runs it",
	.year = 2010)
/* clang-format on */
