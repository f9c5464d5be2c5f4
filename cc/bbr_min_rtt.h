/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_min_rtt.h - the RTT of the path without queue, and how to see it again.
 *
 * The least RTT of a window of seconds is the path's, if the queue was empty
 * once within it. When the window ends without a lower sample, the sender
 * makes the queue empty: it goes down to a few segments, and stays there for
 * a time and a whole round.
 *
 *	 drain                 hold                        over
 *	in flight > 4 -> in flight <= 4, 200 ms -> a round has passed too
 *
 * Source: Cardwell et al., ACM Queue 14(5) 2016, "ProbeRTT"; Linux 6.12
 *	net/ipv4/tcp_bbr.c, bbr_update_min_rtt().
 */
#ifndef KNEE_BBR_MIN_RTT_H
#define KNEE_BBR_MIN_RTT_H

#include "cc_algorithm.h"

struct bbr_min_rtt {
	u32 us;		/* ~0: no sample yet */
	u32 stamp;	/* when it was taken, jiffies */
	u32 done_stamp; /* end of the hold, jiffies; 0: draining */
	u32 round_done; /* 0 or 1: a round passed in the hold */
};

static void bbr_min_rtt_reset(struct bbr_min_rtt *m, const struct cc_in *in)
{
	m->us = in->min_rtt_us;
	m->stamp = in->jiffies;
	m->done_stamp = 0;
	m->round_done = 0;
}

/* Takes the sample of an ACK; one equal to the minimum renews it where
 * `equal_renews` is 1. Returns 1 when the window had ended. */
static u32 bbr_min_rtt_sample(struct bbr_min_rtt *m, const struct cc_in *in,
			      u32 window_jiffies, u32 equal_renews)
{
	u32 expired = cc_after(in->jiffies, m->stamp + window_jiffies);

	if (in->rs_rtt_us >= 0 && (in->rs_rtt_us < (s64)m->us + equal_renews ||
				   (expired && !in->rs_is_ack_delayed))) {
		m->us = (u32)in->rs_rtt_us;
		m->stamp = in->jiffies;
	}
	return expired;
}

/* The queue is empty: stay so for this time. */
static void bbr_min_rtt_hold(struct bbr_min_rtt *m, const struct cc_in *in,
			     u32 hold_ms)
{
	m->done_stamp = in->jiffies + cc_msecs_to_jiffies(hold_ms, in->hz);
	m->round_done = 0;
}

static u32 bbr_min_rtt_hold_is_over(const struct bbr_min_rtt *m,
				    const struct cc_in *in)
{
	return m->done_stamp && cc_after(in->jiffies, m->done_stamp);
}

#endif
