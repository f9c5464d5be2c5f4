/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * trace_qdisc.bpf.c - how long packets wait in the root qdisc of each device:
 * a histogram for each device and handle, from the address of the packet and
 * the time at which it was taken in.
 *
 * A packet is measured when it leaves. One that the qdisc drops after it was
 * taken in never leaves; its address is used again, by a packet whose own
 * arrival replaces the entry. One that leaves without having been seen to
 * arrive under its address is counted: requeued by the device, split into
 * segments within the qdisc, or waiting since before the trace began.
 *
 * Needs Linux 5.15 (qdisc_enqueue) and its BTF.
 */
#include "trace.h"

/* Buckets: exact below 8 ns, then 8 to each power of two, up to 2^44 ns (5 h).
 * Read by crates/live/src/trace/qdisc.rs. */
#define TRACE_BUCKETS 336

struct trace_device {
	u32 netns; /* inode */
	s32 ifindex;
	u32 handle;
	u32 unused;
};

struct trace_latency {
	char device[16];
	char kind[16];
	u64 taken_in;
	u64 measured;
	u64 unknown;
	u64 sum_ns;
	u64 max_ns;
	u64 buckets[TRACE_BUCKETS];
};

/* Set by the loader; 0 asks for nothing. */
struct trace_filter {
	char device[16]; /* its name */
	u32 netns;
};

const volatile struct trace_filter filter SEC(".rodata.filter") = {};

/* What a new device begins with: too large for a program's stack. */
const struct trace_latency trace_nothing SEC(".rodata.nothing") = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct trace_device);
	__type(value, struct trace_latency);
} latencies SEC(".maps");

/* The packet's address and when it was taken in. The oldest makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 128 << 10);
	__type(key, u64);
	__type(value, u64);
} waiting SEC(".maps");

/* More devices than `latencies` has room for. A section of its own is a map of its own. */
u64 records_lost SEC(".bss.lost");

/* Packets that one dequeue hands to the device; a few hundred is what byte queue limits allow small ones. */
#define TRACE_BULK_AT_MOST 256

#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct net_device {
	int ifindex;
	char name[16];
	possible_net_t nd_net;
};

struct netdev_queue {
	struct net_device *dev;
};

struct Qdisc_ops {
	char id[16];
};

struct Qdisc {
	const struct Qdisc_ops *ops;
	u32 handle;
};

struct sk_buff {
	struct sk_buff *next;
};

#pragma clang attribute pop

/* Is it the device that is asked for? */
static __always_inline int trace_is_named(const struct net_device *dev)
{
	u32 i;

	for (i = 0; i < 16; i++) {
		if (dev->name[i] != filter.device[i])
			return 0;
		if (!filter.device[i])
			break;
	}
	return 1;
}

/* The device's latencies, if it is asked for. */
static __always_inline struct trace_latency *
trace_of(const struct Qdisc *q, const struct netdev_queue *txq)
{
	const struct net_device *dev = txq->dev;
	struct trace_device key = {};
	struct trace_latency *found;

	key.netns = dev->nd_net.net->ns.inum;
	key.ifindex = dev->ifindex;
	if (filter.netns && filter.netns != key.netns)
		return 0;
	if (filter.device[0] && !trace_is_named(dev))
		return 0;
	key.handle = q->handle;
	found = bpf_map_lookup_elem(&latencies, &key);
	if (found)
		return found;
	bpf_map_update_elem(&latencies, &key, &trace_nothing, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&latencies, &key);
	if (!found) {
		__sync_fetch_and_add(&records_lost, 1);
		return 0;
	}
	__builtin_memcpy(found->device, dev->name, 16);
	__builtin_memcpy(found->kind, q->ops->id, 16);
	return found;
}

/* The exponent of the greatest power of two within v, which is not 0. */
static __always_inline u32 trace_log2(u64 v)
{
	u32 log = 0;

	if (v >> 32) {
		v >>= 32;
		log += 32;
	}
	if (v >> 16) {
		v >>= 16;
		log += 16;
	}
	if (v >> 8) {
		v >>= 8;
		log += 8;
	}
	if (v >> 4) {
		v >>= 4;
		log += 4;
	}
	if (v >> 2) {
		v >>= 2;
		log += 2;
	}
	return log + (v >> 1);
}

static __always_inline u32 trace_bucket(u64 ns)
{
	u32 log, bucket;

	if (ns < 8)
		return ns;
	log = trace_log2(ns);
	bucket = (log - 2) * 8 + ((ns >> (log - 3)) & 7);
	return bucket < TRACE_BUCKETS ? bucket : TRACE_BUCKETS - 1;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(trace_enqueue, struct Qdisc *q, const struct netdev_queue *txq,
	     struct sk_buff *skb)
{
	struct trace_latency *latency = trace_of(q, txq);
	u64 address = (u64)skb;
	u64 now;

	if (!latency)
		return 0;
	__sync_fetch_and_add(&latency->taken_in, 1);
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&waiting, &address, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(trace_dequeue, struct Qdisc *q, const struct netdev_queue *txq,
	     int packets)
{
	struct trace_latency *latency;
	u64 address = 0, now;
	u32 i;

	/* The fourth argument as a number: nothing was there to send when it is 0, which verifiers before Linux 6.14
	 * do not believe of a pointer. */
	bpf_probe_read_kernel(&address, sizeof(address), &ctx[3]);
	if (!address)
		return 0;
	latency = trace_of(q, txq);
	if (!latency)
		return 0;
	now = bpf_ktime_get_ns();
	for (i = 0; i < TRACE_BULK_AT_MOST && address; i++) {
		u64 *since = bpf_map_lookup_elem(&waiting, &address);

		if (since) {
			u64 ns = now - *since;
			u32 bucket = trace_bucket(ns);

			bpf_map_delete_elem(&waiting, &address);
			__sync_fetch_and_add(&latency->measured, 1);
			__sync_fetch_and_add(&latency->sum_ns, ns);
			if (ns > latency->max_ns)
				latency->max_ns = ns;
			if (bucket < TRACE_BUCKETS)
				__sync_fetch_and_add(&latency->buckets[bucket],
						     1);
		} else {
			__sync_fetch_and_add(&latency->unknown, 1);
		}
		if (packets < 2)
			break;
		address = (u64)BPF_CORE_READ((struct sk_buff *)address, next);
	}
	if (packets > TRACE_BULK_AT_MOST)
		__sync_fetch_and_add(&latency->unknown,
				     packets - TRACE_BULK_AT_MOST);
	return 0;
}
