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
 *	v3, net/ipv4/tcp_bbr.c at 001a430b3ddb, for constants, order, rounding,
 *	and all that the draft leaves open.
 *
 * Differs from source:
 *	- A share below is that of the ACKs of docs/against.md after which window,
 *	  rate, threshold or phase are then others than those of google's file.
 *	- DRAIN paces at google's 0.34 (drain_gain; the draft: 0.5) and ends
 *	  after the draft's 3 rounds at the latest (drain_rounds; google: never,
 *	  0). None of the ACKs.
 *	- The draft's return to the probe that a spurious loss ended is here,
 *	  google's file lacks it (resume_probe = 0): STARTUP goes on, and a
 *	  ProbeBW_UP begins anew with REFILL. The bounds to return to are those
 *	  from before the first mark: google saves them later, when a mark may
 *	  have cut them. 2.4 % of the ACKs.
 *	- Linux tells of a loss that a tail loss probe repaired by entering CWR
 *	  and leaving it in one ACK, google's kernels by an event; whether the
 *	  application was the limit is asked then, by google when the probe is
 *	  sent. That an ACK is of such a probe is seen by a retransmission that
 *	  is acked outside of recovery. 0.001 % of the ACKs.
 *	- Where the stack does not tell of each packet what was in flight and
 *	  lost (stock Linux), both are rebuilt (bbr_tx.h), and losses of one ACK
 *	  are judged together. The parameter `approximate` does so everywhere.
 *	- google judges a lost burst as a whole and finds the packet in it with
 *	  which the loss became too much; here each packet is judged.
 *	- CE marks are used when `ecn` says that they are those of a shallow
 *	  threshold; google asks the route. PLB, fast ACKs and DCTCP-like
 *	  feedback of the receiver are not this file's.
 *	- google's fast path changes what an application-limited flow does, by
 *	  skipping samples; fast_path = 0 takes them all.
 */
#define BBR_DFLT_STARTUP_PACING_GAIN 710
#define BBR_DFLT_STARTUP_CWND_GAIN 512
#define BBR_DFLT_DRAIN_ROUNDS 3
#define BBR_DFLT_DOWN_GAIN 232
#define BBR_DFLT_UP_CWND_GAIN 576
#define BBR_DFLT_FULL_LOSS_COUNT 6
/* Only a lower RTT is news. */
#define BBR_DFLT_EQUAL_RTT_RENEWS 0
/* The first round is that of the first flight. */
#define BBR_DFLT_FIRST_ROUND(in) ((in)->delivered)
/* clang-format off */
#define BBR_REV_OWN_PARAMS(P)                                                  \
	P(resume_probe, 1, 0, 1, "",                                           \
	  "a spurious loss takes back the end of the probe too, as the draft has it; google: 0")
/* clang-format on */
#include "bbr_rev.h"

/* ---- values ------------------------------------------------------------- */

static u32 bbr_rev_bw(const struct bbr_rev *s)
{
	return cc_min(bbr_rev_max_bw(s), s->bw_lo);
}

/* tcp_min_tso_segs of Linux. */
static u32 bbr_rev_min_burst(const struct cc_out *out)
{
	(void)out;
	return 2;
}

/* ---- marks and losses --------------------------------------------------- */

/* Only once marks are used. */
static void bbr_rev_update_alpha(struct bbr_rev *s, const struct cc_in *in,
				 const struct cc_out *out)
{
	u32 delivered = in->delivered - s->alpha_delivered;

	bbr_rev_check_marks_are_usable(s);
	if (s->ecn_eligible && delivered)
		bbr_rev_smooth_alpha(s, in, out, delivered);
}

static void bbr_rev_note_marks(struct bbr_rev *s, const struct cc_in *in)
{
	(void)in;
	s->ecn_in_round |= s->ecn_eligible;
}

static u32 bbr_rev_is_marked_too_much(u32 delivered_ce, u64 most)
{
	return delivered_ce > most;
}

