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
 *	- delivered_mstamp is not in the contract; it is kept here, as the time
 *	  of the last ACK that delivered something. Linux sets it also when
 *	  sending begins anew with nothing in flight.
 *	- The time share of a TSO burst (sk_pacing_shift) is always the default
 *	  of 1/1024 s; a few wireless drivers set another.
 *	- Comparisons of the policer model use 64 bits where Linux uses 32, so
 *	  they do not overflow above 12 Gbit/s.
 *	- The drain gain follows from the high gain (65536 / high_gain), equal
 *	  to Linux' 88/256 at the default.
 */
#include "cc_algorithm.h"

/* Bandwidth is segments/us << 24: 715 bit/s to 3 Tbit/s at 1500 B, in a u32. */
#define BBR1_BW_SHIFT 24
#define BBR1_BW_UNIT (1u << BBR1_BW_SHIFT)
/* Gains are in 1/256. */
#define BBR1_UNIT_SHIFT 8
#define BBR1_UNIT (1u << BBR1_UNIT_SHIFT)

/* Gain cycle of PROBE_BW: probe, drain what the probe queued, cruise. */
#define BBR1_CYCLE_PHASES 8u
#define BBR1_PROBE_UP_GAIN (BBR1_UNIT * 5 / 4)
#define BBR1_PROBE_DOWN_GAIN (BBR1_UNIT * 3 / 4)
/* Start phases to choose from: all but the draining one. */
#define BBR1_CYCLE_START_PHASES 7u

/* Full pipe: less than 1.25 x growth of bw in 3 rounds (paper, "Startup"). */
#define BBR1_FULL_BW_GROWTH (BBR1_UNIT * 5 / 4)
#define BBR1_FULL_BW_ROUNDS 3u

/* Four segments keep a path with delayed ACKs moving. Segments. */
#define BBR1_MIN_CWND 4u
/* The window before the first RTT sample: RFC 6928. Segments. */
#define BBR1_INIT_CWND 10u
/* RTT assumed for the first pacing rate without a sample. us. */
#define BBR1_DEFAULT_RTT_US 1000u

/* Below 1.2 Mbit/s a burst of one segment, else two. bytes/s. */
#define BBR1_MIN_TSO_RATE (1200000u / 8)
/* A TSO burst is 1/1024 s of the pacing rate (sk_pacing_shift 10), */
#define BBR1_PACING_SHIFT 10
/* at most one skb of 64 KiB less headers (65536 - 1 - 320), and 127 segs. */
#define BBR1_TSO_MAX_BYTES 65215u
#define BBR1_TSO_MAX_SEGS 127u
/* Bursts in flight at the sender's qdisc, its NIC, and the receiver. */
#define BBR1_QUANTUM_BURSTS 3u

/* Policer model ("long term bandwidth"): an interval has 4 to 16 rounds and
 * loses at least 50/256 = 20 % of what it delivers; two intervals agree when
 * they differ by 1/8 or by 4 kbit/s; then their mean is used for 48 rounds. */
#define BBR1_LT_MIN_ROUNDS 4u
#define BBR1_LT_MAX_ROUNDS (4 * BBR1_LT_MIN_ROUNDS)
#define BBR1_LT_LOSS_THRESH 50u
#define BBR1_LT_BW_RATIO (BBR1_UNIT / 8)
#define BBR1_LT_BW_DIFF (4000u / 8)
#define BBR1_LT_USE_ROUNDS 48u

/* ACK aggregation: maximum over two slots of 5 rounds each, at most 100 ms of
 * bw; an epoch ends before its count leaves the 20 bits of Linux. */
#define BBR1_EXTRA_ACKED_ROUNDS 5u
#define BBR1_EXTRA_ACKED_MAX_US 100000u
#define BBR1_ACK_EPOCH_MAX (1u << 20)

