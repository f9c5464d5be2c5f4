/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev_flight.h - a flight, seen from its end: how much it was, how much of
 * it was lost or marked, and whether that is too much for BBR versions 2 and 3.
 *
 * Included by bbr_rev.h only.
 *
 * Source: as bbr3.c and bbr2.c.
 */
#ifndef KNEE_BBR_REV_FLIGHT_H
#define KNEE_BBR_REV_FLIGHT_H

#include "bbr_rev_model.h"
#include "bbr_rev_own.h"

/* A flight, seen from its end. */
struct bbr_rev_flight {
	u32 tx_in_flight; /* segments; 0: not known */
	u32 lost;	  /* segments */
	u32 delivered;	  /* segments */
	u32 delivered_ce; /* segments of these */
	u32 is_app_limited;
};

/* Where the stack tells the facts of each packet, and is to be believed. */
static u32 bbr_rev_has_facts(const struct bbr_rev *s, const struct cc_in *in)
{
	return in->rs_has_tx && !s->approximate;
}

static struct bbr_rev_flight bbr_rev_flight_of(const struct bbr_rev *s,
					       const struct cc_in *in)
{
	struct bbr_rev_flight f = { 0, 0, 0, 0, in->rs_is_app_limited };

	if (in->rs_delivered < 0)
		return f;
	if (bbr_rev_has_facts(s, in)) {
		f.tx_in_flight = in->rs_tx_in_flight;
		f.lost = in->rs_lost;
	} else {
		struct bbr_tx_fact fact = bbr_tx_guess(&s->tx, in);

		f.tx_in_flight = fact.in_flight;
		f.lost = fact.lost;
	}
	f.delivered = (u32)in->rs_delivered;
	if (in->rs_delivered_ce > 0)
		f.delivered_ce = (u32)in->rs_delivered_ce;
	return f;
}

static u32 bbr_rev_too_high(const struct bbr_rev *s,
			    const struct bbr_rev_flight *f)
{
	if (f->lost && f->tx_in_flight) {
		u64 most = ((u64)f->tx_in_flight * s->loss_thresh) >>
			   BBR_UNIT_SHIFT;

		if (f->lost > most)
			return 1;
	}
	if (f->delivered_ce && f->delivered && s->ecn_eligible &&
	    s->ecn_thresh) {
		u64 most =
			((u64)f->delivered * s->ecn_thresh) >> BBR_UNIT_SHIFT;

		if (bbr_rev_is_marked_too_much(f->delivered_ce, most))
			return 1;
	}
	return 0;
}

/*
 * At which packet of a lost run did the loss rate cross the threshold?
 *	(lost_prev + x) / (inflight_prev + x) = thresh
 * `run` packets lie at the end of the flight. Returns inflight_prev + x.
 */
static u32 bbr_rev_crossing(const struct bbr_rev *s,
			    const struct bbr_rev_flight *f, u32 run)
{
	u32 inflight_prev, lost_prev;
	u64 budget, x = 0;

	if (f->tx_in_flight < run || f->lost < run)
		return BBR_REV_UNSET;
	inflight_prev = f->tx_in_flight - run;
	lost_prev = f->lost - run;
	budget = ((u64)inflight_prev * s->loss_thresh + BBR_UNIT - 1) >>
		 BBR_UNIT_SHIFT;
	if (lost_prev < budget)
		x = cc_div((budget - lost_prev) << BBR_UNIT_SHIFT,
			   BBR_UNIT - s->loss_thresh);
	return cc_saturate(inflight_prev + x);
}

#endif
