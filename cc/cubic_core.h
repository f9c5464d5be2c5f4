/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cubic_core.h - the state, the helpers and the ops of CUBIC.
 *
 * What it does and where it comes from is told in cubic.c. cubic_preack.c is
 * the same with another default of one parameter, per_ack: a file that
 * includes this says which, as CUBIC_PER_ACK.
 */
#ifndef KNEE_CUBIC_CORE_H
#define KNEE_CUBIC_CORE_H

#include "cc_algorithm.h"
#include "hystartpp.h"

/* beta and the Reno-friendly slope are in units of 1/1024. */
#define CUBIC_BETA_SCALE 1024u
/* Unit of K and t: 2^-10 s, so that the shift below undoes time cubed. */
#define CUBIC_TIME_SHIFT 10
/*
 * C = bic_scale * 10 / 1024 = 410/1024 segments/s^3 (RFC 9438 section 4.1: 0.4).
 * The 10 is 1 s over the 100 ms of RTT for which bic_scale was defined.
 */
#define CUBIC_C_PER_BIC_SCALE 10u
#define CUBIC_C_SHIFT (10 + 3 * CUBIC_TIME_SHIFT)
/* Keeps offs^3 inside 64 bits: 2^21 / 1024 = 2048 s away from K. */
#define CUBIC_MAX_OFFSET ((1u << 21) - 1)
/* Slope without a W_max to aim at: at least 5 % per round trip (Linux). */
#define CUBIC_MAX_CNT_NO_W_MAX 20u
/* Slope limit: at most 1.5 x per round trip (RFC 9438 section 4.2). */
#define CUBIC_MIN_CNT 2u
/* Slope when at or above the target: 1 % per round trip (Linux). */
#define CUBIC_PLATEAU_CNT 100u

/* Packets per ACK in units of 1/16: also the weight of one sample. */
#define CUBIC_ACK_RATIO_SHIFT 4
/* Where the estimate starts, and its largest value: 2 and 32 packets. */
#define CUBIC_ACK_RATIO_FIRST (2u << CUBIC_ACK_RATIO_SHIFT)
#define CUBIC_ACK_RATIO_MAX (32u << CUBIC_ACK_RATIO_SHIFT)

/* HyStart. The two detectors, bits of the parameter `hystart`; */
#define HYSTART_ACK_TRAIN 1u
#define HYSTART_DELAY 2u
/* its other value, which is HyStart++ and takes neither. */
#define HYSTART_PLUS_PLUS 4u
/* Below this window leaving slow start early gains nothing. Segments. */
#define HYSTART_LOW_WINDOW 16u
/* ACKs at most this far apart are one train. us. */
#define HYSTART_ACK_DELTA_US 2000
/* A round's minimum RTT is trusted after this many samples. */
#define HYSTART_MIN_SAMPLES 8u
/* Rise of the RTT that means a queue: min RTT / 8, within these. us. */
#define HYSTART_DELAY_MIN_US 4000u
#define HYSTART_DELAY_MAX_US 16000u
/* Four TSO bursts at the pacing rate, at most 1 ms: bursts are no queue. */
#define HYSTART_ACK_DELAY_BURSTS 4u
#define HYSTART_ACK_DELAY_MAX_US 1000u

/* clang-format off */
#define CUBIC_PARAMS(P)                                                        \
	P(beta, 717, 512, 1000, "1/1024",                                      \
	  "window kept at a loss; RFC 9438 section 4.6: 0.7")                  \
	P(bic_scale, 41, 1, 1024, "10/1024 segments/s^3",                      \
	  "C, the speed of the cubic; RFC 9438 section 5: 0.4")                \
	P(fast_convergence, 1, 0, 1, "",                                       \
	  "release room to new flows by a lower W_max; RFC 9438 section 4.7")  \
	P(tcp_friendliness, 1, 0, 1, "",                                       \
	  "grow at least as Reno does; RFC 9438 section 4.3")                  \
	P(hystart, 3, 0, 4, "",                                                \
	  "early end of slow start: 0 off, 1 ACK train, 2 delay, 3 both (Linux), 4 HyStart++ (RFC 9406)") \
	P(per_ack, CUBIC_PER_ACK, 0, 1, "",                                    \
	  "count growth in ACKs, not packets: 1 as Linux before 4.0, 0 since") \
	P(slow_start_per_ack, 0, 0, 1, "",                                     \
	  "count ACKs in slow start too: 1 as Linux before 3.13, 0 since")
