/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr1_model.h - what BBR version 1 knows of the path, and what follows from it:
 * rates, and how much is to be in flight. bbr1.c says what changes it.
 *
 * Included by bbr1.c only.
 *
 * Source: as bbr1.c.
 */
#ifndef KNEE_BBR1_MODEL_H
#define KNEE_BBR1_MODEL_H

#include "bbr1_burst.h"
#include "bbr_aggregation.h"
#include "bbr_full_pipe.h"
#include "bbr_min_rtt.h"
#include "bbr_model.h"
#include "bbr_policer.h"
#include "bbr_recovery.h"
#include "bbr_round.h"

/* clang-format off */
#define BBR1_PARAMS(P)                                                         \
	P(high_gain, 739, 256, 1023, "1/256",                                  \
	  "pacing and cwnd gain of STARTUP; 2/ln 2 doubles the rate per round") \
	P(cwnd_gain, 512, 256, 1023, "1/256",                                  \
	  "cwnd over bdp in PROBE_BW; 2 rides out delayed and stretched ACKs") \
	P(bw_window, 10, 2, 255, "rounds",                                     \
	  "window of the bandwidth maximum; Linux: one gain cycle and two")    \
	P(min_rtt_window, 10, 1, 3600, "s",                                    \
	  "age at which min_rtt expires and PROBE_RTT begins; the paper: 10 s") \
	P(probe_rtt_time, 200, 0, 5000, "ms",                                  \
	  "time spent in PROBE_RTT, 0: never probe; the paper: 200 ms")        \
	P(pacing_margin, 1, 0, 50, "%",                                        \
	  "share of bw not used, so that queues drain; Linux: 1")              \
	P(policer_model, 1, 0, 1, "",                                          \
	  "detect token-bucket policers and send at their rate (Linux: 1)")    \
	P(ack_aggregation, 1, 0, 1, "",                                        \
	  "cwnd on top for ACKs that come in lumps; Linux 5.1 and later: 1")    \
	P(pace_headers, 0, 0, 1, "",                                           \
	  "TCP's timer paces packets with their headers, no margin; 4.13 to 4.18: 1")
/* clang-format on */

/* tcp_mss_to_mtu(): IPv4, and TCP with timestamps. */
#define BBR1_HEADER_BYTES 52u

enum bbr1_mode {
	BBR1_STARTUP,
	BBR1_DRAIN,
	BBR1_PROBE_BW,
	BBR1_PROBE_RTT,
};

struct bbr1 {
	CC_PARAM_FIELDS(BBR1_PARAMS)

	u32 mode;	  /* enum bbr1_mode */
	u32 pacing_gain;  /* of the current mode, 1/256 */
	u32 window_gain;  /* cwnd gain of the current mode, 1/256 */
	u32 has_seen_rtt; /* 0 or 1: the pacing rate rests on a real RTT */
	u32 idle_restart; /* 0 or 1: sending again after idle, no ACK yet */
	u32 cycle_idx;	  /* phase of the gain cycle, 0 to 7 */

	struct cc_max_filter bw; /* t: rounds, v: segments/us << 24 */
	struct bbr_round round;
	struct bbr_min_rtt min_rtt;
	struct bbr_full_pipe full_pipe;
	struct bbr_policer policer;
	struct bbr_aggregation aggregation;
	struct bbr_recovery recovery;

	/* The stack's, which the contract lacks: the last ACK that delivered
	 * something, or since then the first packet sent with none out. */
	u64 delivered_mstamp_us;
	u64 cycle_mstamp_us; /* begin of the phase */
};

static u32 bbr1_max_bw(const struct bbr1 *s)
{
	return cc_max_filter_get(&s->bw);
}

static u32 bbr1_bw(const struct bbr1 *s)
{
	return s->policer.use_bw ? s->policer.bw : bbr1_max_bw(s);
}

static u64 bbr1_pacing_rate(const struct bbr1 *s, const struct cc_in *in,
			    u64 bw, u32 gain)
{
	u64 rate;

	/* fq counted headers, too, and those of Ethernet besides: what it sent
	 * was slower by what is the margin now. */
	if (s->pace_headers && in->pacing_status == CC_PACING_NEEDED)
		rate = bbr_bytes_per_sec(bw, gain,
					 in->mss_bytes + BBR1_HEADER_BYTES, 0);
	else
		rate = bbr_bytes_per_sec(bw, gain, in->mss_bytes,
					 s->pacing_margin);
	return cc_min64(rate, in->max_pacing_rate);
}

/* Segments of the burst that the stack will send. */
static u32 bbr1_burst(const struct cc_in *in, const struct cc_out *out)
{
	return bbr1_tso_goal(out->pacing_rate, in->mss_bytes);
}

static u32 bbr1_add_quantum(const struct bbr1 *s, const struct cc_in *in,
			    const struct cc_out *out, u32 cwnd)
{
	cwnd = bbr1_with_bursts(cwnd, bbr1_burst(in, out));
	/* With a small bdp 1.25 x rounds to nothing: make probing real. */
	if (s->mode == BBR1_PROBE_BW && s->cycle_idx == 0)
		cwnd += 2;
	return cwnd;
}

static u32 bbr1_inflight(const struct bbr1 *s, const struct cc_in *in,
			 const struct cc_out *out, u32 bw, u32 gain)
{
	return bbr1_add_quantum(s, in, out, bbr_bdp(bw, s->min_rtt.us, gain));
}

/* Packets that will be in the network when the next one may depart. When
 * filling, that packet's burst counts as well. */
static u32 bbr1_in_net_at_departure(const struct bbr1 *s,
				    const struct cc_in *in,
				    const struct cc_out *out, u32 inflight)
{
	u32 delivered = bbr_delivered_at_departure(in, bbr1_bw(s));

	if (s->pacing_gain > BBR_UNIT)
		inflight += bbr1_burst(in, out);
	return inflight > delivered ? inflight - delivered : 0;
}

#endif
