/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_bpf_kernel.h - the kernel's structs, as much of them as cc_bpf.h reads or
 * writes. CO-RE finds the offsets in the running kernel.
 */
#ifndef KNEE_CC_BPF_KERNEL_H
#define KNEE_CC_BPF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u32 rcv_tsval;
	u32 rcv_tsecr;
};

struct tcp_sock {
	struct tcp_options_received rx_opt;
	u64 tcp_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u32 lsndtime;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u8 ecn_flags;
	u32 srtt_us; /* us << 3 */
	struct minmax rtt_min;
	u32 mss_cache;
	u32 reordering;
	u8 is_cwnd_limited : 1;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
	_Bool is_ack_delayed;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

/* libbpf matches the members with the kernel's by name. */
struct tcp_congestion_ops {
	void (*ssthresh)(void);
	void (*cong_avoid)(void);
	void (*set_state)(void);
	void (*cwnd_event)(void);
	void (*in_ack_event)(void);
	void (*pkts_acked)(void);
	void (*min_tso_segs)(void);
	void (*cong_control)(void);
	void (*undo_cwnd)(void);
	void (*sndbuf_expand)(void);
	char name[16];
	u32 flags;
	void (*init)(void);
	void (*release)(void);
};

/* The loader sets them there (crates/loader/src/registration.rs). */
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, name) == 80 &&
		       __builtin_offsetof(struct tcp_congestion_ops, flags) ==
			       96,
	       "the loader looks for name and flags elsewhere");

#endif