/* clang-format off */
#define BBR1_PARAMS(P)                                                         \
	P(high_gain, 739, 256, 1023, "1/256",                                  \
	  "pacing and cwnd gain of STARTUP; 2/ln 2 doubles the rate per round") \
	P(cwnd_gain, 512, 256, 1023, "1/256",                                  \
	  "cwnd over bdp in PROBE_BW; 2 rides out delayed and stretched ACKs") \
	P(bw_window, 10, 2, 255, "rounds",                                     \
	  "window of the bandwidth maximum; Linux: one gain cycle and two")    \
	P(min_rtt_window, 10, 1, 3600, "s",                                    \
	  "age at which min_rtt expires and PROBE_RTT begins; the paper: 10 s") \
	P(probe_rtt_time, 200, 0, 5000, "ms",                                  \
	  "time spent in PROBE_RTT, 0: never probe; the paper: 200 ms")        \
	P(pacing_margin, 1, 0, 50, "%",                                        \
	  "share of bw not used, so that queues drain; Linux: 1")              \
	P(policer_model, 1, 0, 1, "",                                          \
	  "detect token-bucket policers and send at their rate (Linux: 1)")
/* clang-format on */

enum bbr1_mode {
	BBR1_STARTUP,
	BBR1_DRAIN,
	BBR1_PROBE_BW,
	BBR1_PROBE_RTT,
};

struct bbr1 {
	CC_PARAM_FIELDS(BBR1_PARAMS)

	u32 mode;	   /* enum bbr1_mode */
	u32 pacing_gain;   /* of the current mode, 1/256 */
	u32 window_gain;   /* cwnd gain of the current mode, 1/256 */
	u32 has_seen_rtt;  /* 0 or 1: the pacing rate rests on a real RTT */
	u32 idle_restart;  /* 0 or 1: sending again after idle, no ACK yet */
	u32 prior_cwnd;	   /* cwnd before recovery or PROBE_RTT, segments */
	u32 prev_ca_state; /* enum cc_ca_state at the previous ACK */
	u32 packet_conservation; /* 0 or 1: first round of recovery */

	struct cc_max_filter bw;  /* t: rounds, v: segments/us << 24 */
	u32 rounds;		  /* packet-timed rounds so far */
	u32 next_round_delivered; /* the round ends at this in->delivered */
	u32 round_start;	  /* 0 or 1: this ACK begins a round */

	u32 min_rtt_us;		  /* ~0: no sample yet */
	u32 min_rtt_stamp;	  /* when it was taken, jiffies */
	u32 probe_rtt_done_stamp; /* end of PROBE_RTT, jiffies; 0: not set */
	u32 probe_rtt_round_done; /* 0 or 1: a round passed at 4 segments */

	u32 full_bw;	     /* bw that growth is compared with, << 24 */
	u32 full_bw_cnt;     /* rounds without growth */
	u32 full_bw_reached; /* 0 or 1: the pipe has been filled */

	u32 cycle_idx; /* phase of the gain cycle, 0 to 7 */

	u32 lt_is_sampling;    /* 0 or 1 */
	u32 lt_use_bw;	       /* 0 or 1: lt_bw stands for bw */
	u32 lt_rounds;	       /* rounds of the interval, or of using lt_bw */
	u32 lt_bw;	       /* segments/us << 24; 0: none */
	u32 lt_last_delivered; /* in->delivered when the interval began */
	u32 lt_last_lost;      /* in->lost when the interval began */
	u32 lt_last_stamp_ms;  /* time when the interval began, ms, wraps */

	u32 ack_epoch_acked;	/* segments delivered in the epoch */
	u32 extra_acked_rounds; /* age of the current slot, rounds */
	u32 extra_acked_slot;	/* 0 or 1 */
	u16 extra_acked[2];	/* maxima, segments, modulo 2^16 as in Linux */

	u64 delivered_mstamp_us; /* last ACK that delivered something */
	u64 cycle_mstamp_us;	 /* begin of the phase */
	u64 ack_epoch_mstamp_us; /* begin of the epoch */
};