/* The maxima are those of every ACK, and begin anew at its end. */
static void bbr_rev_take_sample(struct bbr_rev *s, const struct cc_in *in)
{
	bbr_rev_update_latest(s, in);
}

static void bbr_rev_take_model_sample(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
}

static void bbr_rev_end_model_sample(struct bbr_rev *s, const struct cc_in *in)
{
	(void)s;
	(void)in;
}

/*
 * Was it the tail loss probe that this ACK tells of? Then the next ACKs decide
 * whether it repaired a loss, by what the path delivered before it. It is the
 * last packet, and out of recovery nothing else is retransmitted.
 */
static u32 bbr3_is_of_tail_probe(const struct bbr_rev *s,
				 const struct cc_in *in)
{
	return in->rs_is_retrans && in->snd_una == in->rs_last_end_seq &&
	       in->ca_state < CC_CA_RECOVERY &&
	       s->prev_ca_state < CC_CA_RECOVERY;
}

static void bbr_rev_end_sample(struct bbr_rev *s, const struct cc_in *in)
{
	if (s->loss_round_start && !bbr3_is_of_tail_probe(s, in))
		bbr_rev_begin_maxima(s, in);
}

static void bbr_rev_note_bad_probe(struct bbr_rev *s)
{
	(void)s;
}

static u32 bbr_rev_note_good_flight(struct bbr_rev *s)
{
	return s->inflight_hi != BBR_REV_UNSET;
}

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

/* Packets are marked before the stack enters recovery, and a mark may end the
 * probe: the bounds to return to are those before the first. */
static void bbr_rev_note_loss(struct bbr_rev *s, const struct cc_in *in)
{
	if (s->resume_probe && !s->undo_is_saved)
		bbr_rev_save_bounds(s);
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

/* The window may follow. */
static void bbr_rev_note_raise(struct bbr_rev *s)
{
	s->try_fast_path = 0;
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

/* The window from before the timeout cuts it, for the bound to begin with. */
static void bbr_rev_note_timeout(struct bbr_rev *s, const struct cc_out *out)
{
	bbr_rev_reset_full_bw(s);
	if (!bbr_rev_is_probing(s) && s->inflight_lo == BBR_REV_UNSET)
		s->inflight_lo = cc_max(out->snd_cwnd, s->prior_cwnd);
}

static void bbr_rev_note_recovery(struct bbr_rev *s)
{
	if (!s->resume_probe || !s->undo_is_saved)
		bbr_rev_save_bounds(s);
}

/* What the loss broke off begins anew, when PROBE_RTT is not in the way: the
 * probe for bandwidth with REFILL, as its flight has left the path. */
static void bbr_rev_note_undo(struct bbr_rev *s, const struct cc_in *in)
{
	s->try_fast_path = 0;
	if (!s->resume_probe)
		return;
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

/* A tail loss probe repaired a loss of one segment. */
static void bbr3_tlp_repaired(struct bbr_rev *s, const struct cc_in *in,
			      struct cc_out *out)
{
	struct bbr_rev_flight f = { cc_add_saturate(s->inflight_latest, 1), 1,
				    0, 0, in->app_limited != 0 };

	bbr_rev_note_loss(s, in);
	if (s->probe_samples && bbr_rev_too_high(s, &f))
		bbr_rev_handle_too_high(s, in, out, f.tx_in_flight,
					f.is_app_limited);
}

/*
 * Linux tells of that by entering CWR and leaving it in one ACK; Google's
 * kernels by an event. A CWR of the host's own queue is left by a later ACK,
 * which acks more.
 */
static void bbr_rev_note_state(struct bbr_rev *s, const struct cc_in *in,
			       struct cc_out *out)
{
	if (s->tlp_may_repair && in->state < CC_CA_CWR &&
	    in->snd_una == s->tlp_snd_una)
		bbr3_tlp_repaired(s, in, out);
	s->tlp_may_repair = in->state == CC_CA_CWR;
	s->tlp_snd_una = in->snd_una;
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
