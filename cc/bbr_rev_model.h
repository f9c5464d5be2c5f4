/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev_model.h - the model of the path that BBR versions 2 and 3 keep: how
 * fast and how much it takes, each with a long-term and a short-term bound.
 *
 *	bw_hi		largest delivery rate of the last one or two cycles
 *	bw_lo		lower, while losses say that less is to be had now
 *	inflight_hi	largest flight that a probe sent without too much loss
 *	inflight_lo	lower, while losses or marks say so
 *
 * Included by bbr_rev.h only.
 *
 * Source: as bbr3.c and bbr2.c.
 */
#ifndef KNEE_BBR_REV_MODEL_H
#define KNEE_BBR_REV_MODEL_H

#include "bbr_aggregation.h"
#include "bbr_min_rtt.h"
#include "bbr_model.h"
#include "bbr_round.h"
#include "bbr_tx.h"

/* A bound that is not set. */
#define BBR_REV_UNSET CC_U32_MAX
/* Four segments keep a path with delayed ACKs moving. Segments. */
#define BBR_REV_MIN_CWND 4u
/* RTT assumed for the first pacing rate without a sample. us. */
#define BBR_REV_DEFAULT_RTT_US 1000u
/* Every 512 us of min_rtt halve the share of a burst that the RTT allows. */
#define BBR_REV_TSO_RTT_SHIFT 9
#define BBR_REV_TSO_RTT_BYTES 65536u

/* clang-format off */
#define BBR_REV_PARAMS(P)                                                      \
	P(startup_pacing_gain, BBR_DFLT_STARTUP_PACING_GAIN, 256, 1023, "1/256", \
	  "pacing gain of STARTUP; v3: 4 ln 2 = 2.77, v2: 2 / ln 2 = 2.89")    \
	P(startup_cwnd_gain, BBR_DFLT_STARTUP_CWND_GAIN, 256, 1023, "1/256",   \
	  "cwnd over bdp in STARTUP and DRAIN; v3: 2, v2: 2.89")               \
	P(drain_gain, 88, 16, 255, "1/256",                                    \
	  "pacing gain of DRAIN; google: 0.34, draft-ietf-ccwg-bbr-05: 0.5")   \
	P(drain_rounds, BBR_DFLT_DRAIN_ROUNDS, 0, 255, "rounds",               \
	  "rounds after which DRAIN ends, 0: any; v3: 3, of the draft; v2: 0") \
	P(up_gain, 320, 257, 1023, "1/256",                                    \
	  "pacing gain of ProbeBW_UP; 1.25")                                   \
	P(down_gain, BBR_DFLT_DOWN_GAIN, 64, 255, "1/256",                     \
	  "pacing gain of ProbeBW_DOWN; v3: 0.91, v2: 0.75")                   \
	P(cwnd_gain, 512, 256, 1023, "1/256",                                  \
	  "cwnd over bdp in ProbeBW; 2")                                       \
	P(up_cwnd_gain, BBR_DFLT_UP_CWND_GAIN, 256, 1023, "1/256",             \
	  "cwnd over bdp in ProbeBW_UP; v3: 2.25, v2: 2")                      \
	P(loss_thresh, 5, 1, 255, "1/256",                                     \
	  "loss rate of a probe that is too high; google: 2 % of 256, cut to 5") \
	P(beta, 76, 1, 255, "1/256",                                           \
	  "share given up at a loss; google: 30 % of 256, cut to 76")          \
	P(headroom, 38, 0, 255, "1/256",                                       \
	  "share of inflight_hi left to others while cruising; 15 %")          \
	P(full_loss_count, BBR_DFLT_FULL_LOSS_COUNT, 0, 15, "",                \
	  "ACKs with loss in a round that end STARTUP, 0: never; v3: 6, v2: 8") \
	P(probe_wait, 2000000, 1, 3600000000u, "us",                           \
	  "least time between probes for bandwidth; 2 s")                      \
	P(probe_wait_random, 1000000, 1, 3600000000u, "us",                    \
	  "random time on top; 1 s")                                           \
	P(probe_max_rounds, 63, 1, 255, "rounds",                              \
	  "rounds after which Reno would probe at a BDP of 62 packets; 63")    \
	P(min_rtt_window, 10, 1, 3600, "s",                                    \
	  "window of min_rtt; 10 s")                                           \
	P(probe_rtt_interval, 5000, 1, 3600000, "ms",                          \
	  "age of the lowest RTT at which PROBE_RTT begins; 5 s")              \
	P(probe_rtt_time, 200, 0, 5000, "ms",                                  \
	  "time spent in PROBE_RTT, 0: never probe; 200 ms")                   \
	P(probe_rtt_cwnd_gain, 128, 1, 512, "1/256",                           \
	  "cwnd over bdp in PROBE_RTT; 0.5")                                   \
	P(pacing_margin, 1, 0, 50, "%",                                        \
	  "share of bw not used, so that queues drain; 1 %")                   \
	P(ecn, 0, 0, 1, "",                                                    \
	  "take CE marks for those of a shallow threshold; google: by route, off") \
	P(ecn_max_rtt, 5000, 0, 10000000, "us",                                \
	  "largest RTT at which marks are used; 5 ms")                         \
	P(ecn_factor, 85, 0, 256, "1/256",                                     \
	  "weight of the mark rate in a cut; 1/3")                             \
	P(ecn_thresh, 128, 0, 256, "1/256",                                    \
	  "mark rate of a probe that is too high; 0.5")                        \
	P(approximate, 0, 0, 1, "",                                            \
	  "rebuild what was in flight and lost as where the stack does not tell (bbr_tx.h)") \
	P(fast_path, 1, 0, 1, "",                                              \
	  "skip samples of application-limited flows below bw, as google does") \
	BBR_REV_OWN_PARAMS(P)
