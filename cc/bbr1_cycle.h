/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr1_cycle.h - the gain cycle of PROBE_BW: probe, drain what the probe
 * queued, cruise for six phases.
 *
 * Equations
 *	gain = 1.25 in phase 0, 0.75 in phase 1, 1 in phases 2 to 7
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c.
 */
#ifndef KNEE_BBR1_CYCLE_H
#define KNEE_BBR1_CYCLE_H

#include "bbr_model.h"

#define BBR1_CYCLE_PHASES 8u
#define BBR1_PROBE_UP_GAIN (BBR_UNIT * 5 / 4)
#define BBR1_PROBE_DOWN_GAIN (BBR_UNIT * 3 / 4)
/* Start phases to choose from: all but the draining one. */
#define BBR1_CYCLE_START_PHASES 7u

static u32 bbr1_cycle_gain(u32 phase)
{
	if (phase == 0)
		return BBR1_PROBE_UP_GAIN;
	return phase == 1 ? BBR1_PROBE_DOWN_GAIN : BBR_UNIT;
}

static u32 bbr1_cycle_next(u32 phase)
{
	return (phase + 1) % BBR1_CYCLE_PHASES;
}

/* The phase to begin with; random, so that flows do not probe in step. */
static u32 bbr1_cycle_start(u32 random)
{
	return bbr1_cycle_next(
		BBR1_CYCLE_PHASES - 1 -
		cc_random_below(random, BBR1_CYCLE_START_PHASES));
}

#endif
