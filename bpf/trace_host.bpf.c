/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * trace_host.bpf.c - what sending and receiving cost a host: timers of pacing,
 * packets sent and received with their sizes, NAPI polls, time in softirqs,
 * wake-ups. Counters alone, by network namespace where the event has one; no
 * record is written per event.
 *
 * Read by crates/live/src/host/counters.rs, which also leaves out the programs
 * that nobody asked for.
 */
#include "trace.h"

/* Place 0 is the machine's: what belongs to no namespace that was asked for. */
#define HOST_PLACES 8
/* Sizes in powers of two: place n holds 2^(n-1) to 2^n - 1, place 0 holds 0. */
#define HOST_SIZES 20
#define HOST_SOFTIRQS 10

#define HOST_ETH_P_IP 0x0800
#define HOST_ETH_P_IPV6 0x86dd
#define HOST_IPPROTO_TCP 6
#define HOST_TCP_TIME_WAIT 6
#define HOST_TCP_NEW_SYN_RECV 12
/* FIN, SYN and RST of a TCP header's flags. */
#define HOST_NOT_AN_ACK 7

/* Set by the loader. */
struct trace_filter {
	u64 pacing_timer; /* address of tcp_pace_kick; 0: it has none */
	u64 qdisc_timer;  /* address of qdisc_watchdog */
	u32 listed_only;  /* leave out namespaces that `hosts` does not have */
};

const volatile struct trace_filter filter SEC(".rodata.filter") = {};

struct trace_counters {
	u64 pacing_arms;
	u64 pacing_fires;
	u64 pacing_ends; /* fired, taken back, or set anew */
	u64 qdisc_fires;
	u64 data_skbs_sent;
	u64 data_segments_sent;
	u64 data_bytes_sent;
	u64 acks_sent;
	u64 skbs_received;
	u64 segments_received;
	u64 unreadable; /* packets whose headers do not lie in one piece */
	u64 napi_polls;
	u64 napi_packets;
	u64 napi_budget_ends;
	u64 wakeups;
	u64 sent_sizes[HOST_SIZES];	/* payload of data skbs */
	u64 received_sizes[HOST_SIZES]; /* payload of skbs that have some */
	u64 napi_sizes[HOST_SIZES];	/* packets per poll */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HOST_PLACES);
	__type(key, u32);
	__type(value, struct trace_counters);
} counters SEC(".maps");

/* Place of each network namespace that is asked for, by its inode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOST_PLACES);
	__type(key, u32);
	__type(value, u32);
} hosts SEC(".maps");

struct trace_softirqs {
	u64 since_ns; /* softirqs do not nest */
	u64 ns[HOST_SOFTIRQS];
	u64 runs[HOST_SOFTIRQS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trace_softirqs);
} softirqs SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct hrtimer {
	void *function;
};

struct net_device {
	possible_net_t nd_net;
};

struct netdev_queue {
	struct net_device *dev;
};

struct Qdisc {
	struct netdev_queue *dev_queue;
};

struct qdisc_watchdog {
	struct hrtimer timer;
	struct Qdisc *qdisc;
};

struct dst_entry {
	struct net_device *dev;
};

struct sock_common {
	unsigned char skc_state;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
};

struct tcp_sock {
	struct hrtimer pacing_timer;
};

struct skb_shared_info {
	unsigned short gso_size;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
	unsigned int end;
};

struct napi_struct {
	struct net_device *dev;
};

#pragma clang attribute pop

/* The counters of a namespace on this processor, unless it is not asked for. */
static __always_inline struct trace_counters *host_of(const struct net *net)
{
	u32 inode = BPF_CORE_READ(net, ns.inum);
	u32 *listed = bpf_map_lookup_elem(&hosts, &inode);
	u32 place = 0;

	if (listed)
		place = *listed;
	else if (filter.listed_only)
		return 0;
	return bpf_map_lookup_elem(&counters, &place);
}

static __always_inline struct trace_counters *host_of_machine(void)
{
	u32 place = 0;

	return bpf_map_lookup_elem(&counters, &place);
}

/* Bits that a number has: 0 of 0, else the exponent of its greatest power of two and one. */
static __always_inline u32 host_size(u32 v)
{
	u32 bits = 0;

	if (v >> 16) {
		v >>= 16;
		bits += 16;
	}
	if (v >> 8) {
		v >>= 8;
		bits += 8;
	}
	if (v >> 4) {
		v >>= 4;
		bits += 4;
	}
	if (v >> 2) {
		v >>= 2;
		bits += 2;
	}
	bits += v >> 1 ? 2 : v;
	return bits < HOST_SIZES ? bits : HOST_SIZES - 1;
}

