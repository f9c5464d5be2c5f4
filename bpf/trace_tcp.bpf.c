/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * trace_tcp.bpf.c - writes what happens to TCP connections into a ring buffer:
 * one record for each segment that reaches an established connection, and one
 * for each change of state and each retransmission. Each has the sender's state.
 *
 * A segment is seen as it arrives, before the stack has looked at it: its
 * record holds what the ACKs before it have made of the connection.
 *
 * Needs Linux 5.12 (the socket's cookie in tracing programs) and its BTF.
 */
#include "trace.h"

/* Read by crates/live/src/trace/record.rs. */
enum trace_kind {
	TRACE_SEGMENT,	  /* a segment arrived; seq, ack_seq, payload_bytes */
	TRACE_STATE,	  /* of the connection, from `before` to `after` */
	TRACE_CA_STATE,	  /* of congestion avoidance, the same */
	TRACE_RETRANSMIT, /* sent again: seq, payload_bytes */
};

struct trace_record {
	u64 t_ns; /* CLOCK_MONOTONIC */
	u64 cookie;
	u64 pacing_rate; /* bytes/s */
	u64 bytes_sent;
	u64 bytes_acked;
	u64 bytes_retrans;
	u32 kind;  /* enum trace_kind */
	u32 netns; /* inode */
	u32 seq;
	u32 ack_seq;
	u32 payload_bytes;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_wnd;
	u32 rcv_wnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 srtt_us_x8;
	u32 mdev_us_x4;
	u32 min_rtt_us;
	u32 mss_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 data_segs_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 reordering;
	u8 local[16]; /* IPv4 as ::ffff:a.b.c.d */
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u8 before;
	u8 after;
	u8 ca_state;
	u8 tcp_state;
	u8 backoff;
	u8 retransmits;
	u8 rate_app_limited;
	u8 tcp_flags;
	char algorithm[16];
	u32 unused;
};

struct trace_prefix {
	u64 address[2]; /* bytes in the order of the network */
	u64 mask[2];
};

/* Set by the loader; 0 asks for nothing. */
struct trace_filter {
	u64 cookie;
	u32 netns;
	u16 port; /* of either end */
	u16 local_port;
	u16 remote_port;
	u16 unused[3];
	struct trace_prefix either;
	struct trace_prefix local;
	struct trace_prefix remote;
};

const volatile struct trace_filter filter SEC(".rodata.filter") = {};

/* With 2^N bytes waiting the reader is woken; it looks by itself now and then.
 * To wake it for each record would cost more than to write it. */
#define TRACE_WAKE_BYTES (1 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20);
} records SEC(".maps");

/* The buffer was full. A section of its own is a map of its own. */
u64 records_lost SEC(".bss.lost");

