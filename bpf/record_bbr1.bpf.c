/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Records the kernel's bbr, which is bbr1 here; see record.h. */

/*
 * The kernel draws the first phase of its gain cycle at random. Recorded is a
 * draw that leads ours to the same phase.
 */
#define RECORD_PRIVATE(sk, b) b->in.random = record_draw(sk);
#include "record.h"

/* Phases of the cycle, and those among which the first one is drawn. */
#define RECORD_PHASES 8u
#define RECORD_START_PHASES 7u

struct bbr {
	u32 cycle_idx : 3;
} __attribute__((preserve_access_index));

/* The inverse of bbr1_cycle_start(): 32 bits that lead to the phase which
 * the kernel is in. */
static __always_inline u32 record_draw(struct sock *sk)
{
	struct bbr *bbr = record_kernel_state(sk);
	u32 phase = BPF_CORE_READ_BITFIELD(bbr, cycle_idx);
	u32 n = (RECORD_PHASES - phase) % RECORD_PHASES;

	n = cc_min(n, RECORD_START_PHASES - 1);
	return (u32)((((u64)n << 32) + RECORD_START_PHASES - 1) /
		     RECORD_START_PHASES);
}

extern void bbr_init(struct sock *sk) __ksym;
extern u32 bbr_ssthresh(struct sock *sk) __ksym;
extern u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, u8 new_state) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void bbr_main(struct sock *sk, u32 ack, int flag,
		     const struct rate_sample *rs) __ksym;

RECORD_INIT(bbr_init(sk))
RECORD_U32(ssthresh, bbr_ssthresh(sk))
RECORD_U32(undo_cwnd, bbr_undo_cwnd(sk))
RECORD_U32(min_tso_segs, bbr_min_tso_segs(sk))
RECORD_U32(sndbuf_expand, bbr_sndbuf_expand(sk))
RECORD_VOID(set_state, bbr_set_state(sk, new_state))
RECORD_VOID(cwnd_event, bbr_cwnd_event(sk, event))
RECORD_VOID(cong_control, bbr_main(sk, ack, flag, rs))

SEC(".struct_ops.link")
struct tcp_congestion_ops recorder = {
	.init = (void *)record_init,
	.release = (void *)record_release,
	.ssthresh = (void *)record_ssthresh,
	.undo_cwnd = (void *)record_undo_cwnd,
	.min_tso_segs = (void *)record_min_tso_segs,
	.sndbuf_expand = (void *)record_sndbuf_expand,
	.set_state = (void *)record_set_state,
	.cwnd_event = (void *)record_cwnd_event,
	.cong_control = (void *)record_cong_control,
	.name = "knee_rec_bbr1",
};
