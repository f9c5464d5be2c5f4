/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev.h - the state machine and the ops of BBR versions 2 and 3, over the
 * model of bbr_rev_model.h. The including file describes the algorithm, gives
 * the defaults (BBR_DFLT_*), and defines what its version does differently: the
 * functions of bbr_rev_own.h.
 *
 * Source: as bbr3.c and bbr2.c.
 */
#ifndef KNEE_BBR_REV_H
#define KNEE_BBR_REV_H

#include "bbr_rev_cycle.h"
#include "bbr_rev_flight.h"
#include "bbr_rev_model.h"
#include "bbr_rev_own.h"

/* Growth that means there is more to be had, 1.25, and rounds without it. */
#define BBR_REV_FULL_BW_GROWTH (BBR_UNIT * 5 / 4)
#define BBR_REV_FULL_BW_ROUNDS 3u
/* Rounds with too many marks that end STARTUP. */
#define BBR_REV_FULL_ECN_ROUNDS 2u
/* Smoothing of the mark rate: 1/16. 1/256. */
#define BBR_REV_ECN_ALPHA_GAIN 16u
#define BBR_REV_MAX_ROUNDS_SINCE 0xffu
#define BBR_REV_MAX_LOSS_ACKS 15u

/* ---- rates -------------------------------------------------------------- */

static u64 bbr_rev_pacing_rate(const struct bbr_rev *s, const struct cc_in *in,
			       u64 bw, u32 gain)
{
	u64 rate = bbr_bytes_per_sec(bw, gain, in->mss_bytes, s->pacing_margin);

	return cc_min64(cc_max64(rate, 1), in->max_pacing_rate);
}

static void bbr_rev_init_pacing_rate(struct bbr_rev *s, const struct cc_in *in,
				     struct cc_out *out)
{
	u32 rtt_us = BBR_REV_DEFAULT_RTT_US;
	u64 bw;

	if (in->srtt_us) {
		rtt_us = in->srtt_us;
		s->has_seen_rtt = 1;
	}
	bw = cc_div((u64)out->snd_cwnd << BBR_BW_SHIFT, rtt_us);
	out->pacing_rate =
		bbr_rev_pacing_rate(s, in, (u32)bw, s->startup_pacing_gain);
}

/* Until the pipe has been full a lower estimate is only an early one. */
static void bbr_rev_set_pacing_rate(struct bbr_rev *s, const struct cc_in *in,
				    struct cc_out *out, u32 gain)
{
	u64 rate = bbr_rev_pacing_rate(s, in, bbr_rev_bw(s), gain);

	if (!s->has_seen_rtt && in->srtt_us)
		bbr_rev_init_pacing_rate(s, in, out);
	if (s->full_bw_reached || rate > out->pacing_rate)
		out->pacing_rate = rate;
}

/* ---- too much in flight? ------------------------------------------------ */

/* Once per probe: this was too much. `in_flight`: how much it was. */
static void bbr_rev_handle_too_high(struct bbr_rev *s, const struct cc_in *in,
				    struct cc_out *out, u32 in_flight,
				    u32 is_app_limited)
{
	s->prev_too_high = 1;
	s->probe_samples = 0;
	/* An application that does not fill the window shows no limit. */
	if (!is_app_limited) {
		u32 target = bbr_rev_target_inflight(s, in, out);

		s->inflight_hi =
			cc_max(in_flight, bbr_rev_less(target, s->beta));
		bbr_rev_note_bad_probe(s);
	}
	if (s->mode == BBR_REV_PROBE_BW && s->phase == BBR_REV_UP) {
		s->undo_probe = BBR_REV_UNDO_UP;
		bbr_rev_start_down(s, in, out);
	}
}

/* Packets were marked lost: `run` of them, the last of this flight. */
static void bbr_rev_lost_in_probe(struct bbr_rev *s, const struct cc_in *in,
				  struct cc_out *out,
				  const struct bbr_rev_flight *f, u32 run)
{
	if (s->probe_samples && bbr_rev_too_high(s, f))
		bbr_rev_handle_too_high(s, in, out, bbr_rev_crossing(s, f, run),
					f->is_app_limited);
}

static void bbr_rev_queue_too_high_in_startup(struct bbr_rev *s,
					      const struct cc_in *in,
					      const struct cc_out *out)
{
	u32 bdp = bbr_rev_inflight(s, in, out, bbr_rev_max_bw(s), BBR_UNIT);

	s->full_bw_reached = 1;
	s->inflight_hi = bbr_rev_startup_inflight_hi(s, bdp);
}

