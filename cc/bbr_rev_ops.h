/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev_ops.h - what BBR versions 2 and 3 do with their model: PROBE_RTT, the
 * pacing rate, the window, and the ops.
 *
 * Included by bbr_rev.h only.
 */
#ifndef KNEE_BBR_REV_OPS_H
#define KNEE_BBR_REV_OPS_H

#include "bbr_rev.h"

/* ---- PROBE_RTT ---------------------------------------------------------- */

static void bbr_rev_save_cwnd(struct bbr_rev *s, const struct cc_out *out)
{
	if (s->prev_ca_state < CC_CA_RECOVERY && s->mode != BBR_REV_PROBE_RTT)
		s->prior_cwnd = out->snd_cwnd;
	else
		s->prior_cwnd = cc_max(s->prior_cwnd, out->snd_cwnd);
}

static void bbr_rev_leave_probe_rtt(struct bbr_rev *s, const struct cc_in *in,
				    struct cc_out *out)
{
	bbr_rev_reset_lower_bounds(s);
	if (!s->full_bw_reached) {
		s->mode = BBR_REV_STARTUP;
		return;
	}
	s->mode = BBR_REV_PROBE_BW;
	/* Back up may mean loss: the next probe is a whole wait away. In flight
	 * is less than a bdp, so that there is nothing to drain. */
	bbr_rev_start_down(s, in, out);
	bbr_rev_start_cruise(s);
}

static void bbr_rev_check_probe_rtt_done(struct bbr_rev *s,
					 const struct cc_in *in,
					 struct cc_out *out)
{
	if (!bbr_min_rtt_hold_is_over(&s->probe_rtt_min, in))
		return;
	s->probe_rtt_min.stamp = in->jiffies;
	out->snd_cwnd = cc_max(cc_max(out->snd_cwnd, s->prior_cwnd), 1);
	bbr_rev_leave_probe_rtt(s, in, out);
}

static void bbr_rev_in_probe_rtt(struct bbr_rev *s, const struct cc_in *in,
				 struct cc_out *out)
{
	struct bbr_min_rtt *m = &s->probe_rtt_min;
	u32 inflight = cc_in_flight(in);

	/* The low rate of this mode must not count as the path's. */
	out->app_limited = in->delivered + inflight;
	if (!out->app_limited)
		out->app_limited = 1;
	if (!m->done_stamp) {
		if (inflight > bbr_rev_probe_rtt_cwnd(s))
			return;
		bbr_min_rtt_hold(m, in, s->probe_rtt_time);
		bbr_round_restart(&s->round, in);
		return;
	}
	if (s->round.start)
		m->round_done = 1;
	if (m->round_done)
		bbr_rev_check_probe_rtt_done(s, in, out);
}

/*
 * Two windows: the shorter says when to look at the empty path again, the
 * longer how old the RTT may be that the bdp rests on.
 */
static void bbr_rev_update_min_rtt(struct bbr_rev *s, const struct cc_in *in,
				   struct cc_out *out)
{
	struct bbr_min_rtt *m = &s->probe_rtt_min;
	u32 probe = bbr_min_rtt_sample(
		m, in, cc_msecs_to_jiffies(s->probe_rtt_interval, in->hz),
		BBR_DFLT_EQUAL_RTT_RENEWS);
	u32 expired = cc_after(in->jiffies,
			       s->min_rtt_stamp + s->min_rtt_window * in->hz);

	if (m->us <= s->min_rtt_us || expired) {
		s->min_rtt_us = m->us;
		s->min_rtt_stamp = m->stamp;
	}
	if (s->probe_rtt_time && probe && !s->idle_restart &&
	    s->mode != BBR_REV_PROBE_RTT) {
		s->mode = BBR_REV_PROBE_RTT;
		bbr_rev_save_cwnd(s, out);
		m->done_stamp = 0;
		s->acks = BBR_REV_ACKS_STOPPING;
		bbr_round_restart(&s->round, in);
	}
	if (s->mode == BBR_REV_PROBE_RTT)
		bbr_rev_in_probe_rtt(s, in, out);
	if (in->rs_delivered > 0)
		s->idle_restart = 0;
}

/* ---- what is sent ------------------------------------------------------- */