/* ---- the model's values ------------------------------------------------- */

static u32 bbr1_max_bw(const struct bbr1 *s)
{
	return cc_max_filter_get(&s->bw);
}

static u32 bbr1_bw(const struct bbr1 *s)
{
	return s->lt_use_bw ? s->lt_bw : bbr1_max_bw(s);
}

/* bw with a gain, less the margin, in bytes/s. Up to 2.9 Tbit/s in 64 bits. */
static u64 bbr1_bytes_per_sec(const struct bbr1 *s, const struct cc_in *in,
			      u64 bw, u32 gain)
{
	u32 share_pct = 100 - cc_min(s->pacing_margin, 100);
	u64 rate = bw * in->mss_bytes;

	rate = (rate * gain) >> BBR1_UNIT_SHIFT;
	rate *= CC_USEC_PER_SEC / 100 * share_pct;
	return rate >> BBR1_BW_SHIFT;
}

static u64 bbr1_pacing_rate(const struct bbr1 *s, const struct cc_in *in,
			    u64 bw, u32 gain)
{
	return cc_min64(bbr1_bytes_per_sec(s, in, bw, gain),
			in->max_pacing_rate);
}

static u32 bbr1_min_tso(const struct cc_out *out)
{
	return out->pacing_rate < BBR1_MIN_TSO_RATE ? 1 : 2;
}

/* Segments of the burst that the stack will send at this pacing rate. */
static u32 bbr1_tso_goal(const struct cc_in *in, const struct cc_out *out)
{
	u64 bytes = cc_min64(out->pacing_rate >> BBR1_PACING_SHIFT,
			     BBR1_TSO_MAX_BYTES);
	u32 segs = (u32)cc_div(bytes, in->mss_bytes);

	return cc_min(cc_max(segs, bbr1_min_tso(out)), BBR1_TSO_MAX_SEGS);
}

static u32 bbr1_bdp(const struct bbr1 *s, u32 bw, u32 gain)
{
	u64 w = (u64)bw * s->min_rtt_us;

	if (s->min_rtt_us == CC_U32_MAX)
		return BBR1_INIT_CWND;
	/* Rounded up: rounding down would feed back into a lower bw. */
	return (u32)((((w * gain) >> BBR1_UNIT_SHIFT) + BBR1_BW_UNIT - 1) >>
		     BBR1_BW_SHIFT);
}

/* Room for whole bursts at both ends, and for ACKs of two segments each. */
static u32 bbr1_add_quantum(const struct bbr1 *s, const struct cc_in *in,
			    const struct cc_out *out, u32 cwnd)
{
	cwnd += BBR1_QUANTUM_BURSTS * bbr1_tso_goal(in, out);
	cwnd = (cwnd + 1) & ~1u;
	/* With a small bdp 1.25 x rounds to nothing: make probing real. */
	if (s->mode == BBR1_PROBE_BW && s->cycle_idx == 0)
		cwnd += 2;
	return cwnd;
}

static u32 bbr1_inflight(const struct bbr1 *s, const struct cc_in *in,
			 const struct cc_out *out, u32 bw, u32 gain)
{
	return bbr1_add_quantum(s, in, out, bbr1_bdp(s, bw, gain));
}

/*
 * Packets that will be in the network when the next one may depart: pacing
 * has already decided the departures until then. When filling, that packet's
 * burst counts as well.
 */
static u32 bbr1_in_net_at_departure(const struct bbr1 *s,
				    const struct cc_in *in,
				    const struct cc_out *out, u32 inflight)
{
	u64 wait_us =
		cc_elapsed(in->wstamp_ns, in->clock_ns) / CC_NSEC_PER_USEC;
	u32 delivered = (u32)(((u64)bbr1_bw(s) * wait_us) >> BBR1_BW_SHIFT);

	if (s->pacing_gain > BBR1_UNIT)
		inflight += bbr1_tso_goal(in, out);
	return inflight > delivered ? inflight - delivered : 0;
}

