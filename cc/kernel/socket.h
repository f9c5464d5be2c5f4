/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * socket.h - what a congestion control of the kernel sees of a connection, and
 * what it is made of. Included by kernel.h only.
 *
 * A field that is const here an algorithm may read and not set: the stack that
 * runs it would not hear of it. The fields have the kernel's names, units and
 * scales; adapter.c fills them from the contract before each op.
 */
#ifndef KNEE_KERNEL_SOCKET_H
#define KNEE_KERNEL_SOCKET_H

#ifdef KNEE_ADAPTER /* which fills them */
#define KNEE_SHOWN
#else
#define KNEE_SHOWN const
#endif

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
	/* The simulator tells none of these: the first is of Google's kernels,
	 * the others of Linux before 4.16. */
	CA_EVENT_TLP_RECOVERY,
	CA_EVENT_DELAYED_ACK,
	CA_EVENT_NON_DELAYED_ACK,
};

enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};

enum tcp_chrono {
	TCP_CHRONO_UNSPEC,
	TCP_CHRONO_BUSY,
	TCP_CHRONO_RWND_LIMITED,
	TCP_CHRONO_SNDBUF_LIMITED,
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
#define TCP_CONG_NON_RESTRICTED 0x1u
#define TCP_CONG_NEEDS_ECN 0x2u
#define TCP_CONG_NEEDS_ACCECN 0x4u
#define TCP_CONG_ECT_1_NEGOTIATION 0x8u
#define TCP_CONG_NO_FALLBACK_RFC3168 0x10u
#define TCP_CONG_WANTS_CE_EVENTS 0x10000u /* Google's kernels */
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10u
#define TCP_TS_HZ 1000
#define TCP_RTO_MAX ((unsigned int)(120 * HZ))
#define TCP_RTO_MIN ((unsigned int)(HZ / 5))
#define TCP_TIMEOUT_INIT ((unsigned int)(1 * HZ))
#define TCP_DELACK_MAX ((unsigned int)(HZ / 5))
#define TCP_DELACK_MIN ((unsigned int)(HZ / 25))
#define BPF_SOCK_OPS_BASE_RTT 7
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define ICSK_TIME_DACK 2
/* Numbered so that those of every age differ; nobody else reads them. */
#define TCP_ECN_OK 1
#define TCP_ECN_MODE_RFC3168 TCP_ECN_OK
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 32
#define TCP_ECN_MODE_ACCECN 64
#define TCP_MAX_QUICKACKS 16u
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define FLAG_ECE 0x40
#define FLAG_SLOWPATH 0x100
#define FLAG_SND_UNA_ADVANCED 0x400
#define FLAG_ACK_MAYBE_DELAYED 0x10000
#define GSO_MAX_SIZE 65536u
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320
#define TCP_MIN_MSS 88U
#define TCP_MSS_DEFAULT 536U
#define SOCK_DBG 0
#define AF_INET 2
#define AF_INET6 10
#define INET6_ADDRSTRLEN 48
#define IPPROTO_TCP 6
#define SOL_TCP 6

struct net {
	struct {
		KNEE_SHOWN u8 sysctl_tcp_min_tso_segs;
		KNEE_SHOWN u8 sysctl_tcp_plb_enabled;
	} ipv4;
};

struct sock {
	unsigned long sk_pacing_rate; /* bytes/s */
	u32 sk_pacing_status;
	KNEE_SHOWN unsigned long sk_max_pacing_rate;
	KNEE_SHOWN u32 sk_pacing_shift;
	KNEE_SHOWN u32 sk_gso_max_size;
	KNEE_SHOWN u8 sk_state;
	/* Every connection goes to one address: 0. */
	KNEE_SHOWN u16 sk_family, sk_dport, sk_num;
	KNEE_SHOWN u32 sk_daddr, sk_rcv_saddr;
	KNEE_SHOWN u8 sk_v6_daddr[16];
};

struct inet_sock {
	struct sock sk;
	KNEE_SHOWN u16 inet_dport, inet_sport;
	KNEE_SHOWN u32 inet_daddr, inet_saddr;
};

/* An instant of the connection's clock: before Linux 4.13 a structure. */
#ifdef KNEE_OLD_MSTAMP
struct skb_mstamp {
	union {
		u64 v64;
		struct {
			u32 stamp_us, stamp_jiffies;
		};
	};
};
typedef struct skb_mstamp knee_mstamp;
#define knee_mstamp_of(us)                               \
	((struct skb_mstamp){ .stamp_us = (u32)(us), \
			      .stamp_jiffies = (u32)jiffies })

static inline u32 skb_mstamp_us_delta(const struct skb_mstamp *later,
				      const struct skb_mstamp *earlier)
{
	return later->stamp_us - earlier->stamp_us;
}

static inline void skb_mstamp_get(struct skb_mstamp *stamp)
{
	*stamp = knee_mstamp_of(knee_clock_ns / NSEC_PER_USEC);
}
#else
typedef u64 knee_mstamp; /* us */
#define knee_mstamp_of(us) ((u64)(us))
#endif

/* Who compiles says what Linux gives, or a larger one. */
#define ICSK_CA_PRIV_SIZE ((size_t)KNEE_PRIVATE_BYTES)

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	KNEE_SHOWN u8 icsk_ca_state;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
	KNEE_SHOWN u64 knee_guard; /* notices who writes beyond */
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;