static void bbr_rev_update_gains(struct bbr_rev *s)
{
	s->pacing_gain = BBR_UNIT;
	s->window_gain = s->cwnd_gain;
	switch (s->mode) {
	case BBR_REV_STARTUP:
		s->pacing_gain = s->startup_pacing_gain;
		s->window_gain = s->startup_cwnd_gain;
		break;
	case BBR_REV_DRAIN:
		s->pacing_gain = s->drain_gain;
		s->window_gain = s->startup_cwnd_gain; /* pacing drains */
		break;
	case BBR_REV_PROBE_BW:
		if (s->phase == BBR_REV_UP) {
			s->pacing_gain = s->up_gain;
			s->window_gain = s->up_cwnd_gain;
		} else if (s->phase == BBR_REV_DOWN) {
			s->pacing_gain = s->down_gain;
		}
		break;
	default:
		s->window_gain = BBR_UNIT;
		break;
	}
}

/* Slow start up to the target, or down to it at once. */
static void bbr_rev_set_cwnd(struct bbr_rev *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 acked = in->rs_acked_sacked;
	u32 cwnd = out->snd_cwnd;

	if (acked) {
		u32 target = bbr_rev_bdp(s, bbr_rev_bw(s), s->window_gain);

		target = cc_add_saturate(
			target,
			bbr_aggregation_cwnd(&s->aggregation, bbr_rev_bw(s)));
		target = bbr_rev_quantized(s, in, out, target);
		/* Before the pipe has been full the window is not cut. */
		s->try_fast_path = cwnd >= target && cwnd >= 2 * s->init_cwnd;
		if (s->full_bw_reached) {
			cwnd = cc_add_saturate(cwnd, acked);
			s->try_fast_path = cwnd >= target;
			cwnd = cc_min(cwnd, target);
		} else if (!s->try_fast_path) {
			cwnd = cc_add_saturate(cwnd, acked);
		}
		cwnd = cc_max(cwnd, BBR_REV_MIN_CWND);
	}
	if (s->mode == BBR_REV_PROBE_RTT)
		cwnd = cc_min(cwnd, bbr_rev_probe_rtt_cwnd(s));
	cc_set_cwnd(in, out, cwnd);
}

static void bbr_rev_bound_cwnd(struct bbr_rev *s, struct cc_out *out)
{
	u32 cap = BBR_REV_UNSET;

	if (s->mode == BBR_REV_PROBE_BW && s->phase != BBR_REV_CRUISE)
		cap = s->inflight_hi;
	else if (s->mode == BBR_REV_PROBE_RTT || s->mode == BBR_REV_PROBE_BW)
		cap = bbr_rev_with_headroom(s);
	cap = cc_max(cc_min(cap, s->inflight_lo), BBR_REV_MIN_CWND);
	out->snd_cwnd = cc_max(cc_min(out->snd_cwnd, cap), 1);
}

/* ---- ops ---------------------------------------------------------------- */

static void bbr_rev_init(struct bbr_rev *s, const struct cc_in *in,
			 struct cc_out *out)
{
	out->snd_ssthresh = CC_INFINITE_SSTHRESH;
	s->is_ready = 1;
	s->mode = BBR_REV_STARTUP;
	s->phase = BBR_REV_DOWN;
	s->acks = BBR_REV_ACKS_NONE;
	s->init_cwnd = cc_clamp(out->snd_cwnd, 1, 127);
	s->prior_cwnd = in->prior_cwnd;
	s->prev_ca_state = CC_CA_OPEN;
	s->idle_restart = 0;
	s->try_fast_path = 0;

	bbr_round_reset(&s->round, in);
	s->round.next_delivered = BBR_DFLT_FIRST_ROUND(in);
	s->rounds_since_probe = 0;
	s->drain_start_round = 0;
	s->loss_round_delivered = in->delivered + 1;
	s->loss_round_start = 0;

	bbr_min_rtt_reset(&s->probe_rtt_min, in);
	s->min_rtt_us = in->min_rtt_us;
	s->min_rtt_stamp = in->jiffies;
	bbr_aggregation_reset(&s->aggregation, in->now_us);
	s->delivered_mstamp_us = in->now_us;

	s->sample_bw = 0;
	s->bw_hi[0] = 0;
	s->bw_hi[1] = 0;
	s->bw_upper = BBR_REV_UNSET;
	s->inflight_hi = BBR_REV_UNSET;
	bbr_rev_reset_lower_bounds(s);
	bbr_rev_reset_congestion(s);
	s->undo_is_saved = 0;
	s->undo_probe = BBR_REV_UNDO_NONE;
	s->undo_bw_lo = 0;
	s->undo_inflight_lo = 0;
	s->undo_inflight_hi = 0;

