/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_bpf.h - the kernel shell: CC_ALGORITHM() becomes struct_ops programs and
 * the map that registers them, of the name they get there.
 *
 * Every program does the same three things: copy kernel fields into `in` and
 * `out`, call the op, copy what changed back. State, in and out of a socket
 * are one sk_storage value: plain memory, so that an op may index it, and
 * large enough where icsk_ca_priv (104 bytes) is not.
 *
 * Each op becomes one global function over that block. The verifier checks a
 * global function once, and the same function serves struct_ops here and the
 * replay program (CC_BPF_REPLAY), which runs ops on blocks given by user space,
 * so that their results can be compared with the host build.
 *
 * Needs Linux 6.10 (cong_control with ack and flag); -DCC_BPF_CONG_CONTROL_2
 * builds for 6.4 to 6.9, whose cong_control has two arguments.
 */
#ifndef KNEE_CC_BPF_H
#define KNEE_CC_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char cc_license[] SEC("license") = "Dual MIT/GPL";

/* The kernel refuses get_info of struct_ops. */
#define CC_GET_INFO(alg, type, ...)

#define CC_BPF_BLOCK(alg, state_type)                         \
	struct alg##_block {                                  \
		state_type state __attribute__((aligned(8))); \
		struct cc_in in;                              \
		struct cc_out out;                            \
	};

/* Parameters in the order of their list; a loader may set them in this section
 * before the object is loaded. The last is there for lists without any. */
#define CC_BPF_PARAM_INDEX(name, dflt, min, max, unit, doc) CC_PARAM_##name,
#define CC_BPF_PARAM_DEFAULT(name, dflt, min, max, unit, doc) dflt,
#define CC_BPF_PARAMS(PARAMS)                              \
	enum { PARAMS(CC_BPF_PARAM_INDEX) CC_N_PARAMS };   \
	const volatile u32 cc_params[CC_N_PARAMS + 1] SEC( \
		".rodata.params") = { PARAMS(CC_BPF_PARAM_DEFAULT) 0 };
