/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Records the kernel's reno; see record.h. */
#include "record.h"

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

RECORD_INIT((void)0)
RECORD_U32(ssthresh, tcp_reno_ssthresh(sk))
RECORD_U32(undo_cwnd, tcp_reno_undo_cwnd(sk))
RECORD_VOID(cong_avoid, tcp_reno_cong_avoid(sk, ack, acked))

SEC(".struct_ops.link")
struct tcp_congestion_ops recorder = {
	.init = (void *)record_init,
	.release = (void *)record_release,
	.ssthresh = (void *)record_ssthresh,
	.undo_cwnd = (void *)record_undo_cwnd,
	.cong_avoid = (void *)record_cong_avoid,
	.name = "knee_rec_reno",
};