	bbr_rev_reset_full_bw(s);
	s->full_bw_reached = 0;
	s->noted_lost = in->lost;
	s->loss_acks_in_round = 0;
	s->tlp_may_repair = 0;
	s->tlp_snd_una = in->snd_una;
	s->probe_samples = 0;
	s->probe_was_good = 0;
	s->prev_too_high = 0;
	s->stopped_risky = 0;
	s->up_count = CC_U32_MAX;
	s->up_acks = 0;
	s->up_rounds = 0;
	s->probe_wait_us = 0;
	s->phase_mstamp_us = 0;

	s->ecn_eligible = 0;
	s->ecn_alpha = BBR_UNIT;
	s->alpha_delivered = 0;
	s->alpha_delivered_ce = 0;
	s->startup_ecn_rounds = 0;
	bbr_tx_reset(&s->tx, in);

	s->has_seen_rtt = 0;
	bbr_rev_update_gains(s);
	bbr_rev_init_pacing_rate(s, in, out);
	if (out->pacing_status == CC_PACING_NONE)
		out->pacing_status = CC_PACING_NEEDED;
}

/* Where the stack does not call skb_marked_lost(), marks are found here, all
 * of an ACK at once. */
static void bbr_rev_find_losses(struct bbr_rev *s, const struct cc_in *in,
				struct cc_out *out,
				const struct bbr_rev_flight *f)
{
	u32 run = in->lost - s->noted_lost;

	if (!run)
		return;
	bbr_rev_note_loss(s, in);
	bbr_rev_lost_in_probe(s, in, out, f, cc_min(run, f->lost));
}

/*
 * An application that sends less than bw shows nothing of the path. While it
 * does so without loss or mark, its samples are skipped: round trips, maxima
 * and aggregation stay as they were. The phases and min_rtt go on.
 */
static u32 bbr_rev_is_on_fast_path(const struct bbr_rev *s,
				   const struct cc_in *in)
{
	return s->fast_path && s->try_fast_path && in->rs_is_app_limited &&
	       s->sample_bw < bbr_rev_max_bw(s) && !s->loss_in_round &&
	       !s->ecn_in_round;
}

/* Returns 1 when nothing changed that pacing and window rest on. */
static u32 bbr_rev_update_model(struct bbr_rev *s, const struct cc_in *in,
				struct cc_out *out,
				const struct bbr_rev_flight *f)
{
	u32 is_fast = bbr_rev_is_on_fast_path(s, in);
	u32 mode = s->mode, min_rtt_us = s->min_rtt_us;

	if (!is_fast) {
		bbr_rev_update_congestion(s, in, out);
		bbr_rev_update_aggregation(s, in, out);
		bbr_rev_check_startup_loss(s, in, out, f);
		bbr_rev_check_full_bw(s, in);
	}
	bbr_rev_check_drain(s, in, out);
	bbr_rev_update_phase(s, in, out, f);
	bbr_rev_update_min_rtt(s, in, out);
	return is_fast && s->mode == mode && s->min_rtt_us == min_rtt_us &&
	       s->try_fast_path;
}

static void bbr_rev_cong_control(struct bbr_rev *s, const struct cc_in *in,
				 struct cc_out *out)
{
	struct bbr_rev_flight f;

	s->tlp_may_repair = 0;
	if (in->rs_acked_sacked)
		s->delivered_mstamp_us = in->now_us;
	bbr_tx_before_ack(&s->tx, in);
	f = bbr_rev_flight_of(s, in);
	if (!bbr_rev_has_facts(s, in))
		bbr_rev_find_losses(s, in, out, &f);

	bbr_rev_update_round(s, in, out);
	if (in->ack_flags & CC_ACK_ECE)
		bbr_rev_note_marks(s, in);
	bbr_rev_sample_bw(s, in);
	bbr_rev_take_sample(s, in);

	if (!bbr_rev_update_model(s, in, out, &f)) {
		bbr_rev_update_gains(s);
		bbr_rev_set_pacing_rate(s, in, out, s->pacing_gain);
		bbr_rev_set_cwnd(s, in, out);
		if (s->is_ready)
			bbr_rev_bound_cwnd(s, out);
	}