#define CC_BPF_PARAM_SET(name, dflt, min, max, unit, doc) \
	b->state.name = cc_params[CC_PARAM_##name];

#define CC_BPF_CORE(alg, op)                                                 \
	__attribute__((noinline)) int alg##_core_##op(struct alg##_block *b) \
	{                                                                    \
		if (!b)                                                      \
			return 0;                                            \
		alg##_##op(&b->state, &b->in, &b->out);                      \
		return 0;                                                    \
	}

/* Calls an op by number; one that the algorithm lacks does nothing. */
#define CC_BPF_CALL_CASE(alg, op)   \
	case CC_OP_##op:            \
		alg##_core_##op(b); \
		break;
#define CC_BPF_CALL(alg, OPS)                                                 \
	static __always_inline void alg##_call(u32 op, struct alg##_block *b) \
	{                                                                     \
		switch (op) {                                                 \
			OPS(CC_BPF_CALL_CASE)                                 \
		}                                                             \
	}

#ifdef CC_BPF_REPLAY

/* Most ops of one run of the program. */
#define CC_REPLAY_OPS 512

struct cc_replay {
	u32 n_ops; /* to run, of the first entries of the map */
};

/* Each entry is a block and the op to run on it. The ops of one run know nothing
 * of each other: user space chains them, as it has the host's results already. */
#define CC_ALGORITHM(alg, state_type, PARAMS, OPS, alg_flags, ...)     \
	CC_BPF_BLOCK(alg, state_type)                                  \
	OPS(CC_BPF_CORE)                                               \
	CC_BPF_CALL(alg, OPS)                                          \
	struct alg##_entry {                                           \
		struct alg##_block block;                              \
		u64 op; /* enum cc_op_number */                        \
	};                                                             \
	struct {                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                      \
		__uint(map_flags, BPF_F_MMAPABLE);                     \
		__uint(max_entries, CC_REPLAY_OPS);                    \
		__type(key, u32);                                      \
		__type(value, struct alg##_entry);                     \
	} replay_entries SEC(".maps");                                 \
	static long alg##_replay_one(u32 i, void *ctx)                 \
	{                                                              \
		struct alg##_entry *e =                                \
			bpf_map_lookup_elem(&replay_entries, &i);      \
                                                                       \
		(void)ctx;                                             \
		if (!e)                                                \
			return 1;                                      \
		alg##_call((u32)e->op, &e->block);                     \
		return 0;                                              \
	}                                                              \
	SEC("syscall")                                                 \
	int replay(struct cc_replay *ctx)                              \
	{                                                              \
		return bpf_loop(ctx->n_ops, alg##_replay_one, 0, 0) != \
		       ctx->n_ops;                                     \
	}

#else

#include "cc_bpf_kernel.h"

/* CA_ACK_* of in_ack_event(), which numbers its flags anew. */
#define CC_BPF_CA_ACK_SLOWPATH 0x1u
#define CC_BPF_CA_ACK_ECE 0x4u

/* Flags that kernels up to 6.18 accept; they refuse an object with others. */
#define CC_BPF_KNOWN_FLAGS CC_FLAG_NEEDS_ECN

/* Bits of tp->ecn_flags; both modes while the handshake is under way. */
#define CC_BPF_ECN_CLASSIC 0x1u
#define CC_BPF_ECN_DEMAND_CWR 0x4u
#define CC_BPF_ECN_ACCURATE 0x10u

/* Bits of icsk_ack.pending. */
#define CC_BPF_ACK_TIMER 0x2u
#define CC_BPF_ACK_NOW 0x10u

extern int CONFIG_HZ __kconfig;

static __always_inline u32 cc_bpf_ecn_mode(u32 ecn_flags)
{
	switch (ecn_flags & (CC_BPF_ECN_CLASSIC | CC_BPF_ECN_ACCURATE)) {
	case CC_BPF_ECN_CLASSIC:
		return CC_ECN_CLASSIC;
	case CC_BPF_ECN_ACCURATE:
		return CC_ECN_ACCURATE;
	default:
		return CC_ECN_NONE;
	}
}

static __always_inline void cc_bpf_read(struct sock *sk, struct cc_in *in,
					struct cc_out *out)
{
	const struct inet_connection_sock *icsk = (void *)sk;
	const struct tcp_sock *tp = (void *)sk;
	u32 srtt_us = tp->srtt_us;
	u32 ecn_flags = tp->ecn_flags;

	in->now_us = tp->tcp_mstamp;
	in->clock_ns = tp->tcp_clock_cache;
	in->wstamp_ns = tp->tcp_wstamp_ns;
	in->pacing_rate = sk->sk_pacing_rate;
	in->max_pacing_rate = sk->sk_max_pacing_rate;
	in->jiffies = (u32)bpf_jiffies64();
	in->hz = CONFIG_HZ;
	in->lsndtime = tp->lsndtime;
	in->snd_cwnd = tp->snd_cwnd;
	in->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	in->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	in->snd_ssthresh = tp->snd_ssthresh;
	in->prior_cwnd = tp->prior_cwnd;
	in->snd_una = tp->snd_una;
	in->snd_nxt = tp->snd_nxt;
	in->rcv_tsval = tp->rx_opt.rcv_tsval;
	in->rcv_tsecr = tp->rx_opt.rcv_tsecr;
	in->packets_out = tp->packets_out;
	in->sacked_out = tp->sacked_out;
	in->lost_out = tp->lost_out;
	in->retrans_out = tp->retrans_out;
	in->max_packets_out = tp->max_packets_out;
	in->delivered = tp->delivered;
	in->delivered_ce = tp->delivered_ce;
	in->lost = tp->lost;
	in->app_limited = tp->app_limited;
	/* 0 says "no sample"; a sample below 1 us must not. */
	in->srtt_us = srtt_us ? cc_max(srtt_us >> 3, 1) : 0;
	in->min_rtt_us = tp->rtt_min.s[0].v;
	in->mss_bytes = tp->mss_cache;
	in->gso_max_bytes = sk->sk_gso_max_size;
	in->reordering = tp->reordering;
	in->pacing_status = sk->sk_pacing_status;
	in->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	in->is_cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	in->random = bpf_get_prandom_u32();
	in->ecn_mode = cc_bpf_ecn_mode(ecn_flags);
	in->ack_state = 0;
	if (ecn_flags & CC_BPF_ECN_DEMAND_CWR)
		in->ack_state |= CC_ACK_STATE_ECHO;
	if (icsk->icsk_ack.pending & CC_BPF_ACK_TIMER)
		in->ack_state |= CC_ACK_STATE_DELAYED;
	in->rcv_nxt = tp->rcv_nxt;

	out->pacing_rate = in->pacing_rate;
	out->pacing_status = in->pacing_status;
	out->snd_cwnd = in->snd_cwnd;
	out->snd_cwnd_cnt = in->snd_cwnd_cnt;
	out->snd_ssthresh = in->snd_ssthresh;
	out->app_limited = in->app_limited;
	out->ret = 0;
	out->ack_prior = CC_ACK_PRIOR_NONE;
	out->ack_prior_seq = 0;
	out->ecn_echo = in->ack_state & CC_ACK_STATE_ECHO;
	out->ack_now = 0;
	out->random_drawn = 0;
	out->enter_cwr = 0;
}

static __always_inline void cc_bpf_read_sample(const struct rate_sample *rs,
					       struct cc_in *in)
{
	in->rs_interval_us = rs->interval_us;
	in->rs_rtt_us = rs->rtt_us;
	in->rs_prior_mstamp_us = rs->prior_mstamp;
	in->rs_prior_delivered = rs->prior_delivered;
	in->rs_delivered = rs->delivered;
	in->rs_delivered_ce = rs->delivered_ce;
	in->rs_acked_sacked = rs->acked_sacked;
	in->rs_losses = (u32)rs->losses;
	in->rs_prior_in_flight = rs->prior_in_flight;
	in->rs_snd_interval_us = rs->snd_interval_us;
	in->rs_rcv_interval_us = rs->rcv_interval_us;
	in->rs_last_end_seq = rs->last_end_seq;
	in->rs_is_app_limited = rs->is_app_limited;
	in->rs_is_retrans = rs->is_retrans;
	in->rs_is_ack_delayed = rs->is_ack_delayed;
	in->rs_has_tx = 0; /* stock Linux does not keep them */
}

static __always_inline void
cc_bpf_write(struct sock *sk, const struct cc_in *in, const struct cc_out *out)
{
	struct tcp_sock *tp = (void *)sk;

	/* A window of 0 would divide by zero elsewhere in the stack. */
	if (out->snd_cwnd != in->snd_cwnd)
		tp->snd_cwnd = cc_max(out->snd_cwnd, 1);
	if (out->snd_cwnd_cnt != in->snd_cwnd_cnt)
		tp->snd_cwnd_cnt = out->snd_cwnd_cnt;
	if (out->snd_ssthresh != in->snd_ssthresh)
		tp->snd_ssthresh = out->snd_ssthresh;
	if (out->app_limited != in->app_limited)
		tp->app_limited = out->app_limited;
	if (out->pacing_rate != in->pacing_rate)
		sk->sk_pacing_rate =
			cc_min64(out->pacing_rate, in->max_pacing_rate);
	/* Atomically, since the fq qdisc may claim the socket meanwhile. */
	if (out->pacing_status == CC_PACING_NEEDED &&
	    in->pacing_status == CC_PACING_NONE)
		__sync_val_compare_and_swap(&sk->sk_pacing_status,
					    CC_PACING_NONE, CC_PACING_NEEDED);
}

/* Clang calls memset() for a block this large, and BPF has none. */
static __always_inline void cc_bpf_clear(void *block, u32 bytes)
{
	volatile u64 *words = block;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < bytes / 8; i++)
		words[i] = 0;
}

static __always_inline void cc_bpf_echo(struct tcp_sock *tp, u32 ece)
{
	if (ece)
		tp->ecn_flags |= CC_BPF_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~CC_BPF_ECN_DEMAND_CWR;
}

/* What cwnd_event() asks of the receiving half. */
static __always_inline void cc_bpf_write_acks(struct sock *sk,
					      const struct cc_in *in,
					      const struct cc_out *out)
{
	struct inet_connection_sock *icsk = (void *)sk;
	struct tcp_sock *tp = (void *)sk;

	if (out->ack_prior) {
		cc_bpf_echo(tp, out->ack_prior == CC_ACK_PRIOR_ECE);
		bpf_tcp_send_ack(tp, out->ack_prior_seq);
	}
	if (out->ack_prior ||
	    out->ecn_echo != (in->ack_state & CC_ACK_STATE_ECHO))
		cc_bpf_echo(tp, out->ecn_echo);
	if (out->ack_now)
		icsk->icsk_ack.pending |= CC_BPF_ACK_NOW;
}

/*
 * The block exists from init() on. Before it (cong_control runs for the
 * SYN-ACK) and when its memory could not be had, ops leave the window alone.
 */
#define CC_BPF_STORE(alg, PARAMS)                                          \
	struct {                                                           \
		__uint(type, BPF_MAP_TYPE_SK_STORAGE);                     \
		__uint(map_flags, BPF_F_NO_PREALLOC);                      \
		__type(key, int);                                          \
		__type(value, struct alg##_block);                         \
	} alg##_store SEC(".maps");                                        \
	static __always_inline struct alg##_block *alg##_begin(            \
		struct sock *sk)                                           \
	{                                                                  \
		struct alg##_block *b =                                    \
			bpf_sk_storage_get(&alg##_store, sk, 0, 0);        \
                                                                           \
		if (b)                                                     \
			cc_bpf_read(sk, &b->in, &b->out);                  \
		return b;                                                  \
	}                                                                  \
	static __always_inline struct alg##_block *alg##_create(           \
		struct sock *sk)                                           \
	{                                                                  \
		struct alg##_block *b = bpf_sk_storage_get(                \
			&alg##_store, sk, 0, BPF_SK_STORAGE_GET_F_CREATE); \
                                                                           \
		if (!b)                                                    \
			return b;                                          \
		cc_bpf_clear(b, sizeof(*b));                               \
		PARAMS(CC_BPF_PARAM_SET)                                   \
		cc_bpf_read(sk, &b->in, &b->out);                          \
		return b;                                                  \
	}

/*
 * The stack sends ECT for an algorithm that needs ECN even when the other end
 * refused it. Nobody would hear of a mark then: such a connection is Reno's.
 */
#define CC_BPF_SOL_TCP 6
#define CC_BPF_TCP_CONGESTION 13

static __always_inline u32 cc_bpf_give_up(struct sock *sk, u32 alg_flags)
{
	const struct tcp_sock *tp = (void *)sk;
	char reno[] = "reno";

	if (!(alg_flags & CC_FLAG_NEEDS_ECN) || cc_bpf_ecn_mode(tp->ecn_flags))
		return 0;
	return !bpf_setsockopt(sk, CC_BPF_SOL_TCP, CC_BPF_TCP_CONGESTION, reno,
			       sizeof(reno));
}

#define CC_BPF_INIT(alg, alg_flags)                                    \
	SEC("struct_ops/init")                                         \
	void BPF_PROG(alg##_bpf_init, struct sock *sk)                 \
	{                                                              \
		struct alg##_block *b;                                 \
                                                                       \
		if (cc_bpf_give_up(sk, alg_flags))                     \
			return;                                        \
		b = alg##_create(sk);                                  \
		if (!b)                                                \
			return;                                        \
		alg##_call(CC_OP_init, b);                             \
		cc_bpf_write(sk, &b->in, &b->out);                     \
	}                                                              \
	/* A socket that is used again must not meet its old state. */ \
	SEC("struct_ops/release")                                      \
	void BPF_PROG(alg##_bpf_release, struct sock *sk)              \
	{                                                              \
		bpf_sk_storage_delete(&alg##_store, sk);               \
	}

/* BPF_PROG() behind a macro, so that a list of arguments is expanded first. */
#define CC_BPF_PROG(name, ...) BPF_PROG(name, ##__VA_ARGS__)

/* A program whose op returns nothing; `after` follows the write. */
#define CC_BPF_VOID(alg, op, after)                                         \
	SEC("struct_ops/" #op)                                              \
	void CC_BPF_PROG(alg##_bpf_##op, struct sock *sk, CC_BPF_ARGS_##op) \
	{                                                                   \
		struct alg##_block *b = alg##_begin(sk);                    \
                                                                            \
		if (!b)                                                     \
			return;                                             \
		CC_BPF_SET_##op;                                            \
		alg##_core_##op(b);                                         \
		cc_bpf_write(sk, &b->in, &b->out);                          \
		after;                                                      \
	}

/* A program that returns out.ret, or `fallback` without a block. */
#define CC_BPF_U32(alg, op, fallback)                    \
	SEC("struct_ops/" #op)                           \
	u32 BPF_PROG(alg##_bpf_##op, struct sock *sk)    \
	{                                                \
		struct alg##_block *b = alg##_begin(sk); \
		const struct tcp_sock *tp = (void *)sk;  \
                                                         \
		(void)tp;                                \
		if (!b)                                  \
			return fallback;                 \
		alg##_core_##op(b);                      \
		cc_bpf_write(sk, &b->in, &b->out);       \
		return b->out.ret;                       \
	}

#define CC_BPF_OP_init(alg) /* always there: CC_BPF_INIT */
#define CC_BPF_OP_ssthresh(alg) \
	CC_BPF_U32(alg, ssthresh, cc_max(tp->snd_cwnd / 2, 2))
#define CC_BPF_OP_undo_cwnd(alg) \
	CC_BPF_U32(alg, undo_cwnd, cc_max(tp->snd_cwnd, tp->prior_cwnd))
#define CC_BPF_OP_min_tso_segs(alg) CC_BPF_U32(alg, min_tso_segs, 2)
#define CC_BPF_OP_sndbuf_expand(alg) CC_BPF_U32(alg, sndbuf_expand, 2)
/* An op's arguments after the socket, and their places in `in` of a block b. */
#define CC_BPF_ARGS_cong_avoid u32 ack, u32 acked
#define CC_BPF_SET_cong_avoid b->in.acked = acked
#define CC_BPF_ARGS_set_state u8 new_state
#define CC_BPF_SET_set_state b->in.state = new_state
#define CC_BPF_ARGS_cwnd_event u32 event
#define CC_BPF_SET_cwnd_event b->in.event = event
#define CC_BPF_ARGS_in_ack_event u32 flags
#define CC_BPF_SET_in_ack_event                                \
	b->in.ack_flags =                                      \
		(flags & CC_BPF_CA_ACK_ECE ? CC_ACK_ECE : 0) | \
		(flags & CC_BPF_CA_ACK_SLOWPATH ? CC_ACK_SLOWPATH : 0)
#define CC_BPF_ARGS_pkts_acked const struct ack_sample *sample
#define CC_BPF_SET_pkts_acked                                                 \
	(b->in.acked = sample->pkts_acked, b->in.ack_rtt_us = sample->rtt_us, \
	 b->in.ack_in_flight_bytes = sample->in_flight)
#ifdef CC_BPF_CONG_CONTROL_2
#define CC_BPF_ARGS_cong_control const struct rate_sample *rs
#define CC_BPF_SET_cong_control \
	(b->in.ack_flags = 0, cc_bpf_read_sample(rs, &b->in))
#else
#define CC_BPF_ARGS_cong_control u32 ack, u32 flag, const struct rate_sample *rs
#define CC_BPF_SET_cong_control \
	(b->in.ack_flags = flag, cc_bpf_read_sample(rs, &b->in))
#endif

#define CC_BPF_OP_cong_avoid(alg) CC_BPF_VOID(alg, cong_avoid, )
#define CC_BPF_OP_set_state(alg) CC_BPF_VOID(alg, set_state, )
#define CC_BPF_OP_cwnd_event(alg) \
	CC_BPF_VOID(alg, cwnd_event, cc_bpf_write_acks(sk, &b->in, &b->out))
#define CC_BPF_OP_in_ack_event(alg) CC_BPF_VOID(alg, in_ack_event, )
/* Stock Linux does not call it. */
#define CC_BPF_OP_skb_marked_lost(alg)
#define CC_BPF_OP_pkts_acked(alg) CC_BPF_VOID(alg, pkts_acked, )
#define CC_BPF_OP_cong_control(alg) CC_BPF_VOID(alg, cong_control, )

#define CC_BPF_PROGRAM(alg, op) CC_BPF_OP_##op(alg)
#define CC_BPF_MEMBER(alg, op) CC_BPF_MEMBER_##op(alg)
#define CC_BPF_MEMBER_OF(alg, op) .op = (void *)alg##_bpf_##op,
#define CC_BPF_MEMBER_init(alg) CC_BPF_MEMBER_OF(alg, init)
#define CC_BPF_MEMBER_ssthresh(alg) CC_BPF_MEMBER_OF(alg, ssthresh)
#define CC_BPF_MEMBER_cong_avoid(alg) CC_BPF_MEMBER_OF(alg, cong_avoid)
#define CC_BPF_MEMBER_cong_control(alg) CC_BPF_MEMBER_OF(alg, cong_control)
#define CC_BPF_MEMBER_undo_cwnd(alg) CC_BPF_MEMBER_OF(alg, undo_cwnd)
#define CC_BPF_MEMBER_set_state(alg) CC_BPF_MEMBER_OF(alg, set_state)
#define CC_BPF_MEMBER_cwnd_event(alg) CC_BPF_MEMBER_OF(alg, cwnd_event)
#define CC_BPF_MEMBER_pkts_acked(alg) CC_BPF_MEMBER_OF(alg, pkts_acked)
#define CC_BPF_MEMBER_min_tso_segs(alg) CC_BPF_MEMBER_OF(alg, min_tso_segs)
#define CC_BPF_MEMBER_sndbuf_expand(alg) CC_BPF_MEMBER_OF(alg, sndbuf_expand)
#define CC_BPF_MEMBER_in_ack_event(alg) CC_BPF_MEMBER_OF(alg, in_ack_event)
#define CC_BPF_MEMBER_skb_marked_lost(alg)

#define CC_ALGORITHM(alg, state_type, PARAMS, OPS, alg_flags, ...) \
	CC_BPF_BLOCK(alg, state_type)                              \
	CC_BPF_PARAMS(PARAMS)                                      \
	OPS(CC_BPF_CORE)                                           \
	CC_BPF_CALL(alg, OPS)                                      \
	CC_BPF_STORE(alg, PARAMS)                                  \
	CC_BPF_INIT(alg, alg_flags)                                \
	OPS(CC_BPF_PROGRAM)                                        \
	SEC(".struct_ops")                                         \
	struct tcp_congestion_ops CC_KERNEL_NAME_OF(alg) = {       \
		OPS(CC_BPF_MEMBER).init = (void *)alg##_bpf_init,  \
		.release = (void *)alg##_bpf_release,              \
		.flags = (alg_flags)&CC_BPF_KNOWN_FLAGS,           \
		.name = CC_QUOTE(CC_KERNEL_NAME_OF(alg)),          \
	};

#endif /* CC_BPF_REPLAY */

#endif
