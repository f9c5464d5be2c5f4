/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * DCTCP - a window cut in proportion to how many packets were marked.
 *
 * A switch marks every packet that meets more than K packets in its queue.
 * The receiver tells the marks exactly, the sender counts which share F of a
 * window bore one and smooths it to alpha: how far the queue exceeds K, and
 * not only that it does. Where a classic sender halves its window at the first
 * mark, this one takes off alpha/2 of it, so a shallow K suffices to keep the
 * link busy. It owns the network it runs in: beside Reno it takes nearly all.
 * Both ends need it, or Accurate ECN; else the connection has no ECN at all.
 *
 * Equations (w = snd_cwnd, segments; once per window of data)
 *	F = CE marked packets delivered / packets delivered
 *	alpha = (1 - g) alpha + g F,	g = 1/16
 *	mark:	w = max(w (1 - alpha/2), 2), once per window
 *	loss:	w = max(w/2, 2)
 *	increase: as Reno
 *	queue of N flows in step: Qmax = K + N,
 *		amplitude A = sqrt(2 N (C RTT + K)) / 2,
 *		period = sqrt(2 (C RTT + K) / N) / 2 round trips
 *
 * Receiver: two states, the marks of the last packet. Each ACK says which.
 *
 *	    CE: ACK what came before without ECE, then this with it
 *	  +--------------------------------------------------------+
 *	  |                                                        v
 *	ce_state 0, delayed ACKs                    ce_state 1, delayed ACKs
 *	  ^                                                        |
 *	  +--------------------------------------------------------+
 *	    no CE: ACK what came before with ECE, then this without it
 *
 * Source: RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
 *	section 3; Linux 6.12 net/ipv4/tcp_dctcp.c.
 *
 * Differs from source:
 *	- RFC 8257 section 3.3 counts bytes; Linux and this file count packets.
 *	- RFC 8257 section 3.3 says nothing of the last remainders of alpha;
 *	  Linux and this file take them off at once, so that alpha reaches 0.
 *	- The window is cut where Linux enters CWR, by proportional rate
 *	  reduction over one round trip; the paper cuts it at once.
 *	- Where the connection has no ECN, Linux swaps itself for Reno under the
 *	  name dctcp-reno; this file is Reno there.
 *	- Whether a window's alpha has the packets of the ACK that ends it
 *	  depends on when the stack calls in_ack_event(): Linux 6.18 after it
 *	  counted them, older ones before.
 */
#include "cc_algorithm.h"

/* Linux keeps alpha in 10 bits; RFC 8257 leaves the precision open. */
#define DCTCP_ALPHA_SHIFT 10
#define DCTCP_MAX_ALPHA (1u << DCTCP_ALPHA_SHIFT)

/* clang-format off */
#define DCTCP_PARAMS(P)                                                        \
	P(shift_g, 4, 0, 10, "",                                               \
	  "g = 1/2^shift_g, weight of a window in alpha; 4: 1/16, RFC 8257 section 4.2") \
	P(alpha_on_init, DCTCP_MAX_ALPHA, 0, DCTCP_MAX_ALPHA, "1/1024",        \
	  "alpha at the start; 1: the first mark halves, RFC 8257 section 4.2")
/* clang-format on */

struct dctcp {
	CC_PARAM_FIELDS(DCTCP_PARAMS)
	u32 alpha;	      /* smoothed share of marked packets, 1/1024 */
	u32 next_seq;	      /* snd_nxt when this window began */
	u32 old_delivered;    /* in->delivered when this window began */
	u32 old_delivered_ce; /* in->delivered_ce when this window began */
	u32 loss_cwnd;	      /* window before the last cut, segments */
	/* the receiver's */
	u32 prior_rcv_nxt; /* rcv_nxt after the last packet */
	u32 ce_state;	   /* 1: the last packet was CE marked */
};

static void dctcp_begin_window(struct dctcp *s, const struct cc_in *in)
{
	s->next_seq = in->snd_nxt;
	s->old_delivered = in->delivered;
	s->old_delivered_ce = in->delivered_ce;
}

static void dctcp_init(struct dctcp *s, const struct cc_in *in,
		       struct cc_out *out)
{
	(void)out;
	s->alpha = cc_min(s->alpha_on_init, DCTCP_MAX_ALPHA);
	s->loss_cwnd = 0;
	s->prior_rcv_nxt = in->rcv_nxt;
	s->ce_state = 0;
	dctcp_begin_window(s, in);
}