/* ---- modes -------------------------------------------------------------- */

static u32 bbr1_cycle_gain(u32 phase)
{
	if (phase == 0)
		return BBR1_PROBE_UP_GAIN;
	return phase == 1 ? BBR1_PROBE_DOWN_GAIN : BBR1_UNIT;
}

static void bbr1_next_phase(struct bbr1 *s)
{
	s->cycle_idx = (s->cycle_idx + 1) % BBR1_CYCLE_PHASES;
	s->cycle_mstamp_us = s->delivered_mstamp_us;
}

/* A random phase to begin with, so that flows do not probe in step. */
static void bbr1_enter_probe_bw(struct bbr1 *s, const struct cc_in *in)
{
	s->mode = BBR1_PROBE_BW;
	s->cycle_idx = BBR1_CYCLE_PHASES - 1 -
		       cc_random_below(in->random, BBR1_CYCLE_START_PHASES);
	bbr1_next_phase(s);
}

static void bbr1_leave_probe_rtt(struct bbr1 *s, const struct cc_in *in)
{
	if (s->full_bw_reached)
		bbr1_enter_probe_bw(s, in);
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
		s->pacing_gain =
			(u32)cc_div(BBR1_UNIT * BBR1_UNIT, s->high_gain);
		s->window_gain = s->high_gain; /* keep cwnd, pacing drains */
		break;
	case BBR1_PROBE_BW:
		s->pacing_gain = s->lt_use_bw ? BBR1_UNIT
					      : bbr1_cycle_gain(s->cycle_idx);
		s->window_gain = s->cwnd_gain;
		break;
	default:
		s->pacing_gain = BBR1_UNIT;
		s->window_gain = BBR1_UNIT;
		break;
	}
}

/* ---- policer model ------------------------------------------------------ */

static u32 bbr1_delivered_ms(const struct bbr1 *s)
{
	return (u32)(s->delivered_mstamp_us / CC_USEC_PER_MSEC);
}

static void bbr1_lt_new_interval(struct bbr1 *s, const struct cc_in *in)
{
	s->lt_last_stamp_ms = bbr1_delivered_ms(s);
	s->lt_last_delivered = in->delivered;
	s->lt_last_lost = in->lost;
	s->lt_rounds = 0;
}

static void bbr1_lt_reset(struct bbr1 *s, const struct cc_in *in)
{
	s->lt_bw = 0;
	s->lt_use_bw = 0;
	s->lt_is_sampling = 0;
	bbr1_lt_new_interval(s, in);
}

static void bbr1_lt_interval_done(struct bbr1 *s, const struct cc_in *in,
				  u32 bw)
{
	u32 diff = bw > s->lt_bw ? bw - s->lt_bw : s->lt_bw - bw;

	if (s->lt_bw &&
	    ((u64)diff * BBR1_UNIT <= (u64)s->lt_bw * BBR1_LT_BW_RATIO ||
	     bbr1_bytes_per_sec(s, in, diff, BBR1_UNIT) <= BBR1_LT_BW_DIFF)) {
		s->lt_bw = (u32)(((u64)bw + s->lt_bw) >> 1);
		s->lt_use_bw = 1;
		s->pacing_gain = BBR1_UNIT;
		s->lt_rounds = 0;
		return;
	}
	s->lt_bw = bw;
	bbr1_lt_new_interval(s, in);
}

/*
 * A token bucket lets a burst through and then drops to its rate, again and
 * again. Sampling waits for the first loss (the bucket is empty) and an
 * interval ends with a loss (empty again), so its mean is the token rate.
 */