/* clang-format on */

enum bbr_rev_mode {
	BBR_REV_STARTUP,
	BBR_REV_DRAIN,
	BBR_REV_PROBE_BW,
	BBR_REV_PROBE_RTT,
};

/* Phases of PROBE_BW. */
enum bbr_rev_phase {
	BBR_REV_DOWN,
	BBR_REV_CRUISE,
	BBR_REV_REFILL,
	BBR_REV_UP,
};

/* What the ACKs of now tell of: the probe that was sent a round ago. */
enum bbr_rev_acks {
	BBR_REV_ACKS_NONE,
	BBR_REV_ACKS_REFILLING,
	BBR_REV_ACKS_STARTING,
	BBR_REV_ACKS_FEEDBACK,
	BBR_REV_ACKS_STOPPING,
};

/* The probe that losses ended: what to return to when they prove spurious. */
enum bbr_rev_undo {
	BBR_REV_UNDO_NONE,
	BBR_REV_UNDO_STARTUP,
	BBR_REV_UNDO_UP,
};

struct bbr_rev {
	CC_PARAM_FIELDS(BBR_REV_PARAMS)

	u32 is_ready;	   /* 0 or 1: init() has been called */
	u32 mode;	   /* enum bbr_rev_mode */
	u32 phase;	   /* enum bbr_rev_phase */
	u32 acks;	   /* enum bbr_rev_acks */
	u32 pacing_gain;   /* of the mode and phase, 1/256 */
	u32 window_gain;   /* the same for cwnd, 1/256 */
	u32 has_seen_rtt;  /* 0 or 1: the pacing rate rests on a real RTT */
	u32 idle_restart;  /* 0 or 1: sending again after idle, no ACK yet */
	u32 try_fast_path; /* 0 or 1: cwnd is at its target, in this phase */
	u32 init_cwnd;	   /* segments */
	u32 prior_cwnd;	   /* to take back after recovery, segments */
	u32 prev_ca_state; /* enum cc_ca_state at the previous ACK */

	struct bbr_round round;
	u32 rounds_since_probe;
	u32 drain_start_round;	  /* round.count at the begin of DRAIN */
	u32 loss_round_delivered; /* the loss round ends at in->delivered */
	u32 loss_round_start;	  /* 0 or 1: this ACK begins one */

	/* bandwidth, segments/us << 24 */
	u32 sample_bw; /* of this ACK; 0: none */
	u32 bw_hi[2];  /* maximum of the last cycle and of this one */
	u32 bw_lo;     /* BBR_REV_UNSET, or the short-term bound */
	u32 bw_latest; /* maximum of the loss round */
	u32 bw_upper;  /* version 2: unset, or what marks left of bw_hi */

	/* volume, segments */
	u32 inflight_hi;
	u32 inflight_lo;
	u32 inflight_latest; /* most delivered in an interval of the round */

	/* the same before the last loss, for undo */
	u32 undo_is_saved; /* 0 or 1: of the recovery under way */
	u32 undo_probe;	   /* enum bbr_rev_undo */
	u32 undo_bw_lo;
	u32 undo_inflight_lo;
	u32 undo_inflight_hi;

	struct bbr_min_rtt probe_rtt_min; /* of probe_rtt_interval */
	u32 min_rtt_us;			  /* of min_rtt_window; ~0: none */
	u32 min_rtt_stamp;		  /* jiffies */
	struct bbr_aggregation aggregation;