/* ---- the steps of an ACK ------------------------------------------------ */

static void bbr_rev_check_marks_are_usable(struct bbr_rev *s)
{
	if (s->ecn && s->ecn_factor && s->min_rtt_us <= s->ecn_max_rtt)
		s->ecn_eligible = 1;
}

/* The share of marks since the last round, into alpha. `delivered` > 0. */
static void bbr_rev_smooth_alpha(struct bbr_rev *s, const struct cc_in *in,
				 const struct cc_out *out, u32 delivered)
{
	u32 delivered_ce = in->delivered_ce - s->alpha_delivered_ce;
	u64 ratio =
		cc_min64(cc_div((u64)delivered_ce << BBR_UNIT_SHIFT, delivered),
			 BBR_UNIT);

	s->ecn_alpha =
		cc_min(bbr_rev_less(s->ecn_alpha, BBR_REV_ECN_ALPHA_GAIN) +
			       (u32)((BBR_REV_ECN_ALPHA_GAIN * ratio) >>
				     BBR_UNIT_SHIFT),
		       BBR_UNIT);
	s->alpha_delivered = in->delivered;
	s->alpha_delivered_ce = in->delivered_ce;

	if (s->full_bw_reached || !s->ecn_eligible || !s->ecn_thresh)
		return;
	s->startup_ecn_rounds =
		ratio >= s->ecn_thresh ? s->startup_ecn_rounds + 1 : 0;
	if (s->startup_ecn_rounds >= BBR_REV_FULL_ECN_ROUNDS)
		bbr_rev_queue_too_high_in_startup(s, in, out);
}

static void bbr_rev_update_round(struct bbr_rev *s, const struct cc_in *in,
				 const struct cc_out *out)
{
	s->round.start = 0;
	if (in->rs_interval_us > 0 && in->rs_delivered >= 0)
		bbr_round_update(&s->round, in);
	if (!s->round.start)
		return;
	s->rounds_since_probe =
		cc_min(s->rounds_since_probe + 1, BBR_REV_MAX_ROUNDS_SINCE);
	bbr_rev_update_alpha(s, in, out);
}

/* Rounded up, so that growth shows at the lowest rates. */
static void bbr_rev_sample_bw(struct bbr_rev *s, const struct cc_in *in)
{
	u64 interval_us = (u64)in->rs_interval_us;

	s->sample_bw = 0;
	if (in->rs_interval_us > 0 && in->rs_delivered >= 0)
		s->sample_bw = (u32)((((u64)in->rs_delivered << BBR_BW_SHIFT) +
				      interval_us - 1) /
				     interval_us);
}

static u32 bbr_rev_is_valid(const struct cc_in *in)
{
	return in->rs_interval_us > 0 && in->rs_delivered >= 0 &&
	       in->rs_acked_sacked;
}

static void bbr_rev_update_latest(struct bbr_rev *s, const struct cc_in *in)
{
	s->loss_round_start = 0;
	if (!bbr_rev_is_valid(in))
		return;
	s->bw_latest = cc_max(s->bw_latest, s->sample_bw);
	s->inflight_latest = cc_max(s->inflight_latest, (u32)in->rs_delivered);
	if (!cc_before(in->rs_prior_delivered, s->loss_round_delivered)) {
		s->loss_round_delivered = in->delivered;
		s->loss_round_start = 1;
	}
}

/* A new loss round: its maxima begin with this sample. */
static void bbr_rev_begin_maxima(struct bbr_rev *s, const struct cc_in *in)
{
	s->bw_latest = s->sample_bw;
	s->inflight_latest = in->rs_delivered > 0 ? (u32)in->rs_delivered : 0;
}

static void bbr_rev_update_congestion(struct bbr_rev *s, const struct cc_in *in,
				      const struct cc_out *out)
{
	bbr_rev_take_model_sample(s, in);
	if (!bbr_rev_is_valid(in))
		return;
	if (!in->rs_is_app_limited || s->sample_bw >= bbr_rev_max_bw(s))
		s->bw_hi[1] = cc_max(s->bw_hi[1], s->sample_bw);
	if (in->rs_losses)
		s->loss_in_round = 1;
	if (!s->loss_round_start)
		return;
	bbr_rev_adapt_lower_bounds(s, out);
	s->loss_in_round = 0;
	s->ecn_in_round = 0;
	bbr_rev_end_model_sample(s, in);
}