static void bbr1_lt_sample(struct bbr1 *s, const struct cc_in *in, u32 losses,
			   u32 is_app_limited)
{
	u32 lost, delivered, ms;

	if (!s->policer_model)
		return;
	if (s->lt_use_bw) {
		if (s->mode == BBR1_PROBE_BW && s->round_start &&
		    ++s->lt_rounds >= BBR1_LT_USE_ROUNDS) {
			bbr1_lt_reset(s, in);
			bbr1_enter_probe_bw(s, in);
		}
		return;
	}

	if (!s->lt_is_sampling) {
		if (!losses)
			return;
		bbr1_lt_new_interval(s, in);
		s->lt_is_sampling = 1;
	}
	if (is_app_limited) {
		bbr1_lt_reset(s, in);
		return;
	}
	if (s->round_start)
		s->lt_rounds++;
	if (s->lt_rounds < BBR1_LT_MIN_ROUNDS)
		return;
	if (s->lt_rounds > BBR1_LT_MAX_ROUNDS) {
		bbr1_lt_reset(s, in);
		return;
	}
	if (!losses)
		return;

	lost = in->lost - s->lt_last_lost;
	delivered = in->delivered - s->lt_last_delivered;
	if (!delivered || ((u64)lost << BBR1_UNIT_SHIFT) <
				  (u64)delivered * BBR1_LT_LOSS_THRESH)
		return;

	ms = bbr1_delivered_ms(s) - s->lt_last_stamp_ms;
	if ((s32)ms < 1)
		return;
	if (ms >= CC_U32_MAX / CC_USEC_PER_MSEC) {
		bbr1_lt_reset(s, in);
		return;
	}
	bbr1_lt_interval_done(s, in,
			      (u32)cc_div((u64)delivered << BBR1_BW_SHIFT,
					  ms * CC_USEC_PER_MSEC));
}

/* ---- the steps of the model, in the order of an ACK --------------------- */

static void bbr1_update_bw(struct bbr1 *s, const struct cc_in *in)
{
	u64 bw;

	s->round_start = 0;
	if (in->rs_delivered < 0 || in->rs_interval_us <= 0)
		return;

	/* A round ends when a packet sent after its beginning is acked. */
	if (!cc_before(in->rs_prior_delivered, s->next_round_delivered)) {
		s->next_round_delivered = in->delivered;
		s->rounds++;
		s->round_start = 1;
		s->packet_conservation = 0;
	}
	bbr1_lt_sample(s, in, in->rs_losses, in->rs_is_app_limited);

	bw = cc_div((u64)in->rs_delivered << BBR1_BW_SHIFT,
		    (u64)in->rs_interval_us);
	/* An app-limited sample says what the application sent, not what the
	 * path can carry, unless it is above all we know. */
	if (!in->rs_is_app_limited || bw >= bbr1_max_bw(s))
		cc_max_filter_update(&s->bw, s->bw_window, s->rounds, (u32)bw);
}

/*
 * How much more than bw * time is acked at once? Where ACKs come in lumps
 * (wifi, cable, GRO) cwnd needs that much on top to keep sending in between.
 */
static void bbr1_update_ack_aggregation(struct bbr1 *s, const struct cc_in *in,
					const struct cc_out *out)
{
	u32 slot = s->extra_acked_slot & 1;
	u32 epoch_us, expected, extra;

	if (!in->rs_acked_sacked || in->rs_delivered < 0 ||
	    in->rs_interval_us <= 0)
		return;

	if (s->round_start &&
	    ++s->extra_acked_rounds >= BBR1_EXTRA_ACKED_ROUNDS) {
		s->extra_acked_rounds = 0;
		slot ^= 1;
		s->extra_acked_slot = slot;
		s->extra_acked[slot] = 0;
	}

	epoch_us =
		(u32)cc_elapsed(s->delivered_mstamp_us, s->ack_epoch_mstamp_us);
	expected = (u32)(((u64)bbr1_bw(s) * epoch_us) >> BBR1_BW_SHIFT);
	/* No faster than bw, or too long an epoch: begin a new one. */
	if (s->ack_epoch_acked <= expected ||
	    (u64)s->ack_epoch_acked + in->rs_acked_sacked >=
		    BBR1_ACK_EPOCH_MAX) {
		s->ack_epoch_acked = 0;
		s->ack_epoch_mstamp_us = s->delivered_mstamp_us;
		expected = 0;
	}
	s->ack_epoch_acked =
		cc_min(cc_add_saturate(s->ack_epoch_acked, in->rs_acked_sacked),
		       BBR1_ACK_EPOCH_MAX - 1);
	extra = cc_min(s->ack_epoch_acked - expected, out->snd_cwnd);
	if (extra > s->extra_acked[slot])
		s->extra_acked[slot] = (u16)extra;
}