static void dctcp_ssthresh(struct dctcp *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;
	u32 alpha = cc_min(s->alpha, DCTCP_MAX_ALPHA);

	if (in->ecn_mode == CC_ECN_NONE) {
		out->ret = cc_reno_ssthresh(out);
		return;
	}
	s->loss_cwnd = cwnd;
	cwnd -= (u32)(((u64)cwnd * alpha) >> (DCTCP_ALPHA_SHIFT + 1));
	out->ret = cc_max(cwnd, CC_MIN_SSTHRESH);
}

static void dctcp_cong_avoid(struct dctcp *s, const struct cc_in *in,
			     struct cc_out *out)
{
	(void)s;
	cc_reno_cong_avoid(in, out, in->acked);
}

static void dctcp_undo_cwnd(struct dctcp *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (in->ecn_mode == CC_ECN_NONE)
		out->ret = cc_reno_undo_cwnd(in, out);
	else
		out->ret = cc_max(out->snd_cwnd, s->loss_cwnd);
}

/* The window that `alpha` speaks of has been acknowledged: learn from it. */
static void dctcp_in_ack_event(struct dctcp *s, const struct cc_in *in,
			       struct cc_out *out)
{
	u32 shift_g = cc_min(s->shift_g, DCTCP_ALPHA_SHIFT);
	u32 delivered = in->delivered - s->old_delivered;
	u32 delivered_ce = in->delivered_ce - s->old_delivered_ce;
	u32 decay;

	(void)out;
	if (in->ecn_mode == CC_ECN_NONE || cc_before(in->snd_una, s->next_seq))
		return;
	decay = s->alpha >> shift_g;
	s->alpha -= decay ? decay : s->alpha;
	if (delivered_ce) {
		u64 share =
			((u64)delivered_ce << (DCTCP_ALPHA_SHIFT - shift_g)) /
			cc_max(delivered, 1);

		s->alpha = cc_min(cc_add_saturate(s->alpha, cc_saturate(share)),
				  DCTCP_MAX_ALPHA);
	}
	dctcp_begin_window(s, in);
}

/* A loss says more than a mark: whatever alpha, half the window. */
static void dctcp_react_to_loss(struct dctcp *s, struct cc_out *out)
{
	s->loss_cwnd = out->snd_cwnd;
	out->snd_ssthresh = cc_reno_ssthresh(out);
}

static void dctcp_set_state(struct dctcp *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (in->ecn_mode != CC_ECN_NONE && in->state == CC_CA_RECOVERY &&
	    in->ca_state != CC_CA_RECOVERY)
		dctcp_react_to_loss(s, out);
}

/* A packet arrived. The echo must tell its mark and not that of others. */
static void dctcp_packet_arrived(struct dctcp *s, const struct cc_in *in,
				 struct cc_out *out, u32 ce)
{
	if (s->ce_state != ce) {
		if (in->ack_state & CC_ACK_STATE_DELAYED) {
			out->ack_prior = s->ce_state ? CC_ACK_PRIOR_ECE
						     : CC_ACK_PRIOR_PLAIN;
			out->ack_prior_seq = s->prior_rcv_nxt;
		}
		out->ack_now = 1;
	}
	s->prior_rcv_nxt = in->rcv_nxt;
	s->ce_state = ce;
	out->ecn_echo = ce;
}

static void dctcp_cwnd_event(struct dctcp *s, const struct cc_in *in,
			     struct cc_out *out)
{
	if (in->ecn_mode == CC_ECN_NONE)
		return;
	if (in->event == CC_EVENT_ECN_IS_CE)
		dctcp_packet_arrived(s, in, out, 1);
	else if (in->event == CC_EVENT_ECN_NO_CE)
		dctcp_packet_arrived(s, in, out, 0);
	else if (in->event == CC_EVENT_LOSS)
		dctcp_react_to_loss(s, out);
}

/* clang-format off */
#define DCTCP_OPS(OP)                                                          \
	OP(dctcp, init)                                                        \
	OP(dctcp, ssthresh)                                                    \
	OP(dctcp, cong_avoid)                                                  \
	OP(dctcp, undo_cwnd)                                                   \
	OP(dctcp, set_state)                                                   \
	OP(dctcp, cwnd_event)                                                  \
	OP(dctcp, in_ack_event)

CC_ALGORITHM(dctcp, struct dctcp, DCTCP_PARAMS, DCTCP_OPS, CC_FLAG_NEEDS_ECN,
	.summary = "cuts the window in proportion to the share of marked packets",
	.source = "RFC 8257; SIGCOMM 2010; Linux 6.12 tcp_dctcp.c",
	.use_when = "in a datacenter whose switches all mark at a shallow threshold",
	.year = 2010)
/* clang-format on */