static void bbr_rev_update_aggregation(struct bbr_rev *s,
				       const struct cc_in *in,
				       const struct cc_out *out)
{
	if (!bbr_rev_is_valid(in))
		return;
	if (s->round.start) {
		/* In STARTUP only the last round or two count. */
		if (!s->full_bw_reached)
			s->aggregation.slot_rounds =
				BBR_AGGREGATION_SLOT_ROUNDS - 1;
		bbr_aggregation_new_round(&s->aggregation);
	}
	bbr_aggregation_ack(&s->aggregation, in->rs_acked_sacked, bbr_rev_bw(s),
			    s->delivered_mstamp_us, out->snd_cwnd);
}

static void bbr_rev_check_startup_loss(struct bbr_rev *s,
				       const struct cc_in *in,
				       const struct cc_out *out,
				       const struct bbr_rev_flight *f)
{
	if (s->full_bw_reached)
		return;
	if (in->rs_losses)
		s->loss_acks_in_round = cc_min(s->loss_acks_in_round + 1,
					       BBR_REV_MAX_LOSS_ACKS);
	if (!s->loss_round_start)
		return;
	if (s->full_loss_count && in->ca_state == CC_CA_RECOVERY &&
	    s->loss_acks_in_round >= s->full_loss_count &&
	    bbr_rev_too_high(s, f)) {
		s->undo_probe = BBR_REV_UNDO_STARTUP;
		bbr_rev_queue_too_high_in_startup(s, in, out);
		return;
	}
	s->loss_acks_in_round = 0;
}

/* One more round without growth. Returns 1 when that is enough. */
static u32 bbr_rev_count_full_round(struct bbr_rev *s)
{
	if (++s->full_bw_rounds < BBR_REV_FULL_BW_ROUNDS)
		return 0;
	s->full_bw_reached = 1;
	return 1;
}

static u64 bbr_rev_full_bw_goal(const struct bbr_rev *s)
{
	return ((u64)s->full_bw * BBR_REV_FULL_BW_GROWTH) >> BBR_UNIT_SHIFT;
}

static u32 bbr_rev_drain_is_over(const struct bbr_rev *s,
				 const struct cc_in *in,
				 const struct cc_out *out)
{
	u32 target = bbr_rev_inflight(s, in, out, bbr_rev_max_bw(s), BBR_UNIT);

	/* The bandwidth was overrated: only a next cycle can correct it. */
	if (s->drain_rounds &&
	    s->round.count - s->drain_start_round > s->drain_rounds)
		return 1;
	return bbr_rev_in_net_at_departure(s, in, out, cc_in_flight(in)) <=
	       target;
}

static void bbr_rev_check_drain(struct bbr_rev *s, const struct cc_in *in,
				struct cc_out *out)
{
	if (s->mode == BBR_REV_STARTUP && s->full_bw_reached) {
		s->mode = BBR_REV_DRAIN;
		s->drain_start_round = s->round.count;
		/* For the reader of tcp_info; nothing here uses it. */
		out->snd_ssthresh = bbr_rev_inflight(
			s, in, out, bbr_rev_max_bw(s), BBR_UNIT);
		bbr_rev_reset_congestion(s);
	}
	if (s->mode != BBR_REV_DRAIN)
		return;
	if (bbr_rev_drain_is_over(s, in, out)) {
		s->mode = BBR_REV_PROBE_BW;
		bbr_rev_start_down(s, in, out);
	}
}

/* Nothing says that this was too much: inflight_hi may be higher. */
static void bbr_rev_raise_inflight_hi(struct bbr_rev *s, const struct cc_in *in,
				      const struct cc_out *out)
{
	if (!in->is_cwnd_limited || out->snd_cwnd < s->inflight_hi) {
		bbr_rev_keep_credit(s);
		return;
	}
	s->up_acks = cc_add_saturate(s->up_acks, in->rs_acked_sacked);
	if (s->up_acks >= s->up_count) {
		u32 n = (u32)cc_div(s->up_acks, s->up_count);

		s->up_acks -= n * s->up_count;
		s->inflight_hi = cc_add_saturate(s->inflight_hi, n);
		bbr_rev_note_raise(s);
	}
	if (s->round.start)
		bbr_rev_raise_slope(s, out);
}

