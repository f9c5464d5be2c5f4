/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * BBR version 1 - model the path, then send at its rate.
 *
 * A path has two numbers: the bandwidth of its bottleneck and its round-trip
 * time without queue. Neither can be seen while the other is: bandwidth shows
 * only with a full pipe, the RTT only with an empty queue. BBR measures them
 * in turns, paces at the bandwidth and keeps about two bandwidth-delay
 * products in flight. A lost packet is not a signal; only a policer is.
 *
 * Equations (bw in segments/us, gains dimensionless)
 *	bw       = max over 10 rounds of delivered / interval
 *	min_rtt  = min over 10 s of the RTT
 *	pacing   = pacing_gain bw mss 0.99
 *	bdp      = ceil(cwnd_gain bw min_rtt)
 *	cwnd     = bdp + extra_acked + 3 TSO bursts, rounded up to even
 *
 *	           bw grows < 25 % in 3 rounds       in flight <= bdp
 *	STARTUP -------------------------> DRAIN -------------------> PROBE_BW
 *	 ^  gain 2.89                       gain 0.34    gains 1.25, 0.75, 1 x 6
 *	 |                                                          |  ^
 *	 |   not full                 min_rtt older than 10 s       |  | full
 *	 +------------- PROBE_RTT <---------------------------------+  |
 *	                 cwnd 4, for 200 ms and a round ---------------+
 *	(PROBE_RTT is entered from every other state.)
 *
 * Source: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM
 *	Queue 14(5), 2016; Linux 6.12 net/ipv4/tcp_bbr.c for everything that
 *	the paper leaves open: the policer model, ACK aggregation, recovery,
 *	idle restart, clocks and rounding.
 *
 * Differs from source:
 *	- The time share of a TSO burst (sk_pacing_shift) is always the default
 *	  of 1/1024 s; a few wireless drivers set another.
 *	- The drain gain follows from the high gain (65536 / high_gain), equal
 *	  to Linux' 88/256 at the default.
 *	None of it showed in a million ACKs of Linux 6.18, replayed: after each
 *	op the window, the rate and all else were equal (docs/replay.md).
 */
#include "bbr1_cycle.h"
#include "bbr1_model.h"

/* Four segments keep a path with delayed ACKs moving. Segments. */
#define BBR1_MIN_CWND 4u
/* RTT assumed for the first pacing rate without a sample. us. */
#define BBR1_DEFAULT_RTT_US 1000u

/* ---- modes -------------------------------------------------------------- */

static void bbr1_enter_phase(struct bbr1 *s, u32 phase)
{
	s->cycle_idx = phase;
	s->cycle_mstamp_us = s->delivered_mstamp_us;
}

static void bbr1_enter_probe_bw(struct bbr1 *s, const struct cc_in *in,
				struct cc_out *out)
{
	s->mode = BBR1_PROBE_BW;
	bbr1_enter_phase(s, bbr1_cycle_start(cc_random(in, out)));
}

static void bbr1_leave_probe_rtt(struct bbr1 *s, const struct cc_in *in,
				 struct cc_out *out)
{
	if (s->full_pipe.reached)
		bbr1_enter_probe_bw(s, in, out);
	else
		s->mode = BBR1_STARTUP;
}

static void bbr1_update_gains(struct bbr1 *s)
{
	switch (s->mode) {
	case BBR1_STARTUP:
		s->pacing_gain = s->high_gain;
		s->window_gain = s->high_gain;
		break;
	case BBR1_DRAIN:
		s->pacing_gain = (u32)cc_div(BBR_UNIT * BBR_UNIT, s->high_gain);
		s->window_gain = s->high_gain; /* keep cwnd, pacing drains */
		break;
	case BBR1_PROBE_BW:
		s->pacing_gain = s->policer.use_bw
					 ? BBR_UNIT
					 : bbr1_cycle_gain(s->cycle_idx);
		s->window_gain = s->cwnd_gain;
		break;
	default:
		s->pacing_gain = BBR_UNIT;
		s->window_gain = BBR_UNIT;
		break;
	}
}

/* ---- the steps of the model, in the order of an ACK --------------------- */

static void bbr1_reset_policer(struct bbr1 *s, const struct cc_in *in)
{
	bbr_policer_reset(&s->policer, in, s->delivered_mstamp_us);
}

