/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_recovery.h - the window during loss recovery, and the window after.
 *
 * In the first round of recovery send what is acked (packet conservation):
 * what is in flight says what the path still takes. From then on at most
 * twice that, as cwnd grows by what is acked; at the end take back the window
 * from before.
 *
 *	      loss                next round              all repaired
 *	open ------> conservation ----------> slow start ------------> open
 *	 |            cwnd = in flight + acked                          ^
 *	 +--- cwnd saved ------------------------------- cwnd restored -+
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c, bbr_save_cwnd() and
 *	bbr_set_cwnd_to_recover_or_restore().
 */
#ifndef KNEE_BBR_RECOVERY_H
#define KNEE_BBR_RECOVERY_H

#include "cc_algorithm.h"

struct bbr_recovery {
	u32 prior_cwnd;	   /* to take back, segments */
	u32 prev_ca_state; /* enum cc_ca_state at the previous ACK */
	u32 is_conserving; /* 0 or 1: first round of recovery */
};

static void bbr_recovery_reset(struct bbr_recovery *r)
{
	r->prior_cwnd = 0;
	r->prev_ca_state = CC_CA_OPEN;
	r->is_conserving = 0;
}

/* Remember a cwnd that was good: not one already cut. */
static void bbr_recovery_save_cwnd(struct bbr_recovery *r, u32 cwnd, u32 is_cut)
{
	if (r->prev_ca_state < CC_CA_RECOVERY && !is_cut)
		r->prior_cwnd = cwnd;
	else
		r->prior_cwnd = cc_max(r->prior_cwnd, cwnd);
}

/* Does this ACK begin a recovery? Its first round then begins as well. */
static u32 bbr_recovery_begins(const struct bbr_recovery *r,
			       const struct cc_in *in)
{
	return in->ca_state == CC_CA_RECOVERY &&
	       r->prev_ca_state != CC_CA_RECOVERY;
}

/* The window on an ACK that delivered `acked` > 0 segments; final while
 * is_conserving, else to be grown. */
static u32 bbr_recovery_cwnd(struct bbr_recovery *r, const struct cc_in *in,
			     u32 acked, u32 cwnd)
{
	u32 prev = r->prev_ca_state, now = in->ca_state;

	if (in->rs_losses)
		cwnd = cwnd > in->rs_losses ? cwnd - in->rs_losses : 1;

	if (bbr_recovery_begins(r, in)) {
		r->is_conserving = 1;
		cwnd = cc_in_flight(in) + acked;
	} else if (prev >= CC_CA_RECOVERY && now < CC_CA_RECOVERY) {
		cwnd = cc_max(cwnd, r->prior_cwnd);
		r->is_conserving = 0;
	}
	r->prev_ca_state = now;

	if (r->is_conserving)
		cwnd = cc_max(cwnd, cc_in_flight(in) + acked);
	return cwnd;
}

#endif