	bbr_rev_end_sample(s, in);
	s->prev_ca_state = in->ca_state;
	if (in->ca_state < CC_CA_RECOVERY)
		s->undo_is_saved = 0;
	s->loss_in_cycle |= f.lost > 0;
	s->ecn_in_cycle |= f.delivered_ce > 0;
	bbr_tx_after_ack(&s->tx, in, out->snd_cwnd);
}

/* The simulator and Google's kernels call it for each packet that is marked. */
static void bbr_rev_skb_marked_lost(struct bbr_rev *s, const struct cc_in *in,
				    struct cc_out *out)
{
	struct bbr_rev_flight f = { 0, 0, 0, 0, 0 };

	if (s->approximate)
		return;
	bbr_rev_note_loss(s, in);
	f.tx_in_flight = in->lost_tx_in_flight;
	f.lost = in->lost - in->lost_tx_lost;
	f.is_app_limited = in->lost_is_app_limited;
	bbr_rev_lost_in_probe(s, in, out, &f, 1);
}

static void bbr_rev_ssthresh(struct bbr_rev *s, const struct cc_in *in,
			     struct cc_out *out)
{
	bbr_rev_save_cwnd(s, out);
	bbr_rev_note_recovery(s);
	(void)in;
	out->ret = out->snd_ssthresh;
}

/* The loss was none: take back what was given up for it. */
static void bbr_rev_undo_cwnd(struct bbr_rev *s, const struct cc_in *in,
			      struct cc_out *out)
{
	bbr_rev_reset_full_bw(s);
	s->loss_in_round = 0;
	s->bw_lo = cc_max(s->bw_lo, s->undo_bw_lo);
	s->inflight_lo = cc_max(s->inflight_lo, s->undo_inflight_lo);
	s->inflight_hi = cc_max(s->inflight_hi, s->undo_inflight_hi);
	bbr_rev_note_undo(s, in);
	out->ret = cc_max(s->prior_cwnd, 1);
}

static void bbr_rev_set_state(struct bbr_rev *s, const struct cc_in *in,
			      struct cc_out *out)
{
	if (in->state == CC_CA_LOSS) {
		s->prev_ca_state = CC_CA_LOSS;
		bbr_rev_note_timeout(s, out);
	} else if (s->prev_ca_state == CC_CA_LOSS) {
		out->snd_cwnd = cc_max(cc_max(out->snd_cwnd, s->prior_cwnd), 1);
		s->try_fast_path = 0; /* the model may allow less */
	}
	bbr_rev_note_state(s, in, out);
}

/* Sending again after the application paused: no burst beyond bw. */
static void bbr_rev_cwnd_event(struct bbr_rev *s, const struct cc_in *in,
			       struct cc_out *out)
{
	if (in->event != CC_EVENT_TX_START || !in->app_limited)
		return;
	s->idle_restart = 1;
	bbr_aggregation_new_epoch(&s->aggregation, in->now_us);
	if (s->mode == BBR_REV_PROBE_BW)
		bbr_rev_set_pacing_rate(s, in, out, BBR_UNIT);
	else if (s->mode == BBR_REV_PROBE_RTT)
		bbr_rev_check_probe_rtt_done(s, in, out);
}

/* The stack's own sizing of bursts has the share for short RTTs. */
static void bbr_rev_min_tso_segs(struct bbr_rev *s, const struct cc_in *in,
				 struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = bbr_rev_min_burst(out);
}

/* Three windows of buffer: one in flight, and slow start even in recovery. */
static void bbr_rev_sndbuf_expand(struct bbr_rev *s, const struct cc_in *in,
				  struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 3;
}

/* Numbers of the phases as told; their names are the draft's. */
#define BBR_REV_PHASES                                                       \
	"Startup", "Drain", "ProbeBwDown", "ProbeBwCruise", "ProbeBwRefill", \
		"ProbeBwUp", "ProbeRtt"

CC_HOST_ONLY
static void bbr_rev_get_info(const struct bbr_rev *s, const struct cc_in *in,
			     struct cc_info *info)
{
	info->bw = bbr_bytes_per_sec(bbr_rev_bw(s), BBR_UNIT, in->mss_bytes, 0);
	info->min_rtt_us = s->min_rtt_us;
	info->pacing_gain = s->pacing_gain;
	info->cwnd_gain = s->window_gain;
	if (s->mode == BBR_REV_PROBE_BW)
		info->phase = 2 + cc_min(s->phase, BBR_REV_UP);
	else
		info->phase = s->mode == BBR_REV_PROBE_RTT ? 6 : s->mode != 0;
}

#endif
