/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * stub.h - what a congestion control of the kernel sees of the kernel, as far
 * as such a file needs it in user space. Written from what the functions do;
 * it stands for every header of the kernel that the file includes
 * (tools/against/against.py makes a forwarder for each).
 *
 * Not here: sockets, locks, memory, output. A function that only these need
 * does nothing.
 */
#ifndef KNEE_AGAINST_STUB_H
#define KNEE_AGAINST_STUB_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* ---- types -------------------------------------------------------------- */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;
typedef u8 __u8;
typedef u16 __u16, __be16;
typedef u32 __u32, __be32;
typedef u64 __u64;
typedef s32 __s32;
typedef long ktime_t;

#define U32_C(x) x##u
#define U8_MAX 0xffu
#define U16_MAX 0xffffu
#define U32_MAX 0xffffffffu
#define S32_MAX 0x7fffffff

/* ---- words of the kernel's dialect -------------------------------------- */

#define __read_mostly
#define __init
#define __exit
#define __maybe_unused __attribute__((unused))
#define __must_check
#define __pure
#define __force
#define __bpf_kfunc
#define fallthrough __attribute__((fallthrough))
#define likely(x) (x)
#define unlikely(x) (x)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(where, old, new)                  \
	({                                        \
		__typeof__(*(where)) was_ = *(where); \
		if (was_ == (old))                \
			*(where) = (new);         \
		was_;                             \
	})
#define BUILD_BUG_ON(wrong) _Static_assert(!(wrong), #wrong)
#define BUILD_BUG_ON_ZERO(wrong) 0
#define WARN_ON_ONCE(wrong) (!!(wrong))
#define WARN_ON(wrong) (!!(wrong))
#define WARN_ONCE(wrong, ...) (!!(wrong))
#define BUG_ON(wrong) ((void)(wrong))
#define pr_debug(...) ((void)0)
#define pr_info(...) ((void)0)
#define pr_warn(...) ((void)0)
#define pr_warn_once(...) ((void)0)
#define pr_err(...) ((void)0)
#define printk(...) ((void)0)
#define net_dbg_ratelimited(...) ((void)0)
#define trace_printk(...) ((void)0)
#define KERN_DEBUG ""
#define KERN_INFO ""
#define __stringify_(x) #x
#define __stringify(x) __stringify_(x)
#define NET_INC_STATS(net, what) ((void)0)
#define NET_ADD_STATS(net, what, n) ((void)0)
#define GFP_NOWAIT 0
#define GFP_KERNEL 0
#define __GFP_NOWARN 0
#define kcalloc(n, size, flags) calloc(n, size)
#define kfree(p) free(p)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define BIT(n) (1u << (n))
#define offsetofend(type, field) \
	(offsetof(type, field) + sizeof(((type *)0)->field))
#define container_of(p, type, field) \
	((type *)((char *)(p) - offsetof(type, field)))

/* ---- modules ------------------------------------------------------------ */

#define THIS_MODULE NULL
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define MODULE_ALIAS(text)
#define MODULE_PARM_DESC(name, text)
#define module_init(function)          \
	int against_register(void)     \
	{                              \
		return function();     \
	}
#define module_exit(function)                       \
	void against_unregister(void);              \
	void against_unregister(void) { function(); }

/* A parameter of the module, so that the harness can set it by its name. */
void against_add_param(const char *name, void *where, size_t bytes);
#define module_param_named(name, variable, type, mode)                      \
	__attribute__((constructor)) static void against_param_##name(void) \
	{                                                                   \
		against_add_param(#name, (void *)&(variable),               \
				  sizeof(variable));                        \
	}                                                                   \
	_Static_assert(1, "")
#define module_param(name, type, mode) module_param_named(name, name, type, mode)
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *p);
	int (*get)(char *text, const struct kernel_param *p);
};
#define param_get_uint NULL
#define param_set_uint_minmax(...) 0
#define module_param_cb(name, ops, variable, mode) _Static_assert(1, "")
#define module_param_array_named(name, array, type, count, mode) \
	_Static_assert(1, "")

#define BTF_SET8_START(name) static const int name __attribute__((unused)) = 0;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
#define BTF_ID(...)
struct btf_kfunc_id_set {
	void *owner;
	const int *set;
};
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)

/* ---- arithmetic --------------------------------------------------------- */

#define min(a, b)                         \
	({                                \
		__typeof__(a) a_ = (a);   \
		__typeof__(b) b_ = (b);   \
		a_ < b_ ? a_ : b_;        \
	})
#define max(a, b)                         \
	({                                \
		__typeof__(a) a_ = (a);   \
		__typeof__(b) b_ = (b);   \
		a_ > b_ ? a_ : b_;        \
	})
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_not_zero(a, b)                                          \
	({                                                          \
		__typeof__(a) x_ = (a);                             \
		__typeof__(b) y_ = (b);                             \
		x_ == 0 ? y_ : (y_ == 0 ? x_ : (x_ < y_ ? x_ : y_)); \
	})
#define clamp(x, low, high) min(max(x, low), high)
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#define clamp_val(x, low, high) clamp_t(__typeof__(x), x, low, high)
#define abs_diff(a, b) ((a) > (b) ? (a) - (b) : (b) - (a))
#define swap(a, b)                      \
	do {                            \
		__typeof__(a) t_ = (a); \
		(a) = (b);              \
		(b) = t_;               \
	} while (0)