/* clang-format on */

struct cubic {
	CC_PARAM_FIELDS(CUBIC_PARAMS)

	u32 cnt;	  /* acked packets per segment of growth */
	u32 w_max;	  /* window before the last loss, segments; 0: none */
	u32 last_cwnd;	  /* snd_cwnd of the last update, segments */
	u32 last_time;	  /* time of the last update, jiffies */
	u32 origin;	  /* W(K), the plateau, segments */
	u32 k;		  /* K, 2^-10 s */
	u32 delay_min_us; /* smallest RTT since the last RTO; 0: none */
	u32 epoch_start;  /* jiffies; 0: the epoch has not begun */
	u32 ack_cnt;	  /* packets acked not yet credited to reno_cwnd */
	u32 reno_cwnd;	  /* window Reno would have, segments */
	u32 ack_ratio_q4; /* mean packets per ACK, 1/16; with per_ack */

	u32 found;	    /* 0 or 1: HyStart has found the end */
	u32 round_start_us; /* start of the round, us, wraps */
	u32 round_end_seq;  /* the round ends when this is acked */
	u32 last_ack_us;    /* last ACK of the train, us, wraps */
	u32 round_rtt_us;   /* smallest RTT of the round */
	u32 samples;	    /* RTT samples in the round, counted to 8 */

	struct hystartpp hystartpp;
};

static void cubic_reset(struct cubic *s)
{
	s->cnt = 0;
	s->w_max = 0;
	s->last_cwnd = 0;
	s->last_time = 0;
	s->origin = 0;
	s->k = 0;
	s->delay_min_us = 0;
	s->epoch_start = 0;
	s->ack_cnt = 0;
	s->reno_cwnd = 0;
	s->ack_ratio_q4 = CUBIC_ACK_RATIO_FIRST;
	s->found = 0;
}

static void hystart_round(struct cubic *s, const struct cc_in *in)
{
	s->round_start_us = (u32)in->now_us;
	s->last_ack_us = (u32)in->now_us;
	s->round_end_seq = in->snd_nxt;
	s->round_rtt_us = CC_U32_MAX;
	s->samples = 0;
}

static u32 hystart_ack_delay_us(const struct cc_in *in)
{
	u64 bursts = (u64)in->gso_max_bytes * HYSTART_ACK_DELAY_BURSTS;

	return (u32)cc_min64(cc_div(bursts * CC_USEC_PER_SEC, in->pacing_rate),
			     HYSTART_ACK_DELAY_MAX_US);
}

/* The window stays where HyStart found the path full. */
static void hystart_leave(struct cubic *s, struct cc_out *out)
{
	s->found = 1;
	out->snd_ssthresh = out->snd_cwnd;
}

static void hystart_update(struct cubic *s, const struct cc_in *in,
			   struct cc_out *out, u32 rtt_us)
{
	if (cc_after(in->snd_una, s->round_end_seq))
		hystart_round(s, in);
	if (out->snd_cwnd < HYSTART_LOW_WINDOW)
		return;

	if (s->hystart & HYSTART_ACK_TRAIN) {
		u32 now = (u32)in->now_us;

		if ((s32)(now - s->last_ack_us) <= HYSTART_ACK_DELTA_US) {
			u32 limit = s->delay_min_us + hystart_ack_delay_us(in);

			s->last_ack_us = now;
			/*
			 * An unpaced window leaves as a burst, so a train of
			 * half an RTT means a full pipe (one way). A paced one
			 * is spread by the sender itself: allow all of it.
			 */
			if (in->pacing_status == CC_PACING_NONE)
				limit /= 2;
			if (now - s->round_start_us > limit)
				hystart_leave(s, out);
		}
	}