/* The ACKs of the last probe are all in. Returns 1 when they ask for another
 * at once: it stopped at inflight_hi, and even that was not too much. */
static u32 bbr_rev_probe_is_over(struct bbr_rev *s, const struct cc_in *in)
{
	s->probe_samples = 0;
	s->acks = BBR_REV_ACKS_NONE;
	if (s->mode != BBR_REV_PROBE_BW)
		return 0;
	/* Time to forget the cycle before: this is our best sample. */
	if (!in->rs_is_app_limited && s->bw_hi[1]) {
		s->bw_hi[0] = s->bw_hi[1];
		s->bw_hi[1] = 0;
	}
	if (!s->stopped_risky || s->prev_too_high)
		return 0;
	bbr_rev_start_refill(s, in, 0);
	return 1;
}

/* Returns 1 when the next phase is decided. */
static u32 bbr_rev_adapt_upper_bounds(struct bbr_rev *s, const struct cc_in *in,
				      struct cc_out *out,
				      const struct bbr_rev_flight *f)
{
	if (s->acks == BBR_REV_ACKS_STARTING && s->round.start)
		s->acks = BBR_REV_ACKS_FEEDBACK;
	if (s->acks == BBR_REV_ACKS_STOPPING && s->round.start &&
	    bbr_rev_probe_is_over(s, in))
		return 1;

	if (bbr_rev_too_high(s, f)) {
		if (s->probe_samples)
			bbr_rev_handle_too_high(s, in, out, f->tx_in_flight,
						f->is_app_limited);
	} else if (bbr_rev_note_good_flight(s)) {
		s->inflight_hi = cc_max(s->inflight_hi, f->tx_in_flight);
		if (s->mode == BBR_REV_PROBE_BW && s->phase == BBR_REV_UP)
			bbr_rev_raise_inflight_hi(s, in, out);
	}
	return 0;
}

static u32 bbr_rev_elapsed_in_phase(const struct bbr_rev *s,
				    const struct cc_in *in, u32 us)
{
	return cc_elapsed(in->now_us, s->phase_mstamp_us) > us;
}

static u32 bbr_rev_check_time_to_probe(struct bbr_rev *s,
				       const struct cc_in *in,
				       const struct cc_out *out)
{
	u32 rounds = cc_min(s->probe_max_rounds,
			    bbr_rev_target_inflight(s, in, out));

	if (bbr_rev_probe_after_marks(s, in))
		return 1;
	if (!bbr_rev_elapsed_in_phase(s, in, s->probe_wait_us) &&
	    s->rounds_since_probe < rounds)
		return 0;
	bbr_rev_start_refill(s, in, 0);
	return 1;
}

/* Has UP pushed enough? */
static u32 bbr_rev_up_is_over(struct bbr_rev *s, const struct cc_in *in,
			      const struct cc_out *out, u32 in_net)
{
	if (s->prev_too_high && in_net >= s->inflight_hi) {
		s->stopped_risky = 1;
		return 1;
	}
	return bbr_rev_pipe_is_full(s, in, out, in_net);
}

static void bbr_rev_update_phase(struct bbr_rev *s, const struct cc_in *in,
				 struct cc_out *out,
				 const struct bbr_rev_flight *f)
{
	u32 in_net;

	if (!s->full_bw_reached || bbr_rev_adapt_upper_bounds(s, in, out, f) ||
	    s->mode != BBR_REV_PROBE_BW)
		return;
	in_net =
		bbr_rev_in_net_at_departure(s, in, out, in->rs_prior_in_flight);
	switch (s->phase) {
	case BBR_REV_CRUISE:
		bbr_rev_check_time_to_probe(s, in, out);
		break;
	case BBR_REV_REFILL:
		if (s->round.start) {
			s->probe_samples = 1;
			bbr_rev_start_up(s, in, out);
		}
		break;
	case BBR_REV_UP:
		if (bbr_rev_up_is_over(s, in, out, in_net)) {
			s->prev_too_high = 0;
			bbr_rev_start_down(s, in, out);
		}
		break;
	default:
		if (bbr_rev_check_time_to_probe(s, in, out))
			break;
		if (in_net <= bbr_rev_with_headroom(s) &&
		    in_net <= bbr_rev_inflight(s, in, out, bbr_rev_max_bw(s),
					       BBR_UNIT))
			bbr_rev_start_cruise(s);
		break;
	}
}

#include "bbr_rev_ops.h"

#endif
