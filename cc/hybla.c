/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Hybla - Reno for long paths, as fast per second as Reno on a short one.
 *
 * Reno's window grows per round trip, so a satellite path of 600 ms grows 24
 * times as slowly as one of 25 ms, and its window is 24 times as slow again in
 * packets per second. Hybla grows so that the rate over a path of any RTT
 * rises as Reno's would over the reference RTT. Paths shorter than that are
 * Reno's: rho is at least 1.
 *
 * Equations (w = snd_cwnd, segments)
 *	rho = max(RTT / 25 ms, 1)
 *	slow start, w < ssthresh:	w += 2^rho - 1	per ACK
 *	congestion avoidance:		w += rho^2 / w	per ACK
 *	loss:				ssthresh = max(w / 2, 2)
 *	first window:			rho
 *	mean rate, loss rate p:		1.22 / (25 ms sqrt(p)) segments per second
 *
 * Source: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for
 *	heterogeneous networks", International Journal of Satellite
 *	Communications and Networking 22(5), 2004; Linux 6.12
 *	net/ipv4/tcp_hybla.c for fixed point and when rho is measured.
 *
 * Differs from source:
 *	- The paper takes the first ACK's RTT (or a minimum over the flow); in
 *	  Linux and here rho follows the smoothed RTT at the start, and then
 *	  every smaller one. Without an RTT at the start rho stays 1.
 *	- The paper needs pacing and packet spacing beside it; as in Linux that
 *	  is left to the stack.
 *	- Growth is per ACK event, as in Linux: delayed and stretched ACKs slow
 *	  it as much as they are stretched. Outside the state Open it is Reno's.
 *	- An increment is in whole 128ths of a segment, as in Linux, and what is
 *	  below is cut: beyond w = 128 rho^2 avoidance is Reno's, one segment per
 *	  window of ACKs.
 *	- 2^rho is of at most 2^17 segments, and its fraction is one of eight.
 *	- Linux sets snd_cwnd_clamp to 65535 segments, and thereby removes the
 *	  user's; here the smaller of the two holds.
 *	- Linux divides a smoothed RTT with 3 more bits: rho differs by 1/8 where
 *	  that is within 1 us of a step. Above an RTT of 37 s, where rho^2 leaves
 *	  32 bits in Linux, ours does not.
 */
#include "cc_algorithm.h"

/* rho is in units of 1/8, increments of the window in units of 1/128. */
#define HYBLA_RHO_SHIFT 3
#define HYBLA_RHO_ONE (1u << HYBLA_RHO_SHIFT)
#define HYBLA_SHIFT 7
#define HYBLA_ONE (1u << HYBLA_SHIFT)
/* Whole part of rho in 2^rho: keeps the increment inside 32 bits (Linux). */
#define HYBLA_MAX_EXPONENT 16u
/* Largest window (Linux). Segments. */
#define HYBLA_MAX_CWND 65535u

/* clang-format off */
#define HYBLA_PARAMS(P)                                                        \
	P(rtt0, 25, 1, 10000, "ms",                                            \
	  "RTT whose Reno is followed; Caini and Firrincieli 2004: 25 ms")
/* clang-format on */

struct hybla {
	CC_PARAM_FIELDS(HYBLA_PARAMS)

	u32 is_open;	 /* 0 or 1: neither loss nor reordering is seen */
	u32 rho_q3;	 /* rho, 1/8 */
	u32 min_srtt_us; /* smallest smoothed RTT; 0: none at the start */
	u32 credit_q7;	 /* growth below one segment, 1/128 segment */
};

/* 2^(i/8), 1/128, as Linux has them: up to 0.6 % low. */
static u32 hybla_two_to_the_eighths(u32 i)
{
	static const u32 powers[HYBLA_RHO_ONE] = { 128, 139, 152, 165,
						   181, 197, 215, 234 };

	return powers[i % HYBLA_RHO_ONE];
}

static void hybla_measure_rho(struct hybla *s, const struct cc_in *in)
{
	u64 reference_us = (u64)s->rtt0 * CC_USEC_PER_MSEC;
	u64 rho_q3 = cc_div((u64)in->srtt_us << HYBLA_RHO_SHIFT, reference_us);

	s->rho_q3 = cc_max(cc_saturate(rho_q3), HYBLA_RHO_ONE);
	s->min_srtt_us = in->srtt_us;
}

