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
#define BBR_DFLT_STARTUP_PACING_GAIN 739
#define BBR_DFLT_STARTUP_CWND_GAIN 739
#define BBR_DFLT_DRAIN_ROUNDS 0
#define BBR_DFLT_DOWN_GAIN 192
#define BBR_DFLT_UP_CWND_GAIN 512
#define BBR_DFLT_FULL_LOSS_COUNT 8
#include "bbr_rev.h"

/* ---- marks and losses --------------------------------------------------- */

static void bbr_rev_adapt_lower_bounds(struct bbr_rev *s,
				       const struct cc_out *out)
{
	u32 marked = BBR_REV_UNSET;

	/* A probe means to overrun. */
	if (bbr_rev_is_probing(s))
		return;
	if (s->ecn_in_round && s->ecn_factor) {
		u32 cut = (s->ecn_alpha * s->ecn_factor) >> BBR_UNIT_SHIFT;

		bbr_rev_init_inflight_lo(s, out);
		marked = bbr_rev_less(s->inflight_lo, cut);
		if (s->bw_lo == BBR_REV_UNSET)
			s->bw_lo = bbr_rev_max_bw(s);
		s->bw_lo = bbr_rev_less(s->bw_lo, cut);
	}
	if (s->loss_in_round)
		bbr_rev_cut_for_loss(s, out);
	s->inflight_lo = cc_min(s->inflight_lo, marked);
	s->bw_lo = cc_max(s->bw_lo, 1);
}

static void bbr_rev_note_loss(struct bbr_rev *s, const struct cc_in *in)
{
	bbr_rev_begin_loss_round(s, in);
}

static u32 bbr_rev_startup_inflight_hi(const struct bbr_rev *s, u32 bdp)
{
	(void)s;
	return bdp;
}

/* Marks that cease are no reason to probe. */
static u32 bbr_rev_probe_after_marks(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
	return 0;
}

/* ---- has the probe filled the pipe? ------------------------------------- */

/* STARTUP only, and once per round: the filtered bandwidth. */
static void bbr_rev_check_full_bw(struct bbr_rev *s, const struct cc_in *in)
{
	u32 bw = bbr_rev_max_bw(s);

	if (s->full_bw_reached || !s->round.start || in->rs_is_app_limited)
		return;
	if (bw >= bbr_rev_full_bw_goal(s)) {
		bbr_rev_reset_full_bw(s);
		s->full_bw = bw;
		return;
	}
	s->full_bw_now = bbr_rev_count_full_round(s);
}

/* Only what is acked without a pause counts toward inflight_hi. */
static void bbr_rev_keep_credit(struct bbr_rev *s)
{
	s->up_acks = 0;
}

/* A queue of a quarter bdp, held for a round trip. */
static u32 bbr_rev_pipe_is_full(struct bbr_rev *s, const struct cc_in *in,
				const struct cc_out *out, u32 in_net)
{
	return bbr_rev_elapsed_in_phase(s, in, s->min_rtt_us) &&
	       in_net >= bbr_rev_inflight(s, in, out, bbr_rev_max_bw(s),
					  s->up_gain);
}

/* ---- recovery ----------------------------------------------------------- */

static void bbr_rev_note_recovery(struct bbr_rev *s)
{
	bbr_rev_save_bounds(s);
}

/* What the loss broke off stays so. */
static void bbr_rev_note_undo(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
}

static void bbr_rev_note_state(struct bbr_rev *s, const struct cc_in *in,
			       const struct cc_out *out)
{
	(void)s;
	(void)in;
	(void)out;
}

/* ---- ops ---------------------------------------------------------------- */

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
