/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Records the kernel's cubic; see record.h. */

/* K tells a difference of the cube root from one of anything else. */
#define RECORD_PRIVATE(sk, b) b->kernel_k = record_k(sk);
#include "record.h"

struct bictcp {
	u32 bic_K;
} __attribute__((preserve_access_index));

static __always_inline u32 record_k(struct sock *sk)
{
	struct bictcp *kernel = record_kernel_state(sk);

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

RECORD_INIT(cubictcp_init(sk))
RECORD_U32(ssthresh, cubictcp_recalc_ssthresh(sk))
RECORD_U32(undo_cwnd, tcp_reno_undo_cwnd(sk))
RECORD_VOID(cong_avoid, cubictcp_cong_avoid(sk, ack, acked))
RECORD_VOID(set_state, cubictcp_state(sk, new_state))
RECORD_VOID(cwnd_event, cubictcp_cwnd_event(sk, event))
RECORD_VOID(pkts_acked, cubictcp_acked(sk, sample))

SEC(".struct_ops.link")
struct tcp_congestion_ops recorder = {
	.init = (void *)record_init,
	.release = (void *)record_release,
	.ssthresh = (void *)record_ssthresh,
	.undo_cwnd = (void *)record_undo_cwnd,
	.cong_avoid = (void *)record_cong_avoid,
	.set_state = (void *)record_set_state,
	.cwnd_event = (void *)record_cwnd_event,
	.pkts_acked = (void *)record_pkts_acked,
	.name = "knee_rec_cubic",
};