static void bbr1_update_policer(struct bbr1 *s, const struct cc_in *in,
				struct cc_out *out, u32 losses,
				u32 is_app_limited)
{
	struct bbr_policer_ack ack = {
		.delivered_mstamp_us = s->delivered_mstamp_us,
		.losses = losses,
		.round_start = s->round.start,
		.is_app_limited = is_app_limited,
		.margin_pct = s->pacing_margin,
	};

	if (!s->policer_model)
		return;
	if (!s->policer.use_bw) {
		if (bbr_policer_sample(&s->policer, in, &ack))
			s->pacing_gain = BBR_UNIT;
		return;
	}
	if (s->mode == BBR1_PROBE_BW && s->round.start &&
	    bbr_policer_expires(&s->policer)) {
		bbr1_reset_policer(s, in);
		bbr1_enter_probe_bw(s, in, out);
	}
}

static void bbr1_update_bw(struct bbr1 *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u64 bw;

	s->round.start = 0;
	if (in->rs_delivered < 0 || in->rs_interval_us <= 0)
		return;

	bbr_round_update(&s->round, in);
	if (s->round.start)
		s->recovery.is_conserving = 0;
	bbr1_update_policer(s, in, out, in->rs_losses, in->rs_is_app_limited);

	bw = cc_div((u64)in->rs_delivered << BBR_BW_SHIFT,
		    (u64)in->rs_interval_us);
	/* An app-limited sample says what the application sent, not what the
	 * path can carry, unless it is above all we know. */
	if (!in->rs_is_app_limited || bw >= bbr1_max_bw(s))
		cc_max_filter_update(&s->bw, s->bw_window, s->round.count,
				     (u32)bw);
}

static void bbr1_update_ack_aggregation(struct bbr1 *s, const struct cc_in *in,
					const struct cc_out *out)
{
	if (!s->ack_aggregation || !in->rs_acked_sacked ||
	    in->rs_delivered < 0 || in->rs_interval_us <= 0)
		return;
	if (s->round.start)
		bbr_aggregation_new_round(&s->aggregation);
	bbr_aggregation_ack(&s->aggregation, in->rs_acked_sacked, bbr1_bw(s),
			    s->delivered_mstamp_us, out->snd_cwnd);
}

static u32 bbr1_phase_is_over(const struct bbr1 *s, const struct cc_in *in,
			      const struct cc_out *out)
{
	u32 full_length = (u32)cc_elapsed(s->delivered_mstamp_us,
					  s->cycle_mstamp_us) > s->min_rtt.us;
	u32 in_net, target;

	if (s->pacing_gain == BBR_UNIT)
		return full_length;

	in_net = bbr1_in_net_at_departure(s, in, out, in->rs_prior_in_flight);
	if (s->pacing_gain > BBR_UNIT) {
		/* Hold the probe until it is in flight, or does not fit. */
		target = bbr1_inflight(s, in, out, bbr1_max_bw(s),
				       s->pacing_gain);
		return full_length && (in->rs_losses || in_net >= target);
	}
	target = bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR_UNIT);
	return full_length || in_net <= target;
}

static void bbr1_update_cycle_phase(struct bbr1 *s, const struct cc_in *in,
				    const struct cc_out *out)
{
	if (s->mode == BBR1_PROBE_BW && bbr1_phase_is_over(s, in, out))
		bbr1_enter_phase(s, bbr1_cycle_next(s->cycle_idx));
}

static void bbr1_check_full_bw(struct bbr1 *s, const struct cc_in *in)
{
	if (s->round.start && !in->rs_is_app_limited)
		bbr_full_pipe_round(&s->full_pipe, bbr1_max_bw(s));
}

static void bbr1_check_drain(struct bbr1 *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 target;

	if (s->mode == BBR1_STARTUP && s->full_pipe.reached) {
		s->mode = BBR1_DRAIN;
		/* For the reader of tcp_info; nothing here uses it. */
		out->snd_ssthresh =
			bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR_UNIT);
	}
	if (s->mode != BBR1_DRAIN)
		return;
	target = bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR_UNIT);
	if (bbr1_in_net_at_departure(s, in, out, cc_in_flight(in)) <= target)
		bbr1_enter_probe_bw(s, in, out);
}

static void bbr1_save_cwnd(struct bbr1 *s, const struct cc_out *out)
{
	bbr_recovery_save_cwnd(&s->recovery, out->snd_cwnd,
			       s->mode == BBR1_PROBE_RTT);
}

static void bbr1_check_probe_rtt_done(struct bbr1 *s, const struct cc_in *in,
				      struct cc_out *out)
{
	if (!bbr_min_rtt_hold_is_over(&s->min_rtt, in))
		return;
	s->min_rtt.stamp = in->jiffies; /* the next probe is a window away */
	out->snd_cwnd =
		cc_max(cc_max(out->snd_cwnd, s->recovery.prior_cwnd), 1);
	bbr1_leave_probe_rtt(s, in, out);
}