/* Divides in place, by 32 bits; the value is the remainder. */
#define do_div(n, by)                               \
	({                                          \
		u32 by_ = (u32)(by);                \
		u32 rest_ = (u32)((u64)(n) % by_);  \
		(n) = (u64)(n) / by_;               \
		rest_;                              \
	})
#define DIV_ROUND_UP_ULL(a, by) (((u64)(a) + (by) - 1) / (u64)(by))
#define DIV_ROUND_UP(a, by) (((a) + (by) - 1) / (by))
#define DIV_ROUND_CLOSEST(a, by) (((a) + (by) / 2) / (by))

static inline u64 div_u64(u64 a, u32 by)
{
	return a / by;
}

static inline s64 div_s64(s64 a, s32 by)
{
	return a / by;
}

static inline u64 div64_u64(u64 a, u64 by)
{
	return a / by;
}

static inline u64 div64_ul(u64 a, unsigned long by)
{
	return a / by;
}

static inline s64 div64_long(s64 a, long by)
{
	return a / by;
}

static inline s64 div64_s64(s64 a, s64 by)
{
	return a / by;
}

/* Number of the highest bit set, from 1; 0 for 0. */
static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline int ilog2(u64 x)
{
	return fls64(x) - 1;
}

static inline bool is_power_of_2(unsigned long x)
{
	return x && !(x & (x - 1));
}

static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long low = 0, high = 1ul << 32;

	while (high - low > 1) {
		unsigned long middle = low + (high - low) / 2;

		if (middle * middle <= x)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- clocks and chance -------------------------------------------------- */

#ifndef HZ
#define HZ 1000
#endif
#define NSEC_PER_USEC 1000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define MSEC_PER_SEC 1000L
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)

extern u32 against_jiffies;   /* set by the harness */
extern u64 against_clock_ns;  /* the same instant */
extern u32 against_random;    /* of the op under way */
#define tcp_jiffies32 against_jiffies
/* A word that cc.h uses too: a kernel's file alone has it. */
#ifdef AGAINST_KERNEL_FILE
#define jiffies ((unsigned long)against_jiffies)
#endif
#define ktime_get_ns() against_clock_ns
#define local_clock() against_clock_ns

static inline u32 msecs_to_jiffies(u32 ms)
{
	return (u32)(((u64)ms * HZ + MSEC_PER_SEC - 1) / MSEC_PER_SEC);
}

static inline u32 usecs_to_jiffies(u32 us)
{
	return (u32)(((u64)us * HZ + USEC_PER_SEC - 1) / USEC_PER_SEC);
}

static inline u32 jiffies_to_usecs(u32 j)
{
	return (u32)((u64)j * USEC_PER_SEC / HZ);
}

static inline u32 jiffies_to_msecs(u32 j)
{
	return (u32)((u64)j * MSEC_PER_SEC / HZ);
}

/*
 * Our algorithms get one random number per op. Where they draw twice, a coin is
 * tossed with its low half and everything else drawn from the whole, and so it
 * is here, or equal algorithms would decide differently.
 */
static inline u32 get_random_u32_below(u32 n)
{
	u32 random = n == 2 ? against_random << 16 : against_random;

	return (u32)(((u64)random * n) >> 32);
}

#define prandom_u32_max(n) get_random_u32_below(n)
#define prandom_u32() against_random
#define get_random_u32() against_random
#define get_random_bytes(where, n) memset(where, (int)(against_random & 0xff), n)

/* Order of numbers that wrap. */
static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

#define after(a, b) before(b, a)
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)

static inline bool between(u32 x, u32 low, u32 high)
{
	return high - low >= x - low;
}

/* ---- the windowed maximum of win_minmax.h ------------------------------- */

struct minmax_sample {
	u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

static inline u32 minmax_get(const struct minmax *m)
{
	return m->s[0].v;
}

static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };

	m->s[0] = m->s[1] = m->s[2] = s;
	return v;
}

/* Best, second and third best in the order of time; each is dropped when it
 * leaves the window, a quarter and half of it fill the later places. */
static inline u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };
	u32 age;

	if (v >= m->s[0].v || t - m->s[2].t > win)
		return minmax_reset(m, t, v);
	if (v >= m->s[1].v)
		m->s[1] = m->s[2] = s;
	else if (v >= m->s[2].v)
		m->s[2] = s;
	age = t - m->s[0].t;
	if (age > win) {
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2] = s;
		if (t - m->s[0].t > win) {
			m->s[0] = m->s[1];
			m->s[1] = m->s[2];
			m->s[2] = s;
		}
	} else if (m->s[1].t == m->s[0].t && age > win / 4) {
		m->s[1] = m->s[2] = s;
	} else if (m->s[2].t == m->s[1].t && age > win / 2) {
		m->s[2] = s;
	}
	return m->s[0].v;
}

/* ---- the socket --------------------------------------------------------- */

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
	u64 tcp_mstamp; /* us */
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

#define tcp_plb_update_state(sk, plb, ratio) ((void)(plb))
#define tcp_plb_check_rehash(sk, plb) ((void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(plb))

#endif