	if (s->hystart & HYSTART_DELAY) {
		u32 rise = cc_clamp(s->delay_min_us / 8, HYSTART_DELAY_MIN_US,
				    HYSTART_DELAY_MAX_US);

		s->round_rtt_us = cc_min(s->round_rtt_us, rtt_us);
		if (s->samples < HYSTART_MIN_SAMPLES)
			s->samples++;
		else if (s->round_rtt_us > (u64)s->delay_min_us + rise)
			hystart_leave(s, out);
	}
}

static void cubic_begin_epoch(struct cubic *s, const struct cc_in *in, u32 cwnd,
			      u32 acked)
{
	u32 c = s->bic_scale * CUBIC_C_PER_BIC_SCALE;

	s->epoch_start = in->jiffies;
	s->ack_cnt = acked;
	s->reno_cwnd = cwnd;
	s->k = 0;
	s->origin = cwnd;
	if (s->w_max > cwnd) {
		s->k = cc_cube_root(cc_div(1ull << CUBIC_C_SHIFT, c) *
				    (s->w_max - cwnd));
		s->origin = s->w_max;
	}
}

/* W(t + min RTT) of the current epoch, segments. */
static u32 cubic_target(const struct cubic *s, const struct cc_in *in)
{
	u32 c = s->bic_scale * CUBIC_C_PER_BIC_SCALE;
	s32 elapsed = (s32)(in->jiffies - s->epoch_start);
	u64 jiffies = cc_usecs_to_jiffies(s->delay_min_us, in->hz);
	u64 t, offs, cube, delta;

	if (elapsed > 0)
		jiffies += (u32)elapsed;
	t = cc_div(jiffies << CUBIC_TIME_SHIFT, in->hz);
	offs = cc_min64(t < s->k ? s->k - t : t - s->k, CUBIC_MAX_OFFSET);
	cube = offs * offs * offs;
	if (cube > cc_div(CC_U64_MAX, c))
		delta = CC_U64_MAX >> CUBIC_C_SHIFT;
	else
		delta = (cube * c) >> CUBIC_C_SHIFT;

	if (t >= s->k)
		return cc_saturate(s->origin + delta);
	return s->origin > delta ? s->origin - (u32)delta : 0;
}

/* Never slower than Reno with the same beta (RFC 9438 section 4.3). */
static void cubic_follow_reno(struct cubic *s, u32 cwnd)
{
	/* 8 x packets acked per segment of Reno growth, over cwnd: 15. */
	u32 scale = (u32)cc_div(8 * (CUBIC_BETA_SCALE + s->beta) / 3,
				CUBIC_BETA_SCALE - s->beta);
	u32 per_segment = cc_max(cc_saturate(((u64)cwnd * scale) >> 3), 1);

	if (s->ack_cnt > per_segment) {
		u32 n = (s->ack_cnt - 1) / per_segment;

		s->ack_cnt -= n * per_segment;
		s->reno_cwnd = cc_add_saturate(s->reno_cwnd, n);
	}
	if (s->reno_cwnd > cwnd)
		s->cnt = cc_min(s->cnt, cwnd / (s->reno_cwnd - cwnd));
}

/*
 * Sets cnt, the acked packets per segment of growth. The cubic is looked at
 * when the window changed or HZ/32 jiffies have passed, and at most once per
 * jiffy, as in Linux: HZ is a part of CUBIC's behaviour.
 */
static void cubic_update(struct cubic *s, const struct cc_in *in, u32 cwnd,
			 u32 acked)
{
	s32 since = (s32)(in->jiffies - s->last_time);

	s->ack_cnt = cc_add_saturate(s->ack_cnt, acked);
	if (s->last_cwnd == cwnd && since <= (s32)(in->hz / 32))
		return;

	if (!s->epoch_start || since) {
		u32 target;

		s->last_cwnd = cwnd;
		s->last_time = in->jiffies;
		if (!s->epoch_start)
			cubic_begin_epoch(s, in, cwnd, acked);

		target = cubic_target(s, in);
		if (target > cwnd)
			s->cnt = cwnd / (target - cwnd);
		else
			s->cnt = cc_saturate((u64)cwnd * CUBIC_PLATEAU_CNT);
		if (!s->w_max)
			s->cnt = cc_min(s->cnt, CUBIC_MAX_CNT_NO_W_MAX);
	}

	if (s->tcp_friendliness)
		cubic_follow_reno(s, cwnd);
	s->cnt = cc_max(s->cnt, CUBIC_MIN_CNT);
}

