/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr1_burst.h - how long the bursts are in which the stack sends at a pacing
 * rate, and the room that BBR version 1 leaves for them.
 *
 * Equations
 *	burst = rate / 1024 s, at least min_tso, at most one skb	segments
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c and tcp_tso_autosize() of
 *	tcp_output.c.
 */
#ifndef KNEE_BBR1_BURST_H
#define KNEE_BBR1_BURST_H

#include "bbr_model.h"

/* Below 1.2 Mbit/s a burst of one segment, else two. bytes/s. */
#define BBR1_MIN_TSO_RATE (1200000u / 8)
/* Longest burst. Segments. */
#define BBR1_TSO_MAX_SEGS 127u
static u32 bbr1_min_tso(u64 pacing_rate)
{
	return pacing_rate < BBR1_MIN_TSO_RATE ? 1 : 2;
}

/* Segments of the burst that the stack will send at this pacing rate. */
static u32 bbr1_tso_goal(u64 pacing_rate, u32 mss_bytes)
{
	u64 bytes =
		cc_min64(pacing_rate >> BBR_PACING_SHIFT, BBR_TSO_MAX_BYTES);
	u32 segs = (u32)cc_div(bytes, mss_bytes);

	return cc_min(cc_max(segs, bbr1_min_tso(pacing_rate)),
		      BBR1_TSO_MAX_SEGS);
}

/* Room for whole bursts at both ends, and for ACKs of two segments each. */
static u32 bbr1_with_bursts(u32 cwnd, u32 burst)
{
	return (cwnd + BBR_QUANTUM_BURSTS * burst + 1) & ~1u;
}

#endif