	/* What an algorithm decides. */
	u32 snd_cwnd, snd_cwnd_cnt, snd_ssthresh, app_limited;
	u8 ecn_flags;

	/* What it may set and only it reads, here. */
	u32 snd_cwnd_clamp, snd_cwnd_stamp;
	u8 fast_ack_mode; /* Google's kernels */

	KNEE_SHOWN knee_mstamp tcp_mstamp, delivered_mstamp;
	KNEE_SHOWN u64 tcp_clock_cache; /* ns */
	KNEE_SHOWN u64 tcp_wstamp_ns;
	KNEE_SHOWN u64 bytes_acked;
	KNEE_SHOWN u32 prior_cwnd;
	KNEE_SHOWN u32 snd_una, snd_nxt, rcv_nxt;
	KNEE_SHOWN u32 packets_out, sacked_out, lost_out, retrans_out;
	KNEE_SHOWN u32 max_packets_out;
	KNEE_SHOWN u32 delivered, delivered_ce, lost;
	KNEE_SHOWN u32 data_segs_out; /* delivered, lost and in flight */
	KNEE_SHOWN u32 srtt_us;	      /* of us, << 3 */
	KNEE_SHOWN struct minmax rtt_min;
	KNEE_SHOWN u32 mss_cache, advmss;
	KNEE_SHOWN u32 lsndtime; /* jiffies */
	KNEE_SHOWN u32 reordering;
	KNEE_SHOWN bool is_cwnd_limited;
	/* Google's kernels; 0 here. */
	KNEE_SHOWN bool is_sack_reneg, tlp_orig_data_app_limited;
	KNEE_SHOWN struct {
		u32 rcv_tsval, rcv_tsecr;
		u16 saw_tstamp;
	} rx_opt;
};

struct rate_sample {
	knee_mstamp prior_mstamp;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
	/* Google's kernels: of the packet that the sample is of */
	u32 prior_lost, tx_in_flight;
	s32 lost;
	bool is_ece;
	bool is_acking_tlp_retrans_seq; /* in the simulator false */
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight; /* bytes */
};

/* One packet: a segment. Only skb_marked_lost() of Google's kernels gets one. */
struct sk_buff {
	struct tcp_skb_cb {
		u32 seq, end_seq; /* 0: for what is printed */
		u8 sacked;
		struct {
			/* Only whether there is one is known: not its time. */
			knee_mstamp delivered_mstamp;
			u32 in_flight, lost;
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
#define sock_flag(sk, flag) ((void)(sk), 0)
#define ntohs(x) __builtin_bswap16(x)
#define htons(x) __builtin_bswap16(x)
#define ntohl(x) __builtin_bswap32(x)
#define htonl(x) __builtin_bswap32(x)
#define tcp_ecn_mode_any(tp) \
	(((tp)->ecn_flags & (TCP_ECN_OK | TCP_ECN_MODE_ACCECN)) != 0)
#define tcp_ecn_mode_rfc3168(tp) (((tp)->ecn_flags & TCP_ECN_OK) != 0)
#define tcp_ecn_mode_accecn(tp) (((tp)->ecn_flags & TCP_ECN_MODE_ACCECN) != 0)
/* No program of BPF is asked here: -1, as where there is none. */
#define tcp_call_bpf(...) (-1)
#define tcp_call_bpf_2arg(...) (-1)

extern struct net knee_net;
#define init_net knee_net
static inline struct net *sock_net(const struct sock *sk)
{
	(void)sk;
	return &knee_net;
}

/* What the kernel counts and no algorithm reads. */
#define NET_INC_STATS(net, what) ((void)(net))
#define NET_ADD_STATS(net, what, n) ((void)(net), (void)(n))
#define NET_INC_STATS_BH(net, what) ((void)(net))
#define NET_ADD_STATS_BH(net, what, n) ((void)(net), (void)(n))

static inline bool inet_csk_in_recovery(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
}

static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_CWR ||
	       inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
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

static inline u32 tcp_left_out(const struct tcp_sock *tp)
{
	return tp->sacked_out + tp->lost_out;
}

static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}

static inline u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return minmax_get(&tp->rtt_min);
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
static inline bool knee_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->is_cwnd_limited)
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Before Linux 3.14 with what is in flight, which it knows here. */
#define tcp_is_cwnd_limited(sk, ...) knee_is_cwnd_limited(sk)

/* In a reduction the threshold is the new one; else 3/4 of the window count. */
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_cwnd_reduction(sk))
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

