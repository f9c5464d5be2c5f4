/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Our reno beside the kernel's; see shadow.h. */
#include "../../cc/reno.c"
#include "shadow.h"

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SHADOW_INIT(reno, (void)0)
SHADOW_U32(reno, ssthresh, tcp_reno_ssthresh(sk))
SHADOW_U32(reno, undo_cwnd, tcp_reno_undo_cwnd(sk))
SHADOW_VOID(reno, cong_avoid, tcp_reno_cong_avoid(sk, ack, acked),
	    b->in.acked = acked, u32 ack, u32 acked)

SEC(".struct_ops")
struct tcp_congestion_ops shadow_reno = {
	.init = (void *)shadow_init,
	.ssthresh = (void *)shadow_ssthresh,
	.undo_cwnd = (void *)shadow_undo_cwnd,
	.cong_avoid = (void *)shadow_cong_avoid,
	.name = "shadow_reno",
};