	u32 full_bw;	     /* that growth is compared with */
	u32 full_bw_rounds;  /* without growth */
	u32 full_bw_now;     /* 0 or 1: no growth any more in this probe */
	u32 full_bw_reached; /* 0 or 1: the pipe has been filled once */

	u32 noted_lost;	   /* in->lost that has been looked at */
	u32 loss_in_round; /* 0 or 1, as the three below */
	u32 loss_in_cycle;
	u32 ecn_in_round;
	u32 ecn_in_cycle;
	u32 loss_acks_in_round; /* ACKs with loss in this round, to 15 */
	u32 tlp_may_repair;	/* 0 or 1: CWR was entered, */
	u32 tlp_snd_una;	/* with this acked, bytes */

	u32 probe_samples;   /* 0 or 1: ACKs tell of a probe */
	u32 probe_was_good;  /* 0 or 1: one of them was not too much */
	u32 prev_too_high;   /* 0 or 1: the last probe lost too much */
	u32 stopped_risky;   /* 0 or 1: it stopped at inflight_hi, in time */
	u32 up_count;	     /* acked segments per segment of inflight_hi */
	u32 up_acks;	     /* segments acked toward the next */
	u32 up_rounds;	     /* rounds in UP */
	u32 probe_wait_us;   /* from the begin of DOWN to the next probe */
	u64 phase_mstamp_us; /* begin of the wait, or of UP */
	u64 delivered_mstamp_us; /* last ACK that delivered something */

	u32 ecn_eligible;    /* 0 or 1: marks are used */
	u32 ecn_alpha;	     /* mark rate, smoothed, 1/256 */
	u32 alpha_delivered; /* in->delivered, delivered_ce of its last update */
	u32 alpha_delivered_ce;
	u32 startup_ecn_rounds; /* rounds in a row with too many marks */

	struct bbr_tx tx;
};

/* ---- values ------------------------------------------------------------- */

static u32 bbr_rev_max_bw(const struct bbr_rev *s)
{
	return cc_max(s->bw_hi[0], s->bw_hi[1]);
}

/* What each version says (bbr2.c, bbr3.c): the bandwidth in use, and the
 * segments of its smallest burst. */
static u32 bbr_rev_bw(const struct bbr_rev *s);
static u32 bbr_rev_min_burst(const struct cc_out *out);

/* Segments of the burst that the stack will send. */
static u32 bbr_rev_burst(const struct bbr_rev *s, const struct cc_in *in,
			 const struct cc_out *out)
{
	u64 bytes = out->pacing_rate >> BBR_PACING_SHIFT;
	u32 halvings = s->min_rtt_us >> BBR_REV_TSO_RTT_SHIFT;

	if (halvings < 32)
		bytes += BBR_REV_TSO_RTT_BYTES >> halvings;
	bytes = cc_min64(bytes, BBR_TSO_MAX_BYTES);
	return cc_max((u32)cc_div(bytes, in->mss_bytes),
		      bbr_rev_min_burst(out));
}

/* Room for whole bursts at both ends and for ACKs of two segments each. */
static u32 bbr_rev_quantized(const struct bbr_rev *s, const struct cc_in *in,
			     const struct cc_out *out, u32 cwnd)
{
	cwnd = cc_max(cwnd, BBR_QUANTUM_BURSTS * bbr_rev_burst(s, in, out));
	cwnd = cc_max(cwnd, BBR_REV_MIN_CWND);
	/* With a small bdp 1.25 x rounds to nothing: make probing real. */
	if (s->mode == BBR_REV_PROBE_BW && s->phase == BBR_REV_UP)
		cwnd = cc_add_saturate(cwnd, 2);
	return cwnd;
}

static u32 bbr_rev_bdp(const struct bbr_rev *s, u32 bw, u32 gain)
{
	if (s->min_rtt_us == CC_U32_MAX)
		return s->init_cwnd;
	return bbr_bdp(bw, s->min_rtt_us, gain);
}

static u32 bbr_rev_inflight(const struct bbr_rev *s, const struct cc_in *in,
			    const struct cc_out *out, u32 bw, u32 gain)
{
	return bbr_rev_quantized(s, in, out, bbr_rev_bdp(s, bw, gain));
}

/* One bdp, unless congestion has cut the window below it. */
static u32 bbr_rev_target_inflight(const struct bbr_rev *s,
				   const struct cc_in *in,
				   const struct cc_out *out)
{
	return cc_min(bbr_rev_inflight(s, in, out, bbr_rev_bw(s), BBR_UNIT),
		      out->snd_cwnd);
}