/* The counters of the socket that paces by this timer; 0: it is another timer. */
static __always_inline struct trace_counters *
host_of_pacing(struct hrtimer *timer)
{
	const struct sock *sk;

	if (!filter.pacing_timer || (u64)timer->function != filter.pacing_timer)
		return 0;
	sk = (void *)timer -
	     bpf_core_field_offset(struct tcp_sock, pacing_timer);
	return host_of(BPF_CORE_READ(sk, __sk_common.skc_net.net));
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(host_timer_start, struct hrtimer *timer)
{
	struct trace_counters *host = host_of_pacing(timer);

	if (host)
		host->pacing_arms++;
	return 0;
}

SEC("tp_btf/hrtimer_cancel")
int BPF_PROG(host_timer_end, struct hrtimer *timer)
{
	struct trace_counters *host = host_of_pacing(timer);

	if (host)
		host->pacing_ends++;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(host_timer_fire, struct hrtimer *timer)
{
	struct trace_counters *host = host_of_pacing(timer);
	const struct qdisc_watchdog *watchdog;

	if (host) {
		host->pacing_fires++;
		return 0;
	}
	if (!filter.qdisc_timer || (u64)timer->function != filter.qdisc_timer)
		return 0;
	watchdog = (void *)timer -
		   bpf_core_field_offset(struct qdisc_watchdog, timer);
	host = host_of(
		BPF_CORE_READ(watchdog, qdisc, dev_queue, dev, nd_net.net));
	if (host)
		host->qdisc_fires++;
	return 0;
}

/* What counts of a TCP packet. */
struct host_packet {
	u32 payload;
	u32 segments;
	u32 flags;
};

/* Reads the headers at `network`, the IP header. 0: no TCP, or not readable, which is counted. */
static __always_inline int host_read(struct sk_buff *skb,
				     unsigned char *network,
				     struct trace_counters *host,
				     struct host_packet *packet)
{
	u8 ip[10] = {}, tcp[2] = {};
	/* Only what lies in the first piece can be read at `network`. */
	u32 linear = skb->len - skb->data_len - (u32)(network - skb->data);
	u32 header, length, options;
	u16 gso_size;

	if (bpf_probe_read_kernel(ip, sizeof(ip), network))
		return 0;
	if (skb->protocol == bpf_htons(HOST_ETH_P_IP)) {
		if (ip[9] != HOST_IPPROTO_TCP)
			return 0;
		header = (ip[0] & 15) * 4;
		length = ip[2] << 8 | ip[3];
	} else if (skb->protocol == bpf_htons(HOST_ETH_P_IPV6)) {
		if (ip[6] != HOST_IPPROTO_TCP)
			return 0;
		header = 40;
		length = ip[4] << 8 | ip[5];
		length = length ? length + header : 0;
	} else {
		return 0;
	}
	if (linear < header + 20 ||
	    bpf_probe_read_kernel(tcp, sizeof(tcp), network + header + 12)) {
		host->unreadable++;
		return 0;
	}
	/* Packets of more than 64 KiB have no length in their header. */
	if (!length)
		length = linear + skb->data_len;
	options = header + (tcp[0] >> 4) * 4;
	packet->payload = length > options ? length - options : 0;
	packet->flags = tcp[1];
	gso_size = BPF_CORE_READ(
		(struct skb_shared_info *)(skb->head + skb->end), gso_size);
	packet->segments = 1;
	if (gso_size && packet->payload > gso_size)
		packet->segments = (packet->payload + gso_size - 1) / gso_size;
	return 1;
}

/* A device gets a packet of a socket. Devices on top of others hand it on: the one of the socket's route counts. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(host_send, struct sk_buff *skb)
{
	struct host_packet packet = {};
	struct trace_counters *host;
	struct dst_entry *route;
	struct sock *sk = skb->sk;
	u32 state, size;

	if (!sk)
		return 0;
	state = sk->__sk_common.skc_state;
	if (state == HOST_TCP_TIME_WAIT || state == HOST_TCP_NEW_SYN_RECV)
		return 0;
	route = sk->sk_dst_cache;
	if (route && BPF_CORE_READ(route, dev) != skb->dev)
		return 0;
	host = host_of(sk->__sk_common.skc_net.net);
	if (!host ||
	    !host_read(skb, skb->head + skb->network_header, host, &packet))
		return 0;
	if (packet.payload) {
		host->data_skbs_sent++;
		host->data_segments_sent += packet.segments;
		host->data_bytes_sent += packet.payload;
		size = host_size(packet.payload);
		if (size < HOST_SIZES)
			host->sent_sizes[size]++;
	} else if (!(packet.flags & HOST_NOT_AN_ACK)) {
		host->acks_sent++;
	}
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(host_receive, struct sk_buff *skb)
{
	struct host_packet packet = {};
	struct trace_counters *host = host_of(skb->dev->nd_net.net);
	u32 size;

	/* The device's header has been taken off. */
	if (!host || !host_read(skb, skb->data, host, &packet))
		return 0;
	host->skbs_received++;
	host->segments_received += packet.segments;
	if (packet.payload) {
		size = host_size(packet.payload);
		if (size < HOST_SIZES)
			host->received_sizes[size]++;
	}
	return 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(host_poll, struct napi_struct *napi, int work, int budget)
{
	const struct net_device *dev = napi->dev;
	struct trace_counters *host;
	u32 size;

	/* The backlog of a processor, which loopback and others use, has no device. */
	host = dev ? host_of(BPF_CORE_READ(dev, nd_net.net))
		   : host_of_machine();
	if (!host)
		return 0;
	host->napi_polls++;
	host->napi_packets += work;
	if (work >= budget)
		host->napi_budget_ends++;
	size = host_size(work);
	if (size < HOST_SIZES)
		host->napi_sizes[size]++;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(host_softirq_entry, unsigned int vector)
{
	struct trace_softirqs *found;
	u32 zero = 0;

	found = bpf_map_lookup_elem(&softirqs, &zero);
	if (found)
		found->since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(host_softirq_exit, unsigned int vector)
{
	struct trace_softirqs *found;
	u32 zero = 0;

	found = bpf_map_lookup_elem(&softirqs, &zero);
	/* One that had begun before is not counted. */
	if (!found || !found->since_ns || vector >= HOST_SOFTIRQS)
		return 0;
	found->ns[vector] += bpf_ktime_get_ns() - found->since_ns;
	found->runs[vector]++;
	found->since_ns = 0;
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(host_wakeup)
{
	struct trace_counters *host = host_of_machine();

	if (host)
		host->wakeups++;
	return 0;
}
