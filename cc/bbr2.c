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
 *	marks:	      cut the bandwidth as well: bw_lo, and bw_upper when not one
 *		      flight of a probe was good; bw = min(max, bw_lo, bw_upper)
 *	an RTT equal to the lowest puts PROBE_RTT off, as a lower one does
 *
 * Source: Cardwell et al., "BBR v2: A Model-based Congestion Control", IETF
 *	104 to 106, 2019; google/bbr, branch v2alpha, net/ipv4/tcp_bbr2.c at
 *	0487ade55081, where marks cut the bandwidth. At 8d11b540f007 they do
 *	not: ecn_bw = 0.
 *
 * Differs from source:
 *	- With the inputs of docs/against.md in nothing: after each of 5,567,944
 *	  ACKs window, rate, threshold and phase are those of google's file.
 *	- Where the stack does not tell of each packet what was in flight and
 *	  lost (stock Linux), both are rebuilt (bbr_tx.h), and losses of one ACK
 *	  are judged together. The parameter `approximate` does so everywhere.
 *	- google judges a lost burst as a whole and finds the packet in it with
 *	  which the loss became too much; here each packet is judged.
 *	- CE marks are used when `ecn` says that they are those of a shallow
 *	  threshold; google's module has a switch. Fast ACKs and DCTCP-like
 *	  feedback of the receiver are not this file's.
 */
#define BBR_DFLT_STARTUP_PACING_GAIN 739
#define BBR_DFLT_STARTUP_CWND_GAIN 739
#define BBR_DFLT_DRAIN_ROUNDS 0
#define BBR_DFLT_DOWN_GAIN 192
#define BBR_DFLT_UP_CWND_GAIN 512
#define BBR_DFLT_FULL_LOSS_COUNT 8
/* An RTT equal to the lowest is as good as a lower one. */
#define BBR_DFLT_EQUAL_RTT_RENEWS 1
/* The first ACK begins a round. */
#define BBR_DFLT_FIRST_ROUND(in) 0
/* clang-format off */
#define BBR_REV_OWN_PARAMS(P)                                                  \
	P(ecn_bw, 1, 0, 1, "",                                                 \
	  "marks cut the bandwidth as well; v2alpha at 0487ade55081: 1, at 8d11b540f007: 0")
/* clang-format on */
#include "bbr_rev.h"

/* Below 1.2 Mbit/s two segments at once take too long on the wire. Bytes/s. */
#define BBR2_ONE_SEGMENT_RATE 150000u

/* ---- values ------------------------------------------------------------- */

static u32 bbr_rev_bw(const struct bbr_rev *s)
{
	return cc_min(cc_min(bbr_rev_max_bw(s), s->bw_lo), s->bw_upper);
}

static u32 bbr_rev_min_burst(const struct cc_out *out)
{
	return out->pacing_rate < BBR2_ONE_SEGMENT_RATE ? 1 : 2;
}

/* ---- marks and losses --------------------------------------------------- */

/* Marks are counted from the start, whether or not they are used. */
static void bbr_rev_update_alpha(struct bbr_rev *s, const struct cc_in *in,
				 const struct cc_out *out)
{
	u32 delivered = in->delivered - s->alpha_delivered;

	if (!s->ecn_factor || !delivered)
		return;
	bbr_rev_check_marks_are_usable(s);
	bbr_rev_smooth_alpha(s, in, out, delivered);
}

static void bbr_rev_note_marks(struct bbr_rev *s, const struct cc_in *in)
{
	(void)in;
	s->ecn_in_round = 1;
}

static u32 bbr_rev_is_marked_too_much(u32 delivered_ce, u64 most)
{
	return delivered_ce >= most;
}

/* The maxima are those of the ACKs that update the model, and begin anew in
 * the middle of it: what enters DRAIN or DOWN after that has none. */
static void bbr_rev_take_sample(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
}

static void bbr_rev_take_model_sample(struct bbr_rev *s, const struct cc_in *in)
{
	bbr_rev_update_latest(s, in);
}

static void bbr_rev_end_model_sample(struct bbr_rev *s, const struct cc_in *in)
{
	bbr_rev_begin_maxima(s, in);
}

static void bbr_rev_end_sample(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
}

/* What marks leave of x. */
static u32 bbr2_less_for_marks(const struct bbr_rev *s, u32 x)
{
	return bbr_rev_less(x,
			    (s->ecn_alpha * s->ecn_factor) >> BBR_UNIT_SHIFT);
}

/* Marks and losses each say how much; the lower counts. */
static void bbr_rev_adapt_lower_bounds(struct bbr_rev *s,
				       const struct cc_out *out)
{
	u32 marked = BBR_REV_UNSET, marked_bw = BBR_REV_UNSET;

	/* A probe means to overrun. */
	if (bbr_rev_is_probing(s))
		return;
	if (s->ecn_in_round && s->ecn_eligible && s->ecn_factor) {
		bbr_rev_init_inflight_lo(s, out);
		marked = bbr2_less_for_marks(s, s->inflight_lo);
		if (s->ecn_bw) {
			if (s->bw_lo == BBR_REV_UNSET)
				s->bw_lo = bbr_rev_max_bw(s);
			marked_bw = bbr2_less_for_marks(s, s->bw_lo);
		}
	}
	if (s->loss_in_round)
		bbr_rev_cut_for_loss(s, out);
	s->inflight_lo = cc_min(s->inflight_lo, marked);
	s->bw_lo = cc_min(s->bw_lo, marked_bw);
}

/* Not one flight of the probe was good: marks lower the bandwidth for long. */
static void bbr_rev_note_bad_probe(struct bbr_rev *s)
{
	if (!s->ecn_bw || !s->ecn_eligible || s->probe_was_good)
		return;
	if (s->bw_upper == BBR_REV_UNSET)
		s->bw_upper = bbr_rev_max_bw(s);
	s->bw_upper = bbr2_less_for_marks(s, s->bw_upper);
}

static u32 bbr_rev_note_good_flight(struct bbr_rev *s)
{
	s->probe_was_good |= s->probe_samples;
	if (s->inflight_hi == BBR_REV_UNSET && s->bw_upper == BBR_REV_UNSET)
		return 0;
	s->bw_upper = cc_max(s->bw_upper, s->sample_bw);
	return 1;
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

static void bbr_rev_note_raise(struct bbr_rev *s)
{
	(void)s;
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

/* The window from before is the one that was saved, if any was. */
static void bbr_rev_note_timeout(struct bbr_rev *s, const struct cc_out *out)
{
	(void)out;
	s->full_bw = 0;
	if (!bbr_rev_is_probing(s) && s->inflight_lo == BBR_REV_UNSET)
		s->inflight_lo = s->prior_cwnd;
}

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
			       struct cc_out *out)
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