/* Packets that will be in the network when the next one may depart. */
static u32 bbr_rev_in_net_at_departure(const struct bbr_rev *s,
				       const struct cc_in *in,
				       const struct cc_out *out, u32 inflight)
{
	u32 delivered = bbr_delivered_at_departure(in, bbr_rev_bw(s));

	if (s->pacing_gain > BBR_UNIT)
		inflight = cc_add_saturate(inflight, bbr_rev_burst(s, in, out));
	return inflight > delivered ? inflight - delivered : 0;
}

static u32 bbr_rev_with_headroom(const struct bbr_rev *s)
{
	u32 headroom;

	if (s->inflight_hi == BBR_REV_UNSET)
		return BBR_REV_UNSET;
	headroom = (u32)(((u64)s->inflight_hi * s->headroom) >> BBR_UNIT_SHIFT);
	headroom = cc_max(headroom, 1);
	if (s->inflight_hi <= headroom)
		return BBR_REV_MIN_CWND;
	return cc_max(s->inflight_hi - headroom, BBR_REV_MIN_CWND);
}

static u32 bbr_rev_probe_rtt_cwnd(const struct bbr_rev *s)
{
	return cc_max(bbr_rev_bdp(s, bbr_rev_bw(s), s->probe_rtt_cwnd_gain),
		      BBR_REV_MIN_CWND);
}

/* Sending more than the model says, to see what the path takes? */
static u32 bbr_rev_is_probing(const struct bbr_rev *s)
{
	return s->mode == BBR_REV_STARTUP ||
	       (s->mode == BBR_REV_PROBE_BW &&
		(s->phase == BBR_REV_REFILL || s->phase == BBR_REV_UP));
}

/* x less the share `cut`, in 1/256. */
static u32 bbr_rev_less(u32 x, u32 cut)
{
	return (u32)(((u64)x * (BBR_UNIT - cc_min(cut, BBR_UNIT))) >>
		     BBR_UNIT_SHIFT);
}

/* ---- short-term bounds -------------------------------------------------- */

static void bbr_rev_reset_lower_bounds(struct bbr_rev *s)
{
	s->bw_lo = BBR_REV_UNSET;
	s->inflight_lo = BBR_REV_UNSET;
}

static void bbr_rev_init_inflight_lo(struct bbr_rev *s,
				     const struct cc_out *out)
{
	if (s->inflight_lo == BBR_REV_UNSET)
		s->inflight_lo = out->snd_cwnd;
}

/* Once per round with loss: less, but never less than what the round
 * delivered, for the path can carry that. */
static void bbr_rev_cut_for_loss(struct bbr_rev *s, const struct cc_out *out)
{
	if (s->bw_lo == BBR_REV_UNSET)
		s->bw_lo = bbr_rev_max_bw(s);
	bbr_rev_init_inflight_lo(s, out);
	s->bw_lo = cc_max(s->bw_latest, bbr_rev_less(s->bw_lo, s->beta));
	s->inflight_lo = cc_max(s->inflight_latest,
				bbr_rev_less(s->inflight_lo, s->beta));
}

static void bbr_rev_reset_congestion(struct bbr_rev *s)
{
	s->loss_in_round = 0;
	s->ecn_in_round = 0;
	s->loss_in_cycle = 0;
	s->ecn_in_cycle = 0;
	s->bw_latest = 0;
	s->inflight_latest = 0;
}

/* Before a recovery changes them. */
static void bbr_rev_save_bounds(struct bbr_rev *s)
{
	s->undo_is_saved = 1;
	s->undo_probe = BBR_REV_UNDO_NONE;
	s->undo_bw_lo = s->bw_lo;
	s->undo_inflight_lo = s->inflight_lo;
	s->undo_inflight_hi = s->inflight_hi;
}

/* The first loss begins a round of its own: a whole round of deliveries shows
 * best what the path still takes. */
static void bbr_rev_begin_loss_round(struct bbr_rev *s, const struct cc_in *in)
{
	if (!s->loss_in_round)
		s->loss_round_delivered = in->delivered;
	s->loss_in_round = 1;
	s->loss_in_cycle = 1;
	s->noted_lost = in->lost;
}

/* ---- is the pipe full? -------------------------------------------------- */

static void bbr_rev_reset_full_bw(struct bbr_rev *s)
{
	s->full_bw = 0;
	s->full_bw_rounds = 0;
	s->full_bw_now = 0;
}

#endif