static void hybla_set_cwnd(const struct cc_in *in, struct cc_out *out, u32 cwnd)
{
	cc_set_cwnd(in, out, cc_min(cwnd, HYBLA_MAX_CWND));
}

/* 2^rho - 1, 1/128 segment. */
static u32 hybla_slow_start_q7(const struct hybla *s)
{
	u32 whole = cc_min(s->rho_q3 >> HYBLA_RHO_SHIFT, HYBLA_MAX_EXPONENT);

	return (hybla_two_to_the_eighths(s->rho_q3) << whole) - HYBLA_ONE;
}

/* rho^2 / w, 1/128 segment. */
static u32 hybla_avoidance_q7(const struct hybla *s, u32 cwnd)
{
	u64 rho_q6 = (u64)s->rho_q3 * s->rho_q3;

	return cc_saturate(
		cc_div(rho_q6 << (HYBLA_SHIFT - 2 * HYBLA_RHO_SHIFT), cwnd));
}

static void hybla_init(struct hybla *s, const struct cc_in *in,
		       struct cc_out *out)
{
	s->is_open = 1;
	s->credit_q7 = 0;
	hybla_measure_rho(s, in);
	hybla_set_cwnd(in, out, s->rho_q3 >> HYBLA_RHO_SHIFT);
}

static void hybla_ssthresh(struct hybla *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_reno_ssthresh(out);
}

static void hybla_cong_avoid(struct hybla *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 is_slow_start = cc_in_slow_start(out);
	u32 cwnd = out->snd_cwnd;
	u32 increment_q7;

	if (in->srtt_us < s->min_srtt_us)
		hybla_measure_rho(s, in);
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (!s->is_open) {
		cc_reno_cong_avoid(in, out, in->acked);
		hybla_set_cwnd(in, out, out->snd_cwnd);
		return;
	}

	if (is_slow_start) {
		increment_q7 = hybla_slow_start_q7(s);
	} else {
		increment_q7 = hybla_avoidance_q7(s, cwnd);
		if (increment_q7 < HYBLA_ONE)
			out->snd_cwnd_cnt =
				cc_add_saturate(out->snd_cwnd_cnt, 1);
	}

	cwnd = cc_add_saturate(cwnd, increment_q7 >> HYBLA_SHIFT);
	s->credit_q7 += increment_q7 % HYBLA_ONE;
	if (s->credit_q7 >= HYBLA_ONE) {
		s->credit_q7 -= HYBLA_ONE;
		cwnd = cc_add_saturate(cwnd, 1);
		out->snd_cwnd_cnt = 0;
	}
	/* Below 1/128 per ACK: one segment per window of ACKs, as Reno. */
	if (!increment_q7 && out->snd_cwnd_cnt >= cwnd) {
		cwnd = cc_add_saturate(cwnd, 1);
		out->snd_cwnd_cnt = 0;
	}
	if (is_slow_start)
		cwnd = cc_min(cwnd, out->snd_ssthresh);
	hybla_set_cwnd(in, out, cwnd);
}

static void hybla_undo_cwnd(struct hybla *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void hybla_set_state(struct hybla *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	s->is_open = in->state == CC_CA_OPEN;
}

/* clang-format off */
#define HYBLA_OPS(OP)                                                          \
	OP(hybla, init)                                                        \
	OP(hybla, ssthresh)                                                    \
	OP(hybla, cong_avoid)                                                  \
	OP(hybla, undo_cwnd)                                                   \
	OP(hybla, set_state)

CC_ALGORITHM(hybla, struct hybla, HYBLA_PARAMS, HYBLA_OPS, 0,
	.summary = "Reno that grows per second as over a path of 25 ms, at every RTT",
	.source = "Caini and Firrincieli, IJSCN 22(5) 2004; Linux 6.12 tcp_hybla.c",
	.use_when = "satellite paths, or unequal RTTs that should share equally",
	.year = 2004)
/* clang-format on */