#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct in6_addr {
	u8 s6_addr[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct tcp_congestion_ops {
	char name[16];
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u8 icsk_backoff;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_sent;
	u64 bytes_acked;
	u64 bytes_retrans;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_wnd;
	u32 rcv_wnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 mdev_us;
	struct minmax rtt_min;
	u32 mss_cache;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 data_segs_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 reordering;
	u8 rate_app_limited : 1;
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u32 ack_seq;
};

struct sk_buff {
	unsigned int len;
	char cb[48];
	unsigned char *data;
};

#pragma clang attribute pop

#define TRACE_AF_INET 2

/* Of a TCP header on the wire, RFC 9293 section 3.1. */
struct trace_tcp_header {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq; /* of the first of several that were put together */
	u8 offset;	/* in words of 32 bits, in the upper half */
	u8 flags;
	__be16 window;
};

struct trace_ends {
	u64 local[2];
	u64 remote[2];
};

static __always_inline void trace_v4(u64 to[2], __be32 address)
{
	u32 *words = (u32 *)to;

	to[0] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = address;
}

static __always_inline void trace_v6(u64 to[2], const struct in6_addr *address)
{
	__builtin_memcpy(to, address, 16);
}

static __always_inline int trace_within(const u64 address[2],
					const volatile struct trace_prefix *p)
{
	return (address[0] & p->mask[0]) == p->address[0] &&
	       (address[1] & p->mask[1]) == p->address[1];
}

/* Is the connection asked for? Ports first: they alone let most others go.
 * skc_num is 0 already when a socket closes, inet_sport is not. */
static __always_inline int trace_wanted(const struct tcp_sock *tp,
					struct trace_ends *ends)
{
	const struct inet_sock *inet = &tp->inet_conn.icsk_inet;
	const struct sock_common *common = &inet->sk.__sk_common;
	u16 local_port = bpf_ntohs(inet->inet_sport);
	u16 remote_port = bpf_ntohs(common->skc_dport);

	if (filter.port && filter.port != local_port &&
	    filter.port != remote_port)
		return 0;
	if (filter.local_port && filter.local_port != local_port)
		return 0;
	if (filter.remote_port && filter.remote_port != remote_port)
		return 0;
	if (filter.netns && filter.netns != common->skc_net.net->ns.inum)
		return 0;
	if (common->skc_family == TRACE_AF_INET) {
		trace_v4(ends->local, common->skc_rcv_saddr);
		trace_v4(ends->remote, common->skc_daddr);
	} else if (bpf_core_field_exists(common->skc_v6_daddr)) {
		trace_v6(ends->local, &common->skc_v6_rcv_saddr);
		trace_v6(ends->remote, &common->skc_v6_daddr);
	} else {
		return 0;
	}
	return (trace_within(ends->local, &filter.either) ||
		trace_within(ends->remote, &filter.either)) &&
	       trace_within(ends->local, &filter.local) &&
	       trace_within(ends->remote, &filter.remote);
}

/* A record with the state of the connection; 0 when it is not asked for, or
 * the buffer is full. */
static __always_inline struct trace_record *trace_begin(const struct sock *sk,
							u32 kind)
{
	/* None: SCTP, MPTCP, a request. */
	const struct tcp_sock *tp =
		(const void *)bpf_skc_to_tcp_sock((void *)sk);
	const struct inet_connection_sock *icsk;
	struct trace_record *r;
	struct trace_ends ends;
	u64 cookie;

	if (!tp || !trace_wanted(tp, &ends))
		return 0;
	cookie = bpf_get_socket_cookie((void *)sk);
	if (filter.cookie && filter.cookie != cookie)
		return 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&records_lost, 1);
		return 0;
	}
	icsk = &tp->inet_conn;
	r->t_ns = bpf_ktime_get_ns();
	r->cookie = cookie;
	r->pacing_rate = sk->sk_pacing_rate;
	r->bytes_sent = tp->bytes_sent;
	r->bytes_acked = tp->bytes_acked;
	r->bytes_retrans = tp->bytes_retrans;
	r->kind = kind;
	r->netns = sk->__sk_common.skc_net.net->ns.inum;
	r->seq = 0;
	r->ack_seq = 0;
	r->payload_bytes = 0;
	r->snd_una = tp->snd_una;
	r->snd_nxt = tp->snd_nxt;
	r->write_seq = tp->write_seq;
	r->snd_wnd = tp->snd_wnd;
	r->rcv_wnd = tp->rcv_wnd;
	r->snd_cwnd = tp->snd_cwnd;
	r->snd_ssthresh = tp->snd_ssthresh;
	r->srtt_us_x8 = tp->srtt_us;
	r->mdev_us_x4 = tp->mdev_us;
	r->min_rtt_us = tp->rtt_min.s[0].v;
	r->mss_cache = tp->mss_cache;
	r->packets_out = tp->packets_out;
	r->sacked_out = tp->sacked_out;
	r->lost_out = tp->lost_out;
	r->retrans_out = tp->retrans_out;
	r->total_retrans = tp->total_retrans;
	r->data_segs_out = tp->data_segs_out;
	r->delivered = tp->delivered;
	r->delivered_ce = tp->delivered_ce;
	r->lost = tp->lost;
	r->rate_delivered = tp->rate_delivered;
	r->rate_interval_us = tp->rate_interval_us;
	r->reordering = tp->reordering;
	__builtin_memcpy(r->local, ends.local, 16);
	__builtin_memcpy(r->remote, ends.remote, 16);
	r->local_port = bpf_ntohs(icsk->icsk_inet.inet_sport);
	r->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	r->before = 0;
	r->after = 0;
	r->ca_state = icsk->icsk_ca_state;
	r->tcp_state = sk->__sk_common.skc_state;
	r->backoff = icsk->icsk_backoff;
	r->retransmits = icsk->icsk_retransmits;
	r->rate_app_limited = tp->rate_app_limited;
	r->tcp_flags = 0;
	__builtin_memcpy(r->algorithm, icsk->icsk_ca_ops->name, 16);
	r->unused = 0;
	return r;
}