/* ACKs per segment of growth, for packets by the mean packets per ACK. */
static u32 cubic_cnt_in_acks(const struct cubic *s)
{
	u64 acks =
		cc_div((u64)s->cnt << CUBIC_ACK_RATIO_SHIFT, s->ack_ratio_q4);

	return cc_max(cc_saturate(acks), 1);
}

static void cubic_measure_ack_ratio(struct cubic *s, const struct cc_in *in)
{
	u32 kept = s->ack_ratio_q4 - (s->ack_ratio_q4 >> CUBIC_ACK_RATIO_SHIFT);

	if (in->ca_state == CC_CA_OPEN)
		s->ack_ratio_q4 = cc_clamp(cc_add_saturate(kept, in->acked), 1,
					   CUBIC_ACK_RATIO_MAX);
}

static void cubic_init(struct cubic *s, const struct cc_in *in,
		       struct cc_out *out)
{
	(void)out;
	cubic_reset(s);
	hystart_round(s, in);
	hystartpp_reset(&s->hystartpp, in);
}

static void cubic_ssthresh(struct cubic *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u64 cwnd = out->snd_cwnd;

	(void)in;
	s->epoch_start = 0;
	/*
	 * Lost below the last W_max: the path has less room now, likely a new
	 * flow. Aim lower than the loss point to leave it some.
	 */
	if (s->fast_convergence && cwnd < s->w_max)
		s->w_max = (u32)(cwnd * (CUBIC_BETA_SCALE + s->beta) /
				 (2 * CUBIC_BETA_SCALE));
	else
		s->w_max = (u32)cwnd;
	out->ret = cc_max((u32)(cwnd * s->beta / CUBIC_BETA_SCALE),
			  CC_MIN_SSTHRESH);
}

static void cubic_cong_avoid(struct cubic *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 acked = in->acked;

	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		if (s->slow_start_per_ack)
			acked = cc_min(acked, 1);
		if (s->hystart == HYSTART_PLUS_PLUS)
			acked = hystartpp_growth(&s->hystartpp, in, out, acked);
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	if (s->per_ack) {
		cubic_update(s, in, out->snd_cwnd, 1);
		cc_cong_avoid_ai(in, out, cubic_cnt_in_acks(s), 1);
	} else {
		cubic_update(s, in, out->snd_cwnd, acked);
		cc_cong_avoid_ai(in, out, s->cnt, acked);
	}
}

static void cubic_undo_cwnd(struct cubic *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* After a timeout nothing learned about the path is trusted. */
static void cubic_set_state(struct cubic *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	if (in->state != CC_CA_LOSS)
		return;
	cubic_reset(s);
	hystart_round(s, in);
}

/* Time spent idle must not count as time on the curve: shift the epoch. */
static void cubic_cwnd_event(struct cubic *s, const struct cc_in *in,
			     struct cc_out *out)
{
	s32 idle = (s32)(in->jiffies - in->lsndtime);

	(void)out;
	if (in->event != CC_EVENT_TX_START || !s->epoch_start || idle <= 0)
		return;
	s->epoch_start += (u32)idle;
	if (cc_after(s->epoch_start, in->jiffies))
		s->epoch_start = in->jiffies;
}

static void cubic_pkts_acked(struct cubic *s, const struct cc_in *in,
			     struct cc_out *out)
{
	u32 rtt_us;

	if (s->per_ack)
		cubic_measure_ack_ratio(s, in);
	if (in->ack_rtt_us < 0)
		return;
	/* For 1 s after a loss RTTs carry the recovery, not the path. */
	if (s->epoch_start && (s32)(in->jiffies - s->epoch_start) < (s32)in->hz)
		return;

	rtt_us = cc_max(cc_saturate((u64)in->ack_rtt_us), 1);
	if (!s->delay_min_us || rtt_us < s->delay_min_us)
		s->delay_min_us = rtt_us;
	if (s->hystart == HYSTART_PLUS_PLUS)
		hystartpp_sample(&s->hystartpp, in, out);
	else if (s->hystart && !s->found && cc_in_slow_start(out))
		hystart_update(s, in, out, rtt_us);
}

#endif
