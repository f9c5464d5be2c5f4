/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * BBR version 3 - version 1's model, and what losses and marks say of it.
 *
 * Version 1 took no loss for a signal and overran shallow buffers without end.
 * Version 3 probes for bandwidth only every few seconds, sees by the loss rate
 * of the flight that the probe sent whether it was too much, and remembers how
 * much was not. Between the probes it leaves room to others, and gives way a
 * little in every round with loss.
 *
 * Equations (bw in segments/us, gains dimensionless, windows in segments)
 *	bw          = min(max of 2 cycles of delivered / interval, bw_lo)
 *	min_rtt     = min over 10 s of the RTT, looked at anew every 5 s
 *	bdp         = ceil(bw min_rtt)
 *	pacing      = pacing_gain bw mss 0.99
 *	cwnd        = cwnd_gain bdp + extra_acked, at least 3 TSO bursts, at most
 *		      inflight_hi (0.85 of it while cruising) and inflight_lo
 *	too much:     lost / in flight > 2 % in the flight of a probe, then
 *		      inflight_hi = that flight up to where it became too much
 *	round with loss, not probing:  bw_lo, inflight_lo *= 0.7, but no less
 *		      than what the round delivered
 *
 *	         bw grows < 25 % in 3 rounds, or 6 ACKs with loss and > 2 %
 *	STARTUP ------------------------------> DRAIN ---in flight <= bdp--.
 *	 2.77                                   0.34    or after 3 rounds  |
 *	                                                                   v
 *	    .--2 to 3 s, or 63 rounds--- CRUISE <--drained--------------- DOWN
 *	    v                             1.0                             0.91
 *	  REFILL ----------1 round----------> UP --too much, no growth, ---^
 *	   1.0                               1.25  or at inflight_hi
 *	(PROBE_RTT, half a bdp for 200 ms, is entered from every state.)
 *
 * Source: draft-ietf-ccwg-bbr-05, "BBR Congestion Control"; google/bbr, branch
 *	v3, net/ipv4/tcp_bbr.c, for constants, order, rounding, and all that
 *	the draft leaves open.
 *
 * Differs from source:
 *	- Where the stack does not tell of each packet what was in flight and
 *	  lost (stock Linux), both are rebuilt (bbr_tx.h), and losses of one ACK
 *	  are judged together. The parameter `approximate` does so everywhere.
 *	- DRAIN paces at google's 0.34 (drain_gain; the draft: 0.5) and ends
 *	  after the draft's 3 rounds at the latest (drain_rounds; google: never).
 *	- The draft's return to the probe that a spurious loss ended is here,
 *	  google's file lacks it. The bounds to return to are those from before
 *	  the first mark: google saves them later, when a mark may have cut them.
 *	- An ACK of a tail loss probe begins a new round of maxima here; google
 *	  keeps the old ones.
 *	- google's fast path for application-limited flows saves time, not
 *	  behaviour; it is left out. So are PLB and fast ACKs of the receiver.
 *	- CE marks are used when `ecn` says that they are those of a shallow
 *	  threshold; google asks the route. DCTCP-like feedback of the receiver
 *	  is not this file's.
 */
#define BBR_REVISION 3
#define BBR_DFLT_STARTUP_PACING_GAIN 710
#define BBR_DFLT_STARTUP_CWND_GAIN 512
#define BBR_DFLT_DRAIN_ROUNDS 3
#define BBR_DFLT_DOWN_GAIN 232
#define BBR_DFLT_UP_CWND_GAIN 576
#define BBR_DFLT_FULL_LOSS_COUNT 6
#include "bbr_rev.h"

#define bbr3_init bbr_rev_init
#define bbr3_ssthresh bbr_rev_ssthresh
#define bbr3_cong_control bbr_rev_cong_control
#define bbr3_undo_cwnd bbr_rev_undo_cwnd
#define bbr3_set_state bbr_rev_set_state
#define bbr3_cwnd_event bbr_rev_cwnd_event
#define bbr3_min_tso_segs bbr_rev_min_tso_segs
#define bbr3_sndbuf_expand bbr_rev_sndbuf_expand
#define bbr3_skb_marked_lost bbr_rev_skb_marked_lost
#define bbr3_get_info bbr_rev_get_info

/* clang-format off */
#define BBR3_OPS(OP)                                                           \
	OP(bbr3, init)                                                         \
	OP(bbr3, ssthresh)                                                     \
	OP(bbr3, cong_control)                                                 \
	OP(bbr3, undo_cwnd)                                                    \
	OP(bbr3, set_state)                                                    \
	OP(bbr3, cwnd_event)                                                   \
	OP(bbr3, min_tso_segs)                                                 \
	OP(bbr3, sndbuf_expand)                                                \
	OP(bbr3, skb_marked_lost)

CC_GET_INFO(bbr3, struct bbr_rev, BBR_REV_PHASES)
CC_ALGORITHM(bbr3, struct bbr_rev, BBR_REV_PARAMS, BBR3_OPS, 0,
	.summary = "BBR that bounds its flight by the loss its probes caused",
	.source = "draft-ietf-ccwg-bbr-05; google/bbr v3 tcp_bbr.c",
	.use_when = "long or lossy paths shared with others, where version 1 would flood the buffer",
	.year = 2023,
	CC_HAS_INFO(bbr3))
/* clang-format on */
