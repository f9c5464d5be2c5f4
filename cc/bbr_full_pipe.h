/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_full_pipe.h - has the bandwidth stopped growing?
 *
 * A sender that doubles its rate each round sees its bandwidth double, until
 * the bottleneck is full. Three rounds without 25 % of growth tell this from
 * a receive window or a burst of loss that held the rate back for a round.
 *
 * Equations
 *	full = bw < 1.25 full_bw in 3 rounds that were not app-limited,
 *	       full_bw being the bw of the last round that grew
 *
 * Source: Cardwell et al., ACM Queue 14(5) 2016, "Startup"; Linux 6.12
 *	net/ipv4/tcp_bbr.c, bbr_check_full_bw_reached().
 */
#ifndef KNEE_BBR_FULL_PIPE_H
#define KNEE_BBR_FULL_PIPE_H

#include "bbr_model.h"

#define BBR_FULL_PIPE_GROWTH (BBR_UNIT * 5 / 4)
#define BBR_FULL_PIPE_ROUNDS 3u

struct bbr_full_pipe {
	u32 bw;	     /* that growth is compared with, segments/us << 24 */
	u32 rounds;  /* without growth */
	u32 reached; /* 0 or 1: the pipe has been filled */
};

/* Begins to compare anew; what was reached stays. */
static void bbr_full_pipe_restart(struct bbr_full_pipe *f)
{
	f->bw = 0;
	f->rounds = 0;
}

static void bbr_full_pipe_reset(struct bbr_full_pipe *f)
{
	bbr_full_pipe_restart(f);
	f->reached = 0;
}

/* A round ended, not app-limited, with this bw. */
static void bbr_full_pipe_round(struct bbr_full_pipe *f, u32 bw)
{
	u32 goal = (u32)(((u64)f->bw * BBR_FULL_PIPE_GROWTH) >> BBR_UNIT_SHIFT);

	if (f->reached)
		return;
	if (bw >= goal) {
		f->bw = bw;
		f->rounds = 0;
		return;
	}
	if (++f->rounds >= BBR_FULL_PIPE_ROUNDS)
		f->reached = 1;
}

#endif
