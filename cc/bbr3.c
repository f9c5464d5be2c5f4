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
#define BBR_DFLT_STARTUP_PACING_GAIN 710
#define BBR_DFLT_STARTUP_CWND_GAIN 512
#define BBR_DFLT_DRAIN_ROUNDS 3
#define BBR_DFLT_DOWN_GAIN 232
#define BBR_DFLT_UP_CWND_GAIN 576
#define BBR_DFLT_FULL_LOSS_COUNT 6
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
	}
	if (s->loss_in_round)
		bbr_rev_cut_for_loss(s, out);
	s->inflight_lo = cc_min(s->inflight_lo, marked);
	s->bw_lo = cc_max(s->bw_lo, 1);
}

/* Once per recovery, before it changes anything. */
static void bbr3_save_bounds(struct bbr_rev *s)
{
	if (!s->undo_is_saved)
		bbr_rev_save_bounds(s);
}

/* Packets are marked before the stack enters recovery, and a mark may end the
 * probe. */
static void bbr_rev_note_loss(struct bbr_rev *s, const struct cc_in *in)
{
	bbr3_save_bounds(s);
	bbr_rev_begin_loss_round(s, in);
}

static u32 bbr_rev_startup_inflight_hi(const struct bbr_rev *s, u32 bdp)
{
	return cc_max(bdp, s->inflight_latest);
}

/* Marks have ceased, and nothing was lost: others may have left. */
static u32 bbr_rev_probe_after_marks(struct bbr_rev *s, const struct cc_in *in)
{
	u32 bits = cc_bit_length(s->inflight_hi / 2);

	if (!s->ecn_eligible || !s->ecn_in_cycle || s->loss_in_cycle ||
	    in->ca_state != CC_CA_OPEN)
		return 0;
	bbr_rev_start_refill(s, in, cc_max(bits, 1) - 1);
	return 1;
}

/* ---- has the probe filled the pipe? ------------------------------------- */

/* In STARTUP and in UP, at every sample. */
static void bbr_rev_check_full_bw(struct bbr_rev *s, const struct cc_in *in)
{
	if (s->full_bw_now || in->rs_is_app_limited)
		return;
	if (s->sample_bw >= bbr_rev_full_bw_goal(s)) {
		bbr_rev_reset_full_bw(s);
		s->full_bw = s->sample_bw;
		return;
	}
	if (s->round.start)
		s->full_bw_now = bbr_rev_count_full_round(s);
}

/* They count when the window limits sending again. */
static void bbr_rev_keep_credit(struct bbr_rev *s)
{
	(void)s;
}

static u32 bbr_rev_pipe_is_full(struct bbr_rev *s, const struct cc_in *in,
				const struct cc_out *out, u32 in_net)
{
	(void)in_net;
	if (in->is_cwnd_limited && out->snd_cwnd >= s->inflight_hi) {
		/* Our own bound keeps the bandwidth from growing. */
		bbr_rev_reset_full_bw(s);
		s->full_bw = s->sample_bw;
		return 0;
	}
	return s->full_bw_now;
}

/* ---- recovery ----------------------------------------------------------- */

static void bbr_rev_note_recovery(struct bbr_rev *s)
{
	bbr3_save_bounds(s);
}

/* What the loss broke off begins anew, when PROBE_RTT is not in the way. */
static void bbr_rev_note_undo(struct bbr_rev *s, const struct cc_in *in)
{
	if (s->undo_probe == BBR_REV_UNDO_STARTUP &&
	    s->mode != BBR_REV_STARTUP) {
		s->full_bw_reached = 0;
		s->loss_acks_in_round = 0;
		if (s->mode != BBR_REV_PROBE_RTT)
			s->mode = BBR_REV_STARTUP;
	} else if (s->undo_probe == BBR_REV_UNDO_UP &&
		   s->mode == BBR_REV_PROBE_BW && s->phase != BBR_REV_UP) {
		bbr_rev_start_refill(s, in, 0);
	}
	s->undo_probe = BBR_REV_UNDO_NONE;
}

/*
 * A tail loss probe repaired a loss of one segment. Linux tells it by entering
 * CWR and leaving it in the same ACK; Google's kernels by an event.
 */
static void bbr3_tlp_repaired(struct bbr_rev *s, const struct cc_in *in,
			      const struct cc_out *out)
{
	struct bbr_rev_flight f = { cc_add_saturate(s->inflight_latest, 1), 1,
				    0, 0, in->app_limited != 0 };

	bbr_rev_note_loss(s, in);
	if (s->probe_samples && bbr_rev_too_high(s, &f))
		bbr_rev_handle_too_high(s, in, out, f.tx_in_flight,
					f.is_app_limited);
}

static void bbr_rev_note_state(struct bbr_rev *s, const struct cc_in *in,
			       const struct cc_out *out)
{
	if (s->tlp_may_repair && in->state < CC_CA_CWR)
		bbr3_tlp_repaired(s, in, out);
	s->tlp_may_repair = in->state == CC_CA_CWR;
}

/* ---- ops ---------------------------------------------------------------- */

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
