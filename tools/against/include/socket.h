/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * socket.h - what a congestion control of the kernel sees of a connection, and
 * what it is made of. Included by stub.h only.
 */
#ifndef KNEE_AGAINST_SOCKET_H
#define KNEE_AGAINST_SOCKET_H

enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
	CA_EVENT_TLP_RECOVERY, /* Google's kernels */
};

enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

enum tcp_chrono {
	TCP_CHRONO_UNSPEC,
};

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	SK_PACING_FQ = 2,
};

#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)
#define TCP_CONG_NON_RESTRICTED BIT(0)
#define TCP_CONG_NEEDS_ECN BIT(1)
#define TCP_CONG_WANTS_CE_EVENTS BIT(2)
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_TS_HZ 1000
#define BPF_SOCK_OPS_BASE_RTT 7
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 32
#define TCP_MAX_QUICKACKS 16u
#define TCP_PLB_SCALE 8
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define FLAG_ECE 0x40
#define FLAG_SND_UNA_ADVANCED 0x400
#define FLAG_ACK_MAYBE_DELAYED 0x10000
#define GSO_MAX_SIZE 65536u
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320
#define SOCK_DBG 0
#define AF_INET 2
#define AF_INET6 10
#define INET6_ADDRSTRLEN 48

struct net {
	struct {
		u8 sysctl_tcp_min_tso_segs;
		u8 sysctl_tcp_plb_enabled;
	} ipv4;
};

struct sock {
	unsigned long sk_pacing_rate; /* bytes/s */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_pacing_shift;
	u32 sk_gso_max_size;
	u8 sk_state;
	u16 sk_family;
	u8 sk_v6_daddr[16];
};

struct inet_sock {
	struct sock sk;
	u16 inet_dport;
	u32 inet_daddr;
};

/* Larger than the kernel's, because Google's is. */
#define ICSK_CA_PRIV_SIZE (64 * sizeof(u64))

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;	     /* us */
	u64 tcp_clock_cache; /* ns */
	u64 tcp_wstamp_ns;
	u64 delivered_mstamp;
	u64 bytes_acked;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd;
	u32 prior_ssthresh;
	u32 snd_cwnd_stamp;
	u32 snd_una, snd_nxt, rcv_nxt, write_seq;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, delivered_ce, lost, app_limited;
	u32 srtt_us; /* of us, << 3 */
	u32 mdev_us, rttvar_us;
	struct minmax rtt_min;
	u32 min_rtt_us;
	u32 mss_cache, advmss;
	u32 lsndtime; /* jiffies */
	u32 reordering, reord_seen;
	u32 undo_marker, high_seq;
	bool is_cwnd_limited, is_sack_reneg, tlp_orig_data_app_limited;
	u8 ecn_flags, fast_ack_mode;
	struct {
		u32 rcv_tsval, rcv_tsecr;
		u16 saw_tstamp;
	} rx_opt;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_lost, prior_delivered, prior_delivered_ce;
	u32 tx_in_flight;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	s32 lost; /* Google's kernels: since the sampled packet was sent */
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
	bool is_ece, is_acking_tlp_retrans_seq; /* Google's kernels */
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight; /* bytes */
};

/* One packet: a segment. */
struct sk_buff {
	struct tcp_skb_cb {
		u32 seq, end_seq;
		u8 sacked;
		struct {
			u64 delivered_mstamp, first_tx_mstamp;
			u32 delivered, delivered_ce, in_flight, lost;
			bool is_app_limited;
		} tx;
	} cb;
};

#define TCP_SKB_CB(skb) ((struct tcp_skb_cb *)&(skb)->cb)
#define tcp_skb_pcount(skb) ((void)(skb), 1)
#define tcp_skb_tx_in_flight_is_suspicious(...) 0
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
#define inet_sk(sk) ((struct inet_sock *)(sk))
#define inet_csk_ca(sk) ((void *)inet_csk(sk)->icsk_ca_priv)
#define tcp_highest_sack_seq(tp) ((tp)->snd_una)
#define sock_flag(sk, flag) 0
#define ipv4_is_loopback(address) 0
#define ntohs(x) (x)
#define tcp_enter_quickack_mode(sk, n) ((void)(sk))
#define __tcp_send_ack(...) ((void)0)
#define tcp_ecn_mode_any(tp) (((tp)->ecn_flags & TCP_ECN_OK) != 0)
#define tcp_call_bpf(...) (-1)
#define tcp_call_bpf_2arg(...) (-1)
#define inet_csk_clear_xmit_timer(sk, which) ((void)(sk))

