/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Our bbr1 beside the kernel's bbr; see shadow.h. */
#include "../../cc/bbr1.c"

/*
 * The kernel drew the first phase of its gain cycle at random. Ours must get
 * the draw that leads to the same phase, read from the kernel's state.
 */
#define SHADOW_BEFORE(sk, b) b->in.random = shadow_draw(kernel_cycle_phase(sk));
#include "shadow.h"

/* icsk_ca_priv of a socket that runs the kernel's bbr, by the kernel's BTF. */
struct bbr {
	u32 cycle_idx : 3;
} __attribute__((preserve_access_index));

struct inet_connection_sock___priv {
	u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

static __always_inline u32 kernel_cycle_phase(struct sock *sk)
{
	struct inet_connection_sock___priv *icsk = (void *)sk;
	struct bbr *bbr = (void *)&icsk->icsk_ca_priv;

	return BPF_CORE_READ_BITFIELD(bbr, cycle_idx);
}

/* The inverse of bbr1_enter_probe_bw(): the 32 bits that lead to `phase`. */
static __always_inline u32 shadow_draw(u32 phase)
{
	u32 n = (BBR1_CYCLE_PHASES - phase) % BBR1_CYCLE_PHASES;

	n = cc_min(n, BBR1_CYCLE_START_PHASES - 1);
	return (u32)((((u64)n << 32) + BBR1_CYCLE_START_PHASES - 1) /
		     BBR1_CYCLE_START_PHASES);
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

SHADOW_INIT(bbr1, bbr_init(sk))
SHADOW_U32(bbr1, ssthresh, bbr_ssthresh(sk))
SHADOW_U32(bbr1, undo_cwnd, bbr_undo_cwnd(sk))
SHADOW_U32(bbr1, min_tso_segs, bbr_min_tso_segs(sk))
SHADOW_U32(bbr1, sndbuf_expand, bbr_sndbuf_expand(sk))
SHADOW_VOID(bbr1, set_state, bbr_set_state(sk, new_state),
	    b->in.state = new_state, u8 new_state)
SHADOW_VOID(bbr1, cwnd_event, bbr_cwnd_event(sk, event), b->in.event = event,
	    u32 event)
SHADOW_VOID(bbr1, cong_control, bbr_main(sk, ack, flag, rs),
	    cc_bpf_read_sample(rs, &b->in), u32 ack, u32 flag,
	    const struct rate_sample *rs)

SEC(".struct_ops")
struct tcp_congestion_ops shadow_bbr1 = {
	.init = (void *)shadow_init,
	.ssthresh = (void *)shadow_ssthresh,
	.undo_cwnd = (void *)shadow_undo_cwnd,
	.min_tso_segs = (void *)shadow_min_tso_segs,
	.sndbuf_expand = (void *)shadow_sndbuf_expand,
	.set_state = (void *)shadow_set_state,
	.cwnd_event = (void *)shadow_cwnd_event,
	.cong_control = (void *)shadow_cong_control,
	.name = "shadow_bbr1",
};