static void bbr1_in_probe_rtt(struct bbr1 *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u32 inflight = cc_in_flight(in);

	/* The low rate of this mode must not count as the path's. */
	out->app_limited = in->delivered + inflight;
	if (!out->app_limited)
		out->app_limited = 1;

	if (!s->min_rtt.done_stamp) {
		if (inflight > BBR1_MIN_CWND)
			return;
		bbr_min_rtt_hold(&s->min_rtt, in, s->probe_rtt_time);
		bbr_round_restart(&s->round, in);
		return;
	}
	if (s->round.start)
		s->min_rtt.round_done = 1;
	if (s->min_rtt.round_done)
		bbr1_check_probe_rtt_done(s, in, out);
}

static void bbr1_update_min_rtt(struct bbr1 *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 expired = bbr_min_rtt_sample(&s->min_rtt, in,
					 s->min_rtt_window * in->hz, 0);

	if (s->probe_rtt_time && expired && !s->idle_restart &&
	    s->mode != BBR1_PROBE_RTT) {
		s->mode = BBR1_PROBE_RTT;
		bbr1_save_cwnd(s, out);
		s->min_rtt.done_stamp = 0;
	}
	if (s->mode == BBR1_PROBE_RTT)
		bbr1_in_probe_rtt(s, in, out);
	if (in->rs_delivered > 0)
		s->idle_restart = 0;
}

/* ---- what is sent ------------------------------------------------------- */

/* high_gain * cwnd / RTT, with 1 ms for a path not yet measured. */
static void bbr1_init_pacing_rate(struct bbr1 *s, const struct cc_in *in,
				  struct cc_out *out)
{
	u32 rtt_us = BBR1_DEFAULT_RTT_US;
	u64 bw;

	if (in->srtt_us) {
		rtt_us = in->srtt_us;
		s->has_seen_rtt = 1;
	}
	bw = cc_div((u64)out->snd_cwnd << BBR_BW_SHIFT, rtt_us);
	out->pacing_rate = bbr1_pacing_rate(s, in, (u32)bw, s->high_gain);
}

/* Until the pipe has been full a lower estimate is only an early one. */
static void bbr1_set_pacing_rate(struct bbr1 *s, const struct cc_in *in,
				 struct cc_out *out, u32 gain)
{
	u64 rate = bbr1_pacing_rate(s, in, bbr1_bw(s), gain);

	if (!s->has_seen_rtt && in->srtt_us)
		bbr1_init_pacing_rate(s, in, out);
	if (s->full_pipe.reached || rate > out->pacing_rate)
		out->pacing_rate = rate;
}

static void bbr1_set_cwnd(struct bbr1 *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 acked = in->rs_acked_sacked;
	u32 cwnd = out->snd_cwnd;

	if (acked) {
		if (bbr_recovery_begins(&s->recovery, in))
			bbr_round_restart(&s->round, in);
		cwnd = bbr_recovery_cwnd(&s->recovery, in, acked, cwnd);
	}
	if (acked && !s->recovery.is_conserving) {
		u32 target = bbr_bdp(bbr1_bw(s), s->min_rtt.us, s->window_gain);

		if (s->full_pipe.reached)
			target += bbr_aggregation_cwnd(&s->aggregation,
						       bbr1_bw(s));
		target = bbr1_add_quantum(s, in, out, target);
		if (s->full_pipe.reached)
			cwnd = cc_min(cc_add_saturate(cwnd, acked), target);
		else if (cwnd < target || in->delivered < BBR_INIT_CWND)
			cwnd = cc_add_saturate(cwnd, acked);
		cwnd = cc_max(cwnd, BBR1_MIN_CWND);
	}
	if (s->mode == BBR1_PROBE_RTT)
		cwnd = cc_min(cwnd, BBR1_MIN_CWND);
	cc_set_cwnd(in, out, cwnd);
}

/* ---- ops ---------------------------------------------------------------- */

static void bbr1_init(struct bbr1 *s, const struct cc_in *in,
		      struct cc_out *out)
{
	out->snd_ssthresh = CC_INFINITE_SSTHRESH;
	s->mode = BBR1_STARTUP;
	s->pacing_gain = s->high_gain;
	s->window_gain = s->high_gain;
	s->idle_restart = 0;
	bbr_recovery_reset(&s->recovery);

	bbr_round_reset(&s->round, in);
	cc_max_filter_reset(&s->bw, s->round.count, 0);
	bbr_min_rtt_reset(&s->min_rtt, in);

	bbr_full_pipe_reset(&s->full_pipe);
	s->cycle_idx = 0;
	s->cycle_mstamp_us = 0;

	s->delivered_mstamp_us = in->now_us;
	bbr1_reset_policer(s, in);

	bbr_aggregation_reset(&s->aggregation, in->now_us);