extern struct net against_net;
#define sock_net(sk) (&against_net)
extern struct net init_net;

static inline bool inet_csk_in_recovery(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
}

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = cwnd;
}

static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) +
	       tp->retrans_out;
}

static inline u32 tcp_left_out(const struct tcp_sock *tp)
{
	return tp->sacked_out + tp->lost_out;
}

static inline u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return tp->min_rtt_us;
}

static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier)
{
	return later > earlier ? (u32)(later - earlier) : 0;
}

static inline u32 tcp_stamp32_us_delta(u32 later, u32 earlier)
{
	return (s32)(later - earlier) > 0 ? later - earlier : 0;
}

/* Did the window hold sending back? In slow start also when it is less than
 * twice what was sent. */
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->is_cwnd_limited)
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* In a reduction the threshold is the new one; else 3/4 of the window count. */
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (inet_csk(sk)->icsk_ca_state == TCP_CA_CWR ||
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

#define tcp_time_stamp_ts(tp) ((u32)((tp)->tcp_mstamp / 1000))
#define tcp_time_stamp(tp) tcp_time_stamp_ts(tp)

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
/* Begins a reduction to the algorithm's threshold, unless one is under way. */
void tcp_enter_cwr(struct sock *sk);

/* ---- what a congestion control is --------------------------------------- */

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};

struct tcp_dctcp_info {
	u16 dctcp_enabled, dctcp_ce_state;
	u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};

struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	/* Google's kernels */
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	u8 bbr_mode, bbr_phase, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};

struct tcp_bbr2_info {
	u32 bbr_bw_lsb, bbr_bw_msb, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	u8 bbr_mode, bbr_phase, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};

union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
	struct tcp_bbr2_info bbr2;
};

/* Numbered as our get_info() numbers them, from 1. */
enum tcp_bbr_phase {
	BBR_PHASE_INVALID,
	BBR_PHASE_STARTUP,
	BBR_PHASE_DRAIN,
	BBR_PHASE_PROBE_BW_DOWN,
	BBR_PHASE_PROBE_BW_CRUISE,
	BBR_PHASE_PROBE_BW_REFILL,
	BBR_PHASE_PROBE_BW_UP,
	BBR_PHASE_PROBE_RTT,
};

enum tcp_bbr2_phase {
	BBR2_PHASE_INVALID,
	BBR2_PHASE_STARTUP,
	BBR2_PHASE_DRAIN,
	BBR2_PHASE_PROBE_BW_DOWN,
	BBR2_PHASE_PROBE_BW_CRUISE,
	BBR2_PHASE_PROBE_BW_REFILL,
	BBR2_PHASE_PROBE_BW_UP,
	BBR2_PHASE_PROBE_RTT,
};

#define INET_DIAG_VEGASINFO 3
#define INET_DIAG_DCTCPINFO 9
#define INET_DIAG_BBRINFO 16

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*tso_segs)(struct sock *sk, unsigned int mss); /* Google's */
#ifdef AGAINST_CONG_CONTROL_2
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, u32 ack, int flag,
			     const struct rate_sample *rs);
#endif
	void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr,
			   union tcp_cc_info *info);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	void *owner;
	u32 flags, key;
};

int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
#define tcp_unregister_congestion_control(ops) ((void)(ops))

struct tcp_plb_state {
	u8 consec_cong_rounds;
	u32 pause_until;
};

#define tcp_plb_init(sk, plb) ((void)(plb))
#define tcp_plb_update_state(sk, plb, ratio) ((void)(plb))
#define tcp_plb_check_rehash(sk, plb) ((void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(plb))
#define INET_ECN_dontxmit(sk) ((void)(sk))

#endif
