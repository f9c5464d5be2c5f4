/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev_cycle.h - the cycle of PROBE_BW of BBR versions 2 and 3: what begins
 * with each of its phases.
 *
 * Included by bbr_rev.h only.
 *
 * Source: as bbr3.c and bbr2.c.
 */
#ifndef KNEE_BBR_REV_CYCLE_H
#define KNEE_BBR_REV_CYCLE_H

#include "bbr_rev_model.h"

/* Most doublings of the probe's growth; 2^30 is beyond every window. */
#define BBR_REV_MAX_UP_ROUNDS 30u
/* The rounds to a probe are counted from a random 0 or 1. */
#define BBR_REV_RANDOM_ROUNDS 2u

/* Each round of UP doubles by how much inflight_hi grows in it. */
static void bbr_rev_raise_slope(struct bbr_rev *s, const struct cc_out *out)
{
	u32 growth = 1u << cc_min(s->up_rounds, BBR_REV_MAX_UP_ROUNDS);

	s->up_rounds = cc_min(s->up_rounds + 1, BBR_REV_MAX_UP_ROUNDS);
	s->up_count = cc_max(out->snd_cwnd / growth, 1);
}

/* Its gains have to be applied. */
static void bbr_rev_enter_phase(struct bbr_rev *s, u32 phase)
{
	s->phase = phase;
	s->try_fast_path = 0;
}

static void bbr_rev_start_refill(struct bbr_rev *s, const struct cc_in *in,
				 u32 up_rounds)
{
	bbr_rev_reset_lower_bounds(s);
	s->up_rounds = up_rounds;
	s->up_acks = 0;
	s->stopped_risky = 0;
	s->acks = BBR_REV_ACKS_REFILLING;
	bbr_round_restart(&s->round, in);
	s->probe_was_good = 0;
	bbr_rev_enter_phase(s, BBR_REV_REFILL);
}

static void bbr_rev_start_up(struct bbr_rev *s, const struct cc_in *in,
			     const struct cc_out *out)
{
	s->acks = BBR_REV_ACKS_STARTING;
	bbr_round_restart(&s->round, in);
	s->phase_mstamp_us = in->now_us;
	bbr_rev_reset_full_bw(s);
	s->full_bw = s->sample_bw;
	bbr_rev_enter_phase(s, BBR_REV_UP);
	bbr_rev_raise_slope(s, out);
}

static void bbr_rev_start_down(struct bbr_rev *s, const struct cc_in *in,
			       struct cc_out *out)
{
	u32 random = cc_random(in, out);

	bbr_rev_reset_congestion(s);
	s->up_count = CC_U32_MAX;
	/* Two draws of one random number: its high and its low half. */
	s->rounds_since_probe =
		cc_random_below(random << 16, BBR_REV_RANDOM_ROUNDS);
	s->probe_wait_us = cc_add_saturate(
		s->probe_wait, cc_random_below(random, s->probe_wait_random));
	s->phase_mstamp_us = in->now_us;
	s->acks = BBR_REV_ACKS_STOPPING;
	bbr_round_restart(&s->round, in);
	bbr_rev_enter_phase(s, BBR_REV_DOWN);
}

static void bbr_rev_start_cruise(struct bbr_rev *s)
{
	if (s->inflight_lo != BBR_REV_UNSET)
		s->inflight_lo = cc_min(s->inflight_lo, s->inflight_hi);
	bbr_rev_enter_phase(s, BBR_REV_CRUISE);
}

#endif
