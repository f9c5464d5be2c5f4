/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Veno - Reno that asks Vegas why a packet was lost.
 *
 * On a wireless path many losses are not the queue's. Veno estimates, as Vegas
 * does, how many of its packets stand in the queue. When they are few, a loss
 * is taken for a random one and costs a fifth of the window instead of half;
 * when they are many, the window also grows at half the pace, so that it stays
 * longer where the path is full.
 *
 * Equations (w = snd_cwnd, rtt = smallest of the ACK, base = smallest ever)
 *	N = w - w base / rtt		packets in the queue
 *	avoidance:  N < beta: w += 1 per RTT; else w += 1 in every second RTT
 *	loss:	    N < beta: ssthresh = 4/5 w; else ssthresh = w / 2
 *
 * Source: Fu and Liew, "TCP Veno: TCP Enhancement for Transmission Over
 *	Wireless Access Networks", IEEE JSAC 21(2), 2003, section III; Linux
 *	6.12 net/ipv4/tcp_veno.c.
 *
 * Differs from source:
 *	- The paper takes the mean RTT of a round; Linux and this file the
 *	  smallest RTT since the last ACK.
 *	- Linux means to want three RTT samples per round, but never forgets
 *	  their number: after the first three, Veno is always at work. So here.
 *	- In Linux the handshake is a sample of the end that connects alone; here
 *	  of both ends.
 */
#include "vegas_rtt.h"

/* N is counted in half packets (Linux). */
#define VENO_SCALE 2u
#define VENO_MIN_CWND 2u

/* clang-format off */
#define VENO_PARAMS(P)                                                         \
	P(beta, 3, 0, 1000, "segments",                                        \
	  "fewer than these in the queue: the path is not full; the paper, section III.A: 3")
/* clang-format on */

struct veno {
	CC_PARAM_FIELDS(VENO_PARAMS)

	struct vegas_rtt rtt;
	u32 queued;	/* N of the last ACK, half segments */
	u32 is_my_turn; /* 0 or 1: grow in this round trip, or in the next */
};

static void veno_restart(struct veno *s)
{
	s->rtt.base_us = VEGAS_NO_RTT;
	s->rtt.min_us = VEGAS_NO_RTT;
	s->rtt.is_on = 1;
	s->is_my_turn = 1;
}

/* The handshake's RTT counts as a sample, though it is not kept (Linux). */
static void veno_init(struct veno *s, const struct cc_in *in,
		      struct cc_out *out)
{
	(void)out;
	s->rtt.samples = in->srtt_us != 0;
	veno_restart(s);
}

static void veno_ssthresh(struct veno *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)in;
	if (s->queued < s->beta * VENO_SCALE)
		out->ret = cc_max((u32)((u64)out->snd_cwnd * 4 / 5),
				  CC_MIN_SSTHRESH);
	else
		out->ret = cc_reno_ssthresh(out);
}

/* One segment in every second window of ACKs. */
static void veno_grow_slowly(struct veno *s, const struct cc_in *in,
			     struct cc_out *out, u32 acked)
{
	if (out->snd_cwnd_cnt < out->snd_cwnd) {
		out->snd_cwnd_cnt = cc_add_saturate(out->snd_cwnd_cnt, acked);
		return;
	}
	out->snd_cwnd_cnt = 0;
	if (s->is_my_turn && out->snd_cwnd < in->snd_cwnd_clamp) {
		out->snd_cwnd = cc_add_saturate(out->snd_cwnd, 1);
		s->is_my_turn = 0;
	} else {
		s->is_my_turn = 1;
	}
}

static void veno_avoid(struct veno *s, const struct cc_in *in,
		       struct cc_out *out)
{
	u64 cwnd = (u64)out->snd_cwnd * VENO_SCALE;
	u64 target = cc_div(cwnd * s->rtt.base_us, s->rtt.min_us);
	u32 acked = in->acked;

	s->queued = cc_saturate(cwnd > target ? cwnd - target : 0);
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	if (s->queued < s->beta * VENO_SCALE)
		cc_cong_avoid_ai(in, out, out->snd_cwnd, acked);
	else
		veno_grow_slowly(s, in, out, acked);
}

static void veno_cong_avoid(struct veno *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (!s->rtt.is_on) {
		cc_reno_cong_avoid(in, out, in->acked);
		return;
	}
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (s->rtt.samples < VEGAS_MIN_SAMPLES) {
		cc_reno_cong_avoid(in, out, in->acked);
	} else {
		veno_avoid(s, in, out);
		cc_set_cwnd(in, out, cc_max(out->snd_cwnd, VENO_MIN_CWND));
	}
	s->rtt.min_us = VEGAS_NO_RTT;
}

static void veno_undo_cwnd(struct veno *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void veno_set_state(struct veno *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)out;
	s->rtt.is_on = in->state == CC_CA_OPEN;
	if (s->rtt.is_on)
		s->rtt.min_us = VEGAS_NO_RTT;
}

static void veno_cwnd_event(struct veno *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	if (vegas_rtt_is_restart(in))
		veno_restart(s);
}

static void veno_pkts_acked(struct veno *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	vegas_rtt_sample(&s->rtt, in);
}

/* clang-format off */
#define VENO_OPS(OP)                                                           \
	OP(veno, init)                                                         \
	OP(veno, ssthresh)                                                     \
	OP(veno, cong_avoid)                                                   \
	OP(veno, undo_cwnd)                                                    \
	OP(veno, set_state)                                                    \
	OP(veno, cwnd_event)                                                   \
	OP(veno, pkts_acked)

CC_ALGORITHM(veno, struct veno, VENO_PARAMS, VENO_OPS, 0,
	.summary = "Reno that loses a fifth instead of half when the queue was short",
	.source = "Fu and Liew, IEEE JSAC 21(2) 2003; Linux 6.12 tcp_veno.c",
	.use_when = "wireless paths with light random loss, beside Reno",
	.year = 2003)
/* clang-format on */
