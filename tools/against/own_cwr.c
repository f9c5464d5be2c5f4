/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * own_cwr.c - a reduction that the kernel's algorithm began by itself.
 *
 * cdg backs off by entering CWR. Ours cannot ask for that and makes the same
 * reduction by itself, in the state Open. So the state of the socket stays as
 * it is, and only the window of the kernel's side is the stack's meanwhile: it
 * falls by proportional rate reduction (RFC 6937, section 3) until a packet
 * sent later is acked. A reduction of the stack that begins earlier takes over.
 */
#include "against.h"

#define TP (&against_socket)
#define SK ((struct sock *)&against_socket)

static struct {
	int is_on;
	u32 end_seq;   /* sent before it began: snd_nxt then */
	u32 from;      /* window before it, segments */
	u32 delivered; /* since it began, segments */
} own;

void tcp_enter_cwr(struct sock *sk)
{
	if (own.is_on || inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR)
		return;
	own.is_on = 1;
	own.end_seq = TP->snd_nxt;
	own.from = TP->snd_cwnd;
	own.delivered = 0;
	TP->snd_cwnd_cnt = 0;
	TP->snd_ssthresh = against_kernel_ops->ssthresh(sk);
}

void against_own_cwr_reset(void)
{
	own.is_on = 0;
}

int against_own_cwr_is_on(void)
{
	return own.is_on;
}

/* The stack reduces: the threshold stays, and nothing of it can be undone. */
int against_own_cwr_is_taken_over(void)
{
	if (!own.is_on)
		return 0;
	own.is_on = 0;
	TP->prior_cwnd = own.from;
	TP->prior_ssthresh = 0;
	return 1;
}

static void end(void)
{
	own.is_on = 0;
	TP->snd_cwnd = TP->snd_ssthresh;
	if (against_kernel_ops->cwnd_event)
		against_kernel_ops->cwnd_event(SK, CA_EVENT_COMPLETE_CWR);
}

/* At an ACK. Returns whether the window is still the stack's. */
int against_own_cwr_reduces(u32 acked)
{
	u32 in_flight = tcp_packets_in_flight(TP), may_send, limit;
	u32 sent = (TP->snd_nxt - own.end_seq) / TP->mss_cache;
	u64 share;

	if (!own.is_on)
		return 0;
	if ((s32)(TP->snd_una - own.end_seq) > 0) {
		end();
		return 0;
	}
	own.delivered += acked;
	if (in_flight > TP->snd_ssthresh) {
		share = (u64)own.delivered * TP->snd_ssthresh;
		limit = (u32)((share + own.from - 1) / own.from);
		may_send = limit > sent ? limit - sent : 0;
	} else {
		may_send = own.delivered > sent ? own.delivered - sent : 0;
		may_send = min(max(may_send, acked) + 1,
			       TP->snd_ssthresh - in_flight);
	}
	TP->snd_cwnd = max(in_flight + max(may_send, sent ? 0u : 1u), 1u);
	return 1;
}
