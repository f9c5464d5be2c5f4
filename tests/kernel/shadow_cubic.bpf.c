/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Our cubic beside the kernel's; see shadow.h. */
#include "../../cc/cc_algorithm.h"

/*
 * The one difference by design: the kernel's cube root is a table and one
 * Newton step. Ours is given the kernel's K, so that all else must be equal,
 * and how far the exact root is from it is noted.
 */
static u32 shadow_kernel_k;
u32 shadow_k_calls;
u32 shadow_k_gap_per_mille;

static u32 shadow_cube_root(u64 a)
{
	u32 exact = cc_cube_root(a);
	u32 gap = exact > shadow_kernel_k ? exact - shadow_kernel_k
					  : shadow_kernel_k - exact;

	shadow_k_calls++;
	shadow_k_gap_per_mille = cc_max(shadow_k_gap_per_mille,
					(u32)cc_div(gap * 1000ull, exact));
	return shadow_kernel_k;
}

#define cc_cube_root shadow_cube_root
#include "../../cc/cubic.c"

#define SHADOW_BEFORE(sk, b) shadow_kernel_k = kernel_k(sk);
#include "shadow.h"

/* icsk_ca_priv of a socket that runs the kernel's cubic, by the kernel's BTF. */
struct bictcp {
	u32 bic_K;
} __attribute__((preserve_access_index));

struct inet_connection_sock___priv {
	u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

static __always_inline u32 kernel_k(struct sock *sk)
{
	struct inet_connection_sock___priv *icsk = (void *)sk;
	struct bictcp *kernel = (void *)&icsk->icsk_ca_priv;

	return kernel->bic_K;
}

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk,
				enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk,
			   const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SHADOW_INIT(cubic, cubictcp_init(sk))
SHADOW_U32(cubic, ssthresh, cubictcp_recalc_ssthresh(sk))
SHADOW_U32(cubic, undo_cwnd, tcp_reno_undo_cwnd(sk))
SHADOW_VOID(cubic, cong_avoid, cubictcp_cong_avoid(sk, ack, acked),
	    b->in.acked = acked, u32 ack, u32 acked)
SHADOW_VOID(cubic, set_state, cubictcp_state(sk, new_state),
	    b->in.state = new_state, u8 new_state)
SHADOW_VOID(cubic, cwnd_event, cubictcp_cwnd_event(sk, event),
	    b->in.event = event, u32 event)
SHADOW_VOID(cubic, pkts_acked, cubictcp_acked(sk, sample), SHADOW_SET_SAMPLE,
	    const struct ack_sample *sample)

SEC(".struct_ops")
struct tcp_congestion_ops shadow_cubic = {
	.init = (void *)shadow_init,
	.ssthresh = (void *)shadow_ssthresh,
	.undo_cwnd = (void *)shadow_undo_cwnd,
	.cong_avoid = (void *)shadow_cong_avoid,
	.set_state = (void *)shadow_set_state,
	.cwnd_event = (void *)shadow_cwnd_event,
	.pkts_acked = (void *)shadow_pkts_acked,
	.name = "shadow_cubic",
};
