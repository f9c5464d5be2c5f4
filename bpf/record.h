/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * record.h - a congestion control knee_rec_NAME that is the kernel's own: each
 * of its programs calls the kernel's function, and writes what it was shown
 * and what it did into a ring buffer. What was recorded is replayed through
 * cc/NAME.c (crates/validation/src/replay).
 *
 * A file lists the ops; RECORD_PRIVATE(sk, b) may be defined to keep what the
 * contract of cc.h does not show, and is run after the kernel's function.
 */
#ifndef KNEE_RECORD_H
#define KNEE_RECORD_H

#include "../cc/cc_algorithm.h"

#ifndef RECORD_PRIVATE
#define RECORD_PRIVATE(sk, b)
#endif

/* Read by crates/validation/src/replay/recorder.rs. */
struct record {
	u64 flow;   /* number of the connection, from 1 */
	u32 number; /* of this op within the flow, from 0: a gap shows a loss */
	u32 op;	    /* enum cc_op_number */
	struct cc_in in;
	struct cc_out out; /* what the kernel made of it */
	u32 kernel_k;	   /* cubic: the kernel's K after the op; else 0 */
	u32 unused;
};

struct record_flow {
	u64 flow;
	u32 next;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct record_flow);
} record_flows SEC(".maps");

static u64 record_n_flows;
/* The buffer was full. A section of its own is a map of its own. */
u64 records_lost SEC(".bss.lost");

/* The record of an op that begins: a block with `in` filled, or 0 when the
 * flow is not known or the buffer is full. */
static __always_inline struct record *record_begin(struct sock *sk, u32 op)
{
	struct record_flow *f = bpf_sk_storage_get(&record_flows, sk, 0, 0);
	struct record *b;
	u32 number;

	if (!f)
		return 0;
	number = f->next++;
	b = bpf_ringbuf_reserve(&records, sizeof(*b), 0);
	if (!b) {
		__sync_fetch_and_add(&records_lost, 1);
		return 0;
	}
	__builtin_memset(b, 0, sizeof(*b));
	b->flow = f->flow;
	b->number = number;
	b->op = op;
	cc_bpf_read(sk, &b->in, &b->out);
	return b;
}

static __always_inline void record_out(struct sock *sk, struct record *b,
				       u32 ret)
{
	const struct tcp_sock *tp = (void *)sk;

	b->out.pacing_rate = sk->sk_pacing_rate;
	b->out.pacing_status = sk->sk_pacing_status;
	b->out.snd_cwnd = tp->snd_cwnd;
	b->out.snd_cwnd_cnt = tp->snd_cwnd_cnt;
	b->out.snd_ssthresh = tp->snd_ssthresh;
	b->out.app_limited = tp->app_limited;
	b->out.ret = ret;
}

#define RECORD_END(sk, b, ret)            \
	if (b) {                          \
		record_out(sk, b, ret);   \
		RECORD_PRIVATE(sk, b)     \
		bpf_ringbuf_submit(b, 0); \
	}

/* A flow begins where the algorithm does, so that its state is known. */
#define RECORD_INIT(kernel_call)                                              \
	SEC("struct_ops/init")                                                \
	void BPF_PROG(record_init, struct sock *sk)                           \
	{                                                                     \
		struct record_flow *f = bpf_sk_storage_get(                   \
			&record_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);   \
		struct record *b;                                             \
                                                                              \
		if (f) {                                                      \
			f->flow =                                             \
				__sync_fetch_and_add(&record_n_flows, 1) + 1; \
			f->next = 0;                                          \
		}                                                             \
		b = record_begin(sk, CC_OP_init);                             \
		kernel_call;                                                  \
		RECORD_END(sk, b, 0)                                          \
	}                                                                     \
	SEC("struct_ops/release")                                             \
	void BPF_PROG(record_release, struct sock *sk)                        \
	{                                                                     \
		bpf_sk_storage_delete(&record_flows, sk);                     \
	}

#define RECORD_VOID(op, kernel_call)                                     \
	SEC("struct_ops/" #op)                                           \
	void CC_BPF_PROG(record_##op, struct sock *sk, CC_BPF_ARGS_##op) \
	{                                                                \
		struct record *b = record_begin(sk, CC_OP_##op);         \
                                                                         \
		if (b) {                                                 \
			CC_BPF_SET_##op;                                 \
		}                                                        \
		kernel_call;                                             \
		RECORD_END(sk, b, 0)                                     \
	}

#define RECORD_U32(op, kernel_call)                              \
	SEC("struct_ops/" #op)                                   \
	u32 BPF_PROG(record_##op, struct sock *sk)               \
	{                                                        \
		struct record *b = record_begin(sk, CC_OP_##op); \
		u32 ret = kernel_call;                           \
                                                                 \
		RECORD_END(sk, b, ret)                           \
		return ret;                                      \
	}

/* The kernel's prototype has an enum there. */
enum tcp_ca_event { RECORD_EVENT };

/* icsk_ca_priv, where the kernel's own algorithm keeps its state. */
struct inet_connection_sock___private {
	u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

static __always_inline void *record_kernel_state(struct sock *sk)
{
	struct inet_connection_sock___private *icsk = (void *)sk;

	return &icsk->icsk_ca_priv;
}

#endif