	s->has_seen_rtt = 0;
	bbr1_init_pacing_rate(s, in, out);
	if (out->pacing_status == CC_PACING_NONE)
		out->pacing_status = CC_PACING_NEEDED;
}

static void bbr1_cong_control(struct bbr1 *s, const struct cc_in *in,
			      struct cc_out *out)
{
	if (in->rs_acked_sacked)
		s->delivered_mstamp_us = in->now_us;

	bbr1_update_bw(s, in, out);
	bbr1_update_ack_aggregation(s, in, out);
	bbr1_update_cycle_phase(s, in, out);
	bbr1_check_full_bw(s, in);
	bbr1_check_drain(s, in, out);
	bbr1_update_min_rtt(s, in, out);
	bbr1_update_gains(s);

	bbr1_set_pacing_rate(s, in, out, s->pacing_gain);
	bbr1_set_cwnd(s, in, out);
}

/* No threshold: the window is only noted, for the end of recovery. */
static void bbr1_ssthresh(struct bbr1 *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)in;
	bbr1_save_cwnd(s, out);
	out->ret = out->snd_ssthresh;
}

/* The slow-down was spurious: look for the full pipe anew. */
static void bbr1_undo_cwnd(struct bbr1 *s, const struct cc_in *in,
			   struct cc_out *out)
{
	bbr_full_pipe_restart(&s->full_pipe);
	bbr1_reset_policer(s, in);
	out->ret = out->snd_cwnd;
}

static void bbr1_set_state(struct bbr1 *s, const struct cc_in *in,
			   struct cc_out *out)
{
	if (in->state != CC_CA_LOSS)
		return;
	s->recovery.prev_ca_state = CC_CA_LOSS;
	s->full_pipe.bw = 0;
	s->round.start = 1; /* a timeout ends the round, and is a loss */
	bbr1_update_policer(s, in, out, 1, 0);
}

/* Sending again after the application paused: no burst beyond bw. */
static void bbr1_restart(struct bbr1 *s, const struct cc_in *in,
			 struct cc_out *out)
{
	s->idle_restart = 1;
	bbr_aggregation_new_epoch(&s->aggregation, in->now_us);
	if (s->mode == BBR1_PROBE_BW)
		bbr1_set_pacing_rate(s, in, out, BBR_UNIT);
	else if (s->mode == BBR1_PROBE_RTT)
		bbr1_check_probe_rtt_done(s, in, out);
}

static void bbr1_cwnd_event(struct bbr1 *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (in->event != CC_EVENT_TX_START)
		return;
	if (in->app_limited)
		bbr1_restart(s, in, out);
	/* Linux moves its stamp when the packet has left, after this event. */
	if (!in->packets_out)
		s->delivered_mstamp_us = in->wstamp_ns / CC_NSEC_PER_USEC;
}

static void bbr1_min_tso_segs(struct bbr1 *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = bbr1_min_tso(out->pacing_rate);
}

/* Three windows of buffer: one in flight, and slow start even in recovery. */
static void bbr1_sndbuf_expand(struct bbr1 *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 3;
}

/* What ss shows of it: bw as used, without the margin. */
CC_HOST_ONLY
static void bbr1_get_info(const struct bbr1 *s, const struct cc_in *in,
			  struct cc_info *info)
{
	info->bw = bbr_bytes_per_sec(bbr1_bw(s), BBR_UNIT, in->mss_bytes, 0);
	info->min_rtt_us = s->min_rtt.us;
	info->pacing_gain = s->pacing_gain;
	info->cwnd_gain = s->window_gain;
	info->phase = s->mode;
}

/* clang-format off */
#define BBR1_OPS(OP)                                                           \
	OP(bbr1, init)                                                         \
	OP(bbr1, ssthresh)                                                     \
	OP(bbr1, cong_control)                                                 \
	OP(bbr1, undo_cwnd)                                                    \
	OP(bbr1, set_state)                                                    \
	OP(bbr1, cwnd_event)                                                   \
	OP(bbr1, min_tso_segs)                                                 \
	OP(bbr1, sndbuf_expand)

/* By enum bbr1_mode. */
CC_GET_INFO(bbr1, struct bbr1, "Startup", "Drain", "ProbeBw", "ProbeRtt")
CC_ALGORITHM(bbr1, struct bbr1, BBR1_PARAMS, BBR1_OPS, 0,
	.summary = "paces at the measured bottleneck rate, two BDP in flight, blind to loss",
	.source = "Cardwell et al., ACM Queue 14(5) 2016; Linux 6.12 tcp_bbr.c",
	.use_when = "long paths with random loss or bloated buffers; not where buffers are shallow and shared",
	.year = 2016,
	CC_HAS_INFO(bbr1))
/* clang-format on */