static u32 bbr1_phase_is_over(const struct bbr1 *s, const struct cc_in *in,
			      const struct cc_out *out)
{
	u32 full_length = (u32)cc_elapsed(s->delivered_mstamp_us,
					  s->cycle_mstamp_us) > s->min_rtt_us;
	u32 in_net, target;

	if (s->pacing_gain == BBR1_UNIT)
		return full_length;

	in_net = bbr1_in_net_at_departure(s, in, out, in->rs_prior_in_flight);
	if (s->pacing_gain > BBR1_UNIT) {
		/* Hold the probe until it is in flight, or does not fit. */
		target = bbr1_inflight(s, in, out, bbr1_max_bw(s),
				       s->pacing_gain);
		return full_length && (in->rs_losses || in_net >= target);
	}
	target = bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR1_UNIT);
	return full_length || in_net <= target;
}

static void bbr1_update_cycle_phase(struct bbr1 *s, const struct cc_in *in,
				    const struct cc_out *out)
{
	if (s->mode == BBR1_PROBE_BW && bbr1_phase_is_over(s, in, out))
		bbr1_next_phase(s);
}

static void bbr1_check_full_bw(struct bbr1 *s, const struct cc_in *in)
{
	u32 goal;

	if (s->full_bw_reached || !s->round_start || in->rs_is_app_limited)
		return;
	goal = (u32)(((u64)s->full_bw * BBR1_FULL_BW_GROWTH) >>
		     BBR1_UNIT_SHIFT);
	if (bbr1_max_bw(s) >= goal) {
		s->full_bw = bbr1_max_bw(s);
		s->full_bw_cnt = 0;
		return;
	}
	if (++s->full_bw_cnt >= BBR1_FULL_BW_ROUNDS)
		s->full_bw_reached = 1;
}

static void bbr1_check_drain(struct bbr1 *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 target;

	if (s->mode == BBR1_STARTUP && s->full_bw_reached) {
		s->mode = BBR1_DRAIN;
		/* For the reader of tcp_info; nothing here uses it. */
		out->snd_ssthresh =
			bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR1_UNIT);
	}
	if (s->mode != BBR1_DRAIN)
		return;
	target = bbr1_inflight(s, in, out, bbr1_max_bw(s), BBR1_UNIT);
	if (bbr1_in_net_at_departure(s, in, out, cc_in_flight(in)) <= target)
		bbr1_enter_probe_bw(s, in);
}

/* Remember a cwnd that was good: not one already cut. */
static void bbr1_save_cwnd(struct bbr1 *s, const struct cc_out *out)
{
	if (s->prev_ca_state < CC_CA_RECOVERY && s->mode != BBR1_PROBE_RTT)
		s->prior_cwnd = out->snd_cwnd;
	else
		s->prior_cwnd = cc_max(s->prior_cwnd, out->snd_cwnd);
}

static void bbr1_check_probe_rtt_done(struct bbr1 *s, const struct cc_in *in,
				      struct cc_out *out)
{
	if (!s->probe_rtt_done_stamp ||
	    !cc_after(in->jiffies, s->probe_rtt_done_stamp))
		return;
	s->min_rtt_stamp = in->jiffies; /* the next probe is a window away */
	out->snd_cwnd = cc_max(cc_max(out->snd_cwnd, s->prior_cwnd), 1);
	bbr1_leave_probe_rtt(s, in);
}

