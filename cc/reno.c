/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Reno - additive increase, multiplicative decrease.
 *
 * Every other window-based algorithm is measured against this one. Probe for
 * room by one segment per round trip; take a loss as the sign that the queue
 * overflowed, and halve. It needs no clock and keeps no state, and therefore
 * needs long to fill a path of large bandwidth-delay product: after a loss at
 * a window of W it takes W/2 round trips to come back. HyStart++ (hystartpp.h)
 * may end its first slow start.
 *
 * Equations (w = snd_cwnd, segments)
 *	slow start, w < ssthresh:	w += acked
 *	congestion avoidance:		w += acked / w
 *	loss:				ssthresh = max(beta w, 2), beta = 1/2
 *	mean window, loss rate p:	w = sqrt(3/2 / p) = 1.22 / sqrt(p)
 *
 * Source: RFC 5681 section 3.1 (slow start, congestion avoidance, decrease);
 *	Linux 6.12 net/ipv4/tcp_cong.c for rounding and units. Recovery itself
 *	(RFC 6582, RFC 6675, PRR) is the stack's, not this file's.
 *
 * Differs from source:
 *	- RFC 5681 (4) halves FlightSize; Linux and this file halve snd_cwnd.
 *	- RFC 5681 (3) grows per ACK; Linux and this file grow per packet
 *	  acked, so delayed ACKs do not slow the growth.
 *	- RFC 5681 lets the window grow always; it grows here only while it is
 *	  what limits sending (RFC 7661 in spirit, Linux in detail).
 *	From Linux nothing: equal after each of a million ACKs of Linux 6.18,
 *	replayed (docs/replay.md).
 */
#include "cc_algorithm.h"
#include "hystartpp.h"

#define RENO_BETA_SCALE 1024u

/* clang-format off */
#define RENO_PARAMS(P)                                                         \
	P(beta, 512, 1, 1023, "1/1024",                                        \
	  "window kept at a loss; 512 is the half of RFC 5681 section 3.1 (4)") \
	P(hystart, 0, 0, 1, "",                                                \
	  "early end of the first slow start by HyStart++ (RFC 9406); Linux: 0")
/* clang-format on */

struct reno {
	CC_PARAM_FIELDS(RENO_PARAMS)

	struct hystartpp hystartpp;
};

static void reno_init(struct reno *s, const struct cc_in *in,
		      struct cc_out *out)
{
	(void)out;
	hystartpp_reset(&s->hystartpp, in);
}

static void reno_ssthresh(struct reno *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)in;
	out->ret = cc_max((u32)((u64)out->snd_cwnd * s->beta / RENO_BETA_SCALE),
			  CC_MIN_SSTHRESH);
}

static void reno_cong_avoid(struct reno *s, const struct cc_in *in,
			    struct cc_out *out)
{
	u32 acked = in->acked;

	if (s->hystart && cc_is_cwnd_limited(in, out))
		acked = hystartpp_growth(&s->hystartpp, in, out, acked);
	cc_reno_cong_avoid(in, out, acked);
}

static void reno_undo_cwnd(struct reno *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void reno_pkts_acked(struct reno *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (s->hystart)
		hystartpp_sample(&s->hystartpp, in, out);
}

/* clang-format off */
#define RENO_OPS(OP)                                                           \
	OP(reno, init)                                                         \
	OP(reno, ssthresh)                                                     \
	OP(reno, cong_avoid)                                                   \
	OP(reno, undo_cwnd)                                                    \
	OP(reno, pkts_acked)

CC_ALGORITHM(reno, struct reno, RENO_PARAMS, RENO_OPS, 0,
	.summary = "one segment more per round trip, half the window at a loss",
	.source = "RFC 5681 section 3.1; Linux 6.12 tcp_cong.c",
	.use_when = "as the yardstick: short paths, small windows, fairness tests",
	.year = 1990)
/* clang-format on */
