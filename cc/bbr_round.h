/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_round.h - round trips, counted by packets instead of by a clock: a round
 * ends when a packet that was sent after its beginning is acked.
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c, bbr_update_bw().
 */
#ifndef KNEE_BBR_ROUND_H
#define KNEE_BBR_ROUND_H

#include "cc_algorithm.h"

struct bbr_round {
	u32 count;	    /* rounds so far */
	u32 next_delivered; /* the round ends at this in->delivered */
	u32 start;	    /* 0 or 1: this ACK begins a round */
};

/* The round that is under way ends with what is in flight now. */
static void bbr_round_restart(struct bbr_round *r, const struct cc_in *in)
{
	r->next_delivered = in->delivered;
}

static void bbr_round_reset(struct bbr_round *r, const struct cc_in *in)
{
	r->count = 0;
	r->start = 0;
	bbr_round_restart(r, in);
}

/* An ACK with a valid rate sample. */
static void bbr_round_update(struct bbr_round *r, const struct cc_in *in)
{
	r->start = !cc_before(in->rs_prior_delivered, r->next_delivered);
	if (!r->start)
		return;
	r->count++;
	bbr_round_restart(r, in);
}

#endif