static void bbr1_in_probe_rtt(struct bbr1 *s, const struct cc_in *in,
			      struct cc_out *out)
{
	u32 inflight = cc_in_flight(in);

	/* The low rate of this mode must not count as the path's. */
	out->app_limited = in->delivered + inflight;
	if (!out->app_limited)
		out->app_limited = 1;

	if (!s->probe_rtt_done_stamp) {
		if (inflight > BBR1_MIN_CWND)
			return;
		s->probe_rtt_done_stamp =
			in->jiffies +
			cc_msecs_to_jiffies(s->probe_rtt_time, in->hz);
		s->probe_rtt_round_done = 0;
		s->next_round_delivered = in->delivered;
		return;
	}
	if (s->round_start)
		s->probe_rtt_round_done = 1;
	if (s->probe_rtt_round_done)
		bbr1_check_probe_rtt_done(s, in, out);
}

static void bbr1_update_min_rtt(struct bbr1 *s, const struct cc_in *in,
				struct cc_out *out)
{
	u32 expired = cc_after(in->jiffies,
			       s->min_rtt_stamp + s->min_rtt_window * in->hz);

	if (in->rs_rtt_us >= 0 && (in->rs_rtt_us < (s64)s->min_rtt_us ||
				   (expired && !in->rs_is_ack_delayed))) {
		s->min_rtt_us = (u32)in->rs_rtt_us;
		s->min_rtt_stamp = in->jiffies;
	}
	if (s->probe_rtt_time && expired && !s->idle_restart &&
	    s->mode != BBR1_PROBE_RTT) {
		s->mode = BBR1_PROBE_RTT;
		bbr1_save_cwnd(s, out);
		s->probe_rtt_done_stamp = 0;
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
	bw = cc_div((u64)out->snd_cwnd << BBR1_BW_SHIFT, rtt_us);
	out->pacing_rate = bbr1_pacing_rate(s, in, (u32)bw, s->high_gain);
}

/* Until the pipe has been full a lower estimate is only an early one. */
static void bbr1_set_pacing_rate(struct bbr1 *s, const struct cc_in *in,
				 struct cc_out *out, u32 gain)
{
	u64 rate = bbr1_pacing_rate(s, in, bbr1_bw(s), gain);

	if (!s->has_seen_rtt && in->srtt_us)
		bbr1_init_pacing_rate(s, in, out);
	if (s->full_bw_reached || rate > out->pacing_rate)
		out->pacing_rate = rate;
}

/*
 * Recovery: in its first round send what is acked (packet conservation), then
 * at most twice that; at its end take back the window from before.
 * Returns 1 when *cwnd is final.
 */
static u32 bbr1_recover_or_restore(struct bbr1 *s, const struct cc_in *in,
				   u32 acked, u32 *cwnd)
{
	u32 prev = s->prev_ca_state, now = in->ca_state;
	u32 w = *cwnd;

	if (in->rs_losses)
		w = w > in->rs_losses ? w - in->rs_losses : 1;

	if (now == CC_CA_RECOVERY && prev != CC_CA_RECOVERY) {
		s->packet_conservation = 1;
		s->next_round_delivered = in->delivered;
		w = cc_in_flight(in) + acked;
	} else if (prev >= CC_CA_RECOVERY && now < CC_CA_RECOVERY) {
		w = cc_max(w, s->prior_cwnd);
		s->packet_conservation = 0;
	}
	s->prev_ca_state = now;

	if (s->packet_conservation)
		w = cc_max(w, cc_in_flight(in) + acked);
	*cwnd = w;
	return s->packet_conservation;
}

static u32 bbr1_extra_acked(const struct bbr1 *s)
{
	u32 bw_limit;

	if (!s->full_bw_reached)
		return 0;
	bw_limit = (u32)(((u64)bbr1_bw(s) * BBR1_EXTRA_ACKED_MAX_US) >>
			 BBR1_BW_SHIFT);
	return cc_min(cc_max(s->extra_acked[0], s->extra_acked[1]), bw_limit);
}

static void bbr1_set_cwnd(struct bbr1 *s, const struct cc_in *in,
			  struct cc_out *out)
{
	u32 acked = in->rs_acked_sacked;
	u32 cwnd = out->snd_cwnd;

