/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * standin.c - a congestion control in the kernel's form that is ours: each of
 * its functions fills the blocks of cc.h from the socket, runs the algorithm of
 * cc/ that it is compared with, and puts back what that decided. So the harness
 * can be tested without a file of the kernel: there must be no difference, and
 * one as soon as the parameter `flaw` makes one.
 */
#undef jiffies /* a word of cc.h too */
#include <linux/module.h>
#include <net/tcp.h>

#include "against.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern const struct cc_algorithm JOIN(cc_algorithm_, AGAINST_ALGORITHM);
#define ALGORITHM (&JOIN(cc_algorithm_, AGAINST_ALGORITHM))

/* ACK from which on the window is one segment larger; 0: never. */
static unsigned int flaw;
module_param(flaw, uint, 0644);
static unsigned int ecn_enable;
module_param(ecn_enable, uint, 0644);

static u64 state[CC_STATE_MAX_BYTES / 8];
static unsigned int n_acks;

static u32 run(struct sock *sk, u32 op, struct cc_in *in)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cc_out out;

	if (!ALGORITHM->ops[op])
		return 0;
	memset(&out, 0, sizeof(out));
	out.pacing_rate = sk->sk_pacing_rate;
	out.pacing_status = sk->sk_pacing_status;
	out.snd_cwnd = tp->snd_cwnd;
	out.snd_cwnd_cnt = tp->snd_cwnd_cnt;
	out.snd_ssthresh = tp->snd_ssthresh;
	out.app_limited = tp->app_limited;
	ALGORITHM->ops[op](state, in, &out);
	sk->sk_pacing_rate = out.pacing_rate;
	sk->sk_pacing_status = out.pacing_status;
	tp->snd_cwnd = out.snd_cwnd;
	tp->snd_cwnd_cnt = out.snd_cwnd_cnt;
	tp->snd_ssthresh = out.snd_ssthresh;
	tp->app_limited = out.app_limited;
	return out.ret;
}

static struct cc_in shown(struct sock *sk)
{
	struct cc_in in;

	memset(&in, 0, sizeof(in));
	against_fill(&in, sk);
	return in;
}

static void count_ack(struct sock *sk)
{
	if (++n_acks == flaw)
		tcp_sk(sk)->snd_cwnd++;
}

static void standin_init(struct sock *sk)
{
	struct cc_in in = shown(sk);
	u32 i;

	memset(state, 0, sizeof(state));
	n_acks = 0;
	for (i = 0; i < ALGORITHM->n_params; i++) {
		const struct cc_param *p = &ALGORITHM->params[i];

		((u32 *)state)[i] = p->dflt;
		if (ecn_enable && !strcmp(p->name, "ecn"))
			((u32 *)state)[i] = 1;
	}
	run(sk, CC_OP_init, &in);
}

static u32 standin_ssthresh(struct sock *sk)
{
	struct cc_in in = shown(sk);

	return run(sk, CC_OP_ssthresh, &in);
}

static u32 standin_undo_cwnd(struct sock *sk)
{
	struct cc_in in = shown(sk);

	return run(sk, CC_OP_undo_cwnd, &in);
}

static void standin_set_state(struct sock *sk, u8 new_state)
{
	struct cc_in in = shown(sk);

	in.state = new_state;
	run(sk, CC_OP_set_state, &in);
}

static void standin_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct cc_in in = shown(sk);

	if (event == CA_EVENT_TLP_RECOVERY)
		return;
	in.event = event;
	run(sk, CC_OP_cwnd_event, &in);
}

static void standin_in_ack_event(struct sock *sk, u32 flags)
{
	struct cc_in in = shown(sk);

	in.ack_flags = against_ack_flags(flags);
	run(sk, CC_OP_in_ack_event, &in);
}

static void standin_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct cc_in in = shown(sk);

	in.acked = sample->pkts_acked;
	in.ack_rtt_us = sample->rtt_us;
	in.ack_in_flight_bytes = sample->in_flight;
	run(sk, CC_OP_pkts_acked, &in);
}

static void standin_marked_lost(struct sock *sk, const struct sk_buff *skb)
{
	struct cc_in in = shown(sk);

	in.lost_tx_in_flight = TCP_SKB_CB(skb)->tx.in_flight;
	in.lost_tx_lost = TCP_SKB_CB(skb)->tx.lost;
	in.lost_is_app_limited = TCP_SKB_CB(skb)->tx.is_app_limited;
	run(sk, CC_OP_skb_marked_lost, &in);
}

static void standin_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cc_in in = shown(sk);

	in.acked = acked;
	run(sk, CC_OP_cong_avoid, &in);
	count_ack(sk);
}

static void standin_cong_control(struct sock *sk, u32 ack, int flag,
				 const struct rate_sample *rs)
{
	struct cc_in in = shown(sk);

	against_fill_sample(&in, rs, (u32)flag);
	run(sk, CC_OP_cong_control, &in);
	count_ack(sk);
}

static struct tcp_congestion_ops standin = {
	.init = standin_init,
	.ssthresh = standin_ssthresh,
	.undo_cwnd = standin_undo_cwnd,
	.set_state = standin_set_state,
	.cwnd_event = standin_cwnd_event,
	.in_ack_event = standin_in_ack_event,
	.pkts_acked = standin_pkts_acked,
	.skb_marked_lost = standin_marked_lost,
	.cong_avoid = standin_cong_avoid,
	.name = "standin",
	.owner = THIS_MODULE,
};

static int __init standin_register(void)
{
	if (ALGORITHM->ops[CC_OP_cong_control])
		standin.cong_control = standin_cong_control;
	return tcp_register_congestion_control(&standin);
}

static void __exit standin_unregister(void)
{
	tcp_unregister_congestion_control(&standin);
}

module_init(standin_register);
module_exit(standin_unregister);
MODULE_LICENSE("Dual MIT/GPL");
