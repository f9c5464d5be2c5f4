/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * shadow.h - runs an algorithm of cc/ beside the kernel's own. The kernel's
 * function decides for the socket; ours gets the same inputs in its own block,
 * and what it would have done is compared with what the kernel did.
 *
 * A file includes the algorithm (with CC_BPF_SHADOW) and then this, and lists
 * the pairs. SHADOW_BEFORE(sk, b) runs after the kernel's function and before
 * ours: the place to hand over what the kernel drew at random.
 */
#ifndef KNEE_SHADOW_H
#define KNEE_SHADOW_H

#ifndef SHADOW_BEFORE
#define SHADOW_BEFORE(sk, b)
#endif

/* Read by the test from .bss: by enum cc_op_number. */
u64 shadow_calls[16];
u64 shadow_differ[16];

static __always_inline void shadow_compare(u32 op, struct sock *sk,
					   const struct cc_out *ours, u32 ret)
{
	const struct tcp_sock *tp = (void *)sk;

	shadow_calls[op]++;
	if (tp->snd_cwnd != ours->snd_cwnd ||
	    tp->snd_cwnd_cnt != ours->snd_cwnd_cnt ||
	    tp->snd_ssthresh != ours->snd_ssthresh ||
	    tp->app_limited != ours->app_limited ||
	    sk->sk_pacing_rate != ours->pacing_rate || ret != ours->ret)
		shadow_differ[op]++;
}

#define SHADOW_VOID(alg, op, kernel_call, set, ...)                \
	SEC("struct_ops/" #op)                                     \
	void BPF_PROG(shadow_##op, struct sock *sk, ##__VA_ARGS__) \
	{                                                          \
		struct alg##_block *b = alg##_begin(sk);           \
                                                                   \
		kernel_call;                                       \
		if (!b)                                            \
			return;                                    \
		set;                                               \
		SHADOW_BEFORE(sk, b)                               \
		alg##_core_##op(b);                                \
		shadow_compare(CC_OP_##op, sk, &b->out, 0);        \
	}

#define SHADOW_U32(alg, op, kernel_call)                              \
	SEC("struct_ops/" #op)                                        \
	u32 BPF_PROG(shadow_##op, struct sock *sk)                    \
	{                                                             \
		struct alg##_block *b = alg##_begin(sk);              \
		u32 ret = kernel_call;                                \
                                                                      \
		if (b) {                                              \
			SHADOW_BEFORE(sk, b)                          \
			alg##_core_##op(b);                           \
			shadow_compare(CC_OP_##op, sk, &b->out, ret); \
		}                                                     \
		return ret;                                           \
	}

#define SHADOW_INIT(alg, kernel_call)                       \
	SEC("struct_ops/init")                              \
	void BPF_PROG(shadow_init, struct sock *sk)         \
	{                                                   \
		struct alg##_block *b = alg##_create(sk);   \
                                                            \
		kernel_call;                                \
		if (!b)                                     \
			return;                             \
		SHADOW_BEFORE(sk, b)                        \
		alg##_call(CC_OP_init, b);                  \
		shadow_compare(CC_OP_init, sk, &b->out, 0); \
	}

#define SHADOW_SET_SAMPLE                                                     \
	(b->in.acked = sample->pkts_acked, b->in.ack_rtt_us = sample->rtt_us, \
	 b->in.ack_in_flight_bytes = sample->in_flight)

/* The kernel's prototype has an enum there. */
enum tcp_ca_event { SHADOW_EVENT };

#endif