	if (acked && !bbr1_recover_or_restore(s, in, acked, &cwnd)) {
		u32 target = bbr1_bdp(s, bbr1_bw(s), s->window_gain) +
			     bbr1_extra_acked(s);

		target = bbr1_add_quantum(s, in, out, target);
		if (s->full_bw_reached)
			cwnd = cc_min(cc_add_saturate(cwnd, acked), target);
		else if (cwnd < target || in->delivered < BBR1_INIT_CWND)
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
	s->prior_cwnd = 0;
	s->prev_ca_state = CC_CA_OPEN;
	s->packet_conservation = 0;

	s->rounds = 0;
	s->next_round_delivered = in->delivered;
	s->round_start = 0;
	cc_max_filter_reset(&s->bw, s->rounds, 0);

	s->min_rtt_us = in->min_rtt_us;
	s->min_rtt_stamp = in->jiffies;
	s->probe_rtt_done_stamp = 0;
	s->probe_rtt_round_done = 0;

	s->full_bw = 0;
	s->full_bw_cnt = 0;
	s->full_bw_reached = 0;
	s->cycle_idx = 0;
	s->cycle_mstamp_us = 0;

	s->delivered_mstamp_us = in->now_us;
	bbr1_lt_reset(s, in);

	s->ack_epoch_mstamp_us = in->now_us;
	s->ack_epoch_acked = 0;
	s->extra_acked_rounds = 0;
	s->extra_acked_slot = 0;
	s->extra_acked[0] = 0;
	s->extra_acked[1] = 0;

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

	bbr1_update_bw(s, in);
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
	s->full_bw = 0;
	s->full_bw_cnt = 0;
	bbr1_lt_reset(s, in);
	out->ret = out->snd_cwnd;
}

static void bbr1_set_state(struct bbr1 *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)out;
	if (in->state != CC_CA_LOSS)
		return;
	s->prev_ca_state = CC_CA_LOSS;
	s->full_bw = 0;
	s->round_start = 1; /* a timeout ends the round, and is a loss */
	bbr1_lt_sample(s, in, 1, 0);
}

/* Sending again after the application paused: no burst beyond bw. */
static void bbr1_cwnd_event(struct bbr1 *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (in->event != CC_EVENT_TX_START || !in->app_limited)
		return;
	s->idle_restart = 1;
	s->ack_epoch_mstamp_us = in->now_us;
	s->ack_epoch_acked = 0;
	if (s->mode == BBR1_PROBE_BW)
		bbr1_set_pacing_rate(s, in, out, BBR1_UNIT);
	else if (s->mode == BBR1_PROBE_RTT)
		bbr1_check_probe_rtt_done(s, in, out);
}

static void bbr1_min_tso_segs(struct bbr1 *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = bbr1_min_tso(out);
}

/* Three windows of buffer: one in flight, and slow start even in recovery. */
static void bbr1_sndbuf_expand(struct bbr1 *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 3;
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

CC_ALGORITHM(bbr1, struct bbr1, BBR1_PARAMS, BBR1_OPS, 0,
	.summary = "paces at the measured bottleneck rate, two BDP in flight, blind to loss",
	.source = "Cardwell et al., ACM Queue 14(5) 2016; Linux 6.12 tcp_bbr.c",
	.use_when = "long paths with random loss or bloated buffers; not where buffers are shallow and shared",
	.year = 2016)
/* clang-format on */