/* Payload and headers of an IPv4 packet, timestamps included if they are. */
static inline int tcp_mss_to_mtu(struct sock *sk, int mss)
{
	return mss + 40 + (tcp_sk(sk)->rx_opt.saw_tstamp ? 12 : 0);
}

/* The time of this ACK or timer. Without an argument it is that of kernels
 * before 4.13: jiffies. */
extern u32 tcp_time_stamp;
#define tcp_time_stamp(tp) ((u32)(knee_clock_ns / NSEC_PER_MSEC))
#define tcp_time_stamp_ms(tp) tcp_time_stamp(tp)
#define tcp_time_stamp_ts(tp) tcp_time_stamp(tp)
#define tcp_clock_ns() ktime_get_ns()
#define tcp_clock_us() (ktime_get_ns() / NSEC_PER_USEC)
#define tcp_clock_ms() (ktime_get_ns() / NSEC_PER_MSEC)

/* ---- what the stack offers to every algorithm (offered.c) ---------------- */

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
/* Segments of a burst, as until Linux 5.17. */
u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss_now,
		     int min_tso_segs);
/* The stack reduces the window to the algorithm's threshold, unless it does. */
void tcp_enter_cwr(struct sock *sk);
/* What arrives is acknowledged at once. */
void tcp_enter_quickack_mode(struct sock *sk, unsigned int max_quickacks);
void knee_send_ack(struct sock *sk, u32 rcv_nxt);
/* Since 6.18 it has a third argument, the flags of the packet. */
#define __tcp_send_ack(sk, rcv_nxt, ...) knee_send_ack(sk, rcv_nxt)
#define inet_csk_clear_xmit_timer(sk, which) ((void)(sk))

/* ECT is the stack's matter, which sends none where ECN was not agreed on. */
#define INET_ECN_dontxmit(sk) ((void)(sk))
#define INET_ECN_xmit(sk) ((void)(sk))

/* Path changes after marks: off unless a sysctl asks for them, as in Linux. */
struct tcp_plb_state {
	u8 consec_cong_rounds;
	u32 pause_until;
};
#define TCP_PLB_SCALE 8
#define tcp_plb_init(sk, plb) ((void)(plb))
#define tcp_plb_update_state(sk, plb, ratio) ((void)(plb))
#define tcp_plb_check_rehash(sk, plb) ((void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(plb))

/* ---- what a congestion control tells ------------------------------------- */

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

/* Numbered as adapter.c names them. */
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

/* ---- what a congestion control is ---------------------------------------- */

/* Ops whose arguments were others once. Who compiles finds the age of each by
 * what the compiler says of the file's table. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	/* Before 3.14 the last argument is what is in flight. */
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk); /* since 7.1 */
	void (*in_ack_event)(struct sock *sk, u32 flags);
#ifdef KNEE_OLD_PKTS_ACKED /* before 4.7 */
	void (*pkts_acked)(struct sock *sk, u32 pkts_acked, s32 rtt_us);
#else
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
#endif
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*tso_segs_goal)(struct sock *sk);		   /* before 4.17 */
	u32 (*tso_segs)(struct sock *sk, unsigned int mss); /* Google's */
#ifdef KNEE_OLD_CONG_CONTROL /* before 6.10, and in Google's kernels */
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

#endif
