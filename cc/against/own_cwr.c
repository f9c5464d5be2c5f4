/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * own_cwr.c - a reduction that an algorithm asked for.
 *
 * The kernel's cdg backs off by entering CWR; ours makes the same reduction by
 * itself, in the state Open. So the state of the sender stays as it is, and
 * only the window of the side that asked is the stack's meanwhile: it falls by
 * proportional rate reduction (RFC 6937, section 3) until a packet sent later
 * is acked. A reduction of the stack that begins earlier takes over.
 */
#include "against.h"

static struct {
	int is_on;
	u32 end_seq;   /* sent before it began: snd_nxt then */
	u32 from;      /* window before it, segments */
	u32 delivered; /* since it began, segments */
} sides[2];

void against_own_cwr_enter(u32 side)
{
	struct decided *d = &against_decided[side];

	if (sides[side].is_on || TP->ca_state >= CC_CA_CWR)
		return;
	sides[side].is_on = 1;
	sides[side].end_seq = TP->snd_nxt;
	sides[side].from = d->snd_cwnd;
	sides[side].delivered = 0;
	d->snd_cwnd_cnt = 0;
	d->snd_ssthresh = against_ask_ssthresh(side);
}

void against_own_cwr_reset(void)
{
	sides[0].is_on = sides[1].is_on = 0;
}

int against_own_cwr_is_on(u32 side)
{
	return sides[side].is_on;
}

/* The stack reduces: the threshold stays, and nothing of it can be undone. */
int against_own_cwr_is_taken_over(u32 side)
{
	if (!sides[side].is_on)
		return 0;
	sides[side].is_on = 0;
	against_decided[side].prior_cwnd = sides[side].from;
	against_decided[side].prior_ssthresh = 0;
	return 1;
}

static void end(u32 side)
{
	sides[side].is_on = 0;
	against_decided[side].snd_cwnd = against_decided[side].snd_ssthresh;
	against_tell_event(side, CC_EVENT_COMPLETE_CWR);
}

/* At an ACK. Returns whether the window is still the stack's. */
int against_own_cwr_reduces(u32 side, u32 acked)
{
	struct decided *d = &against_decided[side];
	u32 in_flight = against_in_flight(), may_send, limit;
	u32 sent = (TP->snd_nxt - sides[side].end_seq) / TP->mss_cache;
	u64 share;

	if (!sides[side].is_on)
		return 0;
	if ((s32)(TP->snd_una - sides[side].end_seq) > 0) {
		end(side);
		return 0;
	}
	sides[side].delivered += acked;
	if (in_flight > d->snd_ssthresh) {
		share = (u64)sides[side].delivered * d->snd_ssthresh;
		limit = (u32)((share + sides[side].from - 1) /
			      sides[side].from);
		may_send = limit > sent ? limit - sent : 0;
	} else {
		may_send = sides[side].delivered > sent
				   ? sides[side].delivered - sent
				   : 0;
		may_send = min(max(may_send, acked) + 1,
			       d->snd_ssthresh - in_flight);
	}
	d->snd_cwnd = max(in_flight + max(may_send, sent ? 0u : 1u), 1u);
	return 1;
}
