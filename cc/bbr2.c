/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * BBR version 2 - the first BBR that listens to loss.
 *
 * As version 3 (bbr3.c), which came of it. It drains harder after a probe, and
 * so leaves more of the path unused; it ends a probe when a queue of a quarter
 * bdp stands, whether or not the bandwidth still grows; and it starts up with
 * the gains of version 1.
 *
 * Equations (what differs from version 3)
 *	STARTUP:      pacing and cwnd gain 2.89; left after 8 ACKs with loss
 *	ProbeBW_UP:   until in flight >= 1.25 bdp for a round trip; cwnd gain 2
 *	ProbeBW_DOWN: pacing gain 0.75
 *	marks:	      cut bw_lo as well
 *
 * Source: Cardwell et al., "BBR v2: A Model-based Congestion Control", IETF
 *	104 to 106, 2019; google/bbr, branch v2alpha, net/ipv4/tcp_bbr2.c.
 *
 * Differs from source:
 *	- As bbr3.c, on what stock Linux does not tell.
 *	- google keeps bw_hi, a cap of the bandwidth beside inflight_hi; it is
 *	  left out, as in version 3.
 *	- A loss that a tail loss probe repaired counts for nothing, as in
 *	  google's file.
 */
#define BBR_REVISION 2
#define BBR_DFLT_STARTUP_PACING_GAIN 739
#define BBR_DFLT_STARTUP_CWND_GAIN 739
#define BBR_DFLT_DRAIN_ROUNDS 0
#define BBR_DFLT_DOWN_GAIN 192
#define BBR_DFLT_UP_CWND_GAIN 512
#define BBR_DFLT_FULL_LOSS_COUNT 8
#include "bbr_rev.h"

#define bbr2_init bbr_rev_init
#define bbr2_ssthresh bbr_rev_ssthresh
#define bbr2_cong_control bbr_rev_cong_control
#define bbr2_undo_cwnd bbr_rev_undo_cwnd
#define bbr2_set_state bbr_rev_set_state
#define bbr2_cwnd_event bbr_rev_cwnd_event
#define bbr2_min_tso_segs bbr_rev_min_tso_segs
#define bbr2_sndbuf_expand bbr_rev_sndbuf_expand
#define bbr2_skb_marked_lost bbr_rev_skb_marked_lost
#define bbr2_get_info bbr_rev_get_info

/* clang-format off */
#define BBR2_OPS(OP)                                                           \
	OP(bbr2, init)                                                         \
	OP(bbr2, ssthresh)                                                     \
	OP(bbr2, cong_control)                                                 \
	OP(bbr2, undo_cwnd)                                                    \
	OP(bbr2, set_state)                                                    \
	OP(bbr2, cwnd_event)                                                   \
	OP(bbr2, min_tso_segs)                                                 \
	OP(bbr2, sndbuf_expand)                                                \
	OP(bbr2, skb_marked_lost)

CC_GET_INFO(bbr2, struct bbr_rev, BBR_REV_PHASES)
CC_ALGORITHM(bbr2, struct bbr_rev, BBR_REV_PARAMS, BBR2_OPS, 0,
	.summary = "the first BBR that bounds its flight by loss and marks",
	.source = "Cardwell et al., IETF 104 to 106, 2019; google/bbr v2alpha tcp_bbr2.c",
	.use_when = "to compare with version 3, which replaced it",
	.year = 2019,
	CC_HAS_INFO(bbr2))
/* clang-format on */