static __always_inline void trace_end(struct trace_record *r)
{
	u64 waiting = bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_submit(r, waiting >= TRACE_WAKE_BYTES ? BPF_RB_FORCE_WAKEUP
							  : BPF_RB_NO_WAKEUP);
}

/* A number that the stack keeps beside the packet. */
#define TRACE_CB(skb, field)                                                 \
	({                                                                   \
		u32 __value = 0;                                             \
		bpf_probe_read_kernel(                                       \
			&__value, sizeof(__value),                           \
			(skb)->cb + bpf_core_field_offset(struct tcp_skb_cb, \
							  field));           \
		__value;                                                     \
	})

/* Fires in the established state alone: the ACKs of a connection that closes
 * while it has data to send are not seen. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(trace_segment, struct sock *sk, struct sk_buff *skb)
{
	struct trace_record *r = trace_begin(sk, TRACE_SEGMENT);
	struct trace_tcp_header header = {};
	u32 header_bytes;

	if (!r)
		return 0;
	/* The stack has not pulled the header yet. */
	bpf_probe_read_kernel(&header, sizeof(header), skb->data);
	header_bytes = (header.offset >> 4) * 4;
	r->seq = TRACE_CB(skb, seq);
	/* Segments that wait for a busy socket are put together: the last ACK. */
	r->ack_seq = TRACE_CB(skb, ack_seq);
	r->tcp_flags = header.flags;
	if (skb->len > header_bytes)
		r->payload_bytes = skb->len - header_bytes;
	trace_end(r);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(trace_state, const struct sock *sk, const int before,
	     const int after)
{
	struct trace_record *r = trace_begin(sk, TRACE_STATE);

	if (!r)
		return 0;
	r->before = before;
	r->after = after;
	trace_end(r);
	return 0;
}

/* Fires before the state and the window change. */
SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(trace_ca_state, struct sock *sk, const u8 ca_state)
{
	struct trace_record *r = trace_begin(sk, TRACE_CA_STATE);

	if (!r)
		return 0;
	r->before = r->ca_state;
	r->after = ca_state;
	trace_end(r);
	return 0;
}

static __always_inline void trace_resent(const struct sock *sk,
					 const struct sk_buff *skb)
{
	struct trace_record *r = trace_begin(sk, TRACE_RETRANSMIT);

	if (!r)
		return;
	r->seq = TRACE_CB(skb, seq);
	r->payload_bytes = TRACE_CB(skb, end_seq) - r->seq;
	trace_end(r);
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(trace_retransmit, const struct sock *sk, const struct sk_buff *skb)
{
	trace_resent(sk, skb);
	return 0;
}

/* Since Linux 6.17 it fires for attempts that failed, too (commit
 * ad892e912b84), as where this host still holds the first copy.
 */
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(trace_retransmit_err, const struct sock *sk,
	     const struct sk_buff *skb, int err)
{
	if (!err)
		trace_resent(sk, skb);
	return 0;
}
