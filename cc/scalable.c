/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Scalable TCP - the window grows in proportion to itself.
 *
 * Reno adds one segment per round trip whatever the window, so that coming
 * back from a loss takes longer the larger the window is. Scalable adds a
 * share of the window per round trip, and gives up an eighth at a loss: the
 * time between losses is the same number of round trips at every rate. The
 * price is that flows of unequal windows do not converge to equal ones.
 * Below 100 segments it grows as Reno does.
 *
 * Equations (w = snd_cwnd, segments)
 *	slow start, w < ssthresh:	w += acked
 *	congestion avoidance:		w += acked / min(w, 100)
 *	loss:				ssthresh = max(w - w / 8, 2)
 *	round trips between losses:	ln(8/7) / ln(1.01) = 13.4
 *	mean window, loss rate p:	w = 0.075 / p
 *
 * The last line: from 7/8 W to W by 1 % per round trip 100 W / 8 packets are
 * acked, so 1 / p = 12.5 W; the mean window is (W / 8) / ln(8/7) = 0.936 W.
 * Kelly's steady state, without that mean, is a / (b p) = 0.08 / p.
 *
 * Source: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area
 *	Networks", CCR 33(2), 2003, section 3; Linux 6.12
 *	net/ipv4/tcp_scalable.c for rounding and the Reno region.
 *
 * Differs from source:
 *	- Kelly adds 0.01 segment per ACK; Linux and this file add it per packet
 *	  acked (since 5.7; before, 0.02 per ACK), so delayed ACKs do not matter.
 *	- Kelly leaves the window below a threshold to the old algorithm, growth
 *	  and decrease; Linux and this file take Reno's growth below 100 segments
 *	  but give up an eighth at every window.
 *	From Linux nothing.
 */
#include "cc_algorithm.h"

/* clang-format off */
#define SCALABLE_PARAMS(P)                                                     \
	P(ai_cnt, 100, 1, 65535, "segments",                                   \
	  "most acked packets per segment of growth; Kelly 2003: 1 / 0.01")      \
	P(md_shift, 3, 1, 16, "",                                              \
	  "a loss takes the window / 2^md_shift; Kelly 2003: b = 1/8")
/* clang-format on */

struct scalable {
	CC_PARAM_FIELDS(SCALABLE_PARAMS)
};

static void scalable_ssthresh(struct scalable *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;

	(void)in;
	out->ret = cc_max(cwnd - (cwnd >> (s->md_shift & 31)), CC_MIN_SSTHRESH);
}

static void scalable_cong_avoid(struct scalable *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 acked = in->acked;

	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	cc_cong_avoid_ai(in, out, cc_min(out->snd_cwnd, s->ai_cnt), acked);
}

static void scalable_undo_cwnd(struct scalable *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* clang-format off */
#define SCALABLE_OPS(OP)                                                       \
	OP(scalable, ssthresh)                                                 \
	OP(scalable, cong_avoid)                                               \
	OP(scalable, undo_cwnd)

CC_ALGORITHM(scalable, struct scalable, SCALABLE_PARAMS, SCALABLE_OPS, 0,
	.summary = "one percent more per round trip, an eighth less at a loss",
	.source = "Kelly, CCR 33(2) 2003; Linux 6.12 tcp_scalable.c",
	.use_when = "a single flow on a long fat path; flows of it do not become fair",
	.year = 2003)
/* clang-format on */
