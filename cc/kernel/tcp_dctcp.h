/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * tcp_dctcp.h - the receiver's half of DCTCP (RFC 8257, section 3.2), for a file
 * that includes it and does not have it beside itself.
 */
#ifndef KNEE_KERNEL_TCP_DCTCP_H
#define KNEE_KERNEL_TCP_DCTCP_H

/* At a packet that changes whether there are marks: what came before it and
 * waits for its ACK gets one with the old echo. */
static inline void dctcp_ece_ack_update(struct sock *sk, enum tcp_ca_event event,
					u32 *prior_rcv_nxt, u32 *ce_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 is_marked = event == CA_EVENT_ECN_IS_CE;

	if (*ce_state != is_marked) {
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			if (*ce_state)
				tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			__tcp_send_ack(sk, *prior_rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	*prior_rcv_nxt = tp->rcv_nxt;
	*ce_state = is_marked;
	if (is_marked)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

#endif
