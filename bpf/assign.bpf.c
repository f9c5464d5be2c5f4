/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * assign.bpf.c - gives each new connection of a cgroup the algorithm of its arm
 * (assign.h), and writes a record of it into a ring buffer.
 *
 * It runs when a connection is established, before the kernel starts its
 * congestion control: the algorithm sees the connection from its first segment.
 * A connection that cannot be recorded is left as it is.
 *
 * Needs Linux 5.15 (the cookie of a network namespace in sockops programs) and
 * its BTF.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#include "assign.h"

#define ASSIGN_AF_INET6 10
#define ASSIGN_IPPROTO_TCP 6
#define ASSIGN_TCP_CONGESTION 13

/* The fields of the kernel's structs that are read; CO-RE finds their offsets. */
#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct tcp_congestion_ops {
	char name[16];
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_clock_cache; /* CLOCK_MONOTONIC of its last segment, ns */
};

#pragma clang attribute pop

/* Read by crates/assign/src/record.rs. */
struct assign_record {
	u64 t_ns; /* CLOCK_MONOTONIC */
	u64 cookie;
	u64 unit[2];
	u32 phase;
	s32 error; /* of the kernel that refused the algorithm; 0: it did not */
	u32 link;
	u32 arm;
};

/* The plan that holds, and the one before or after it: a plan is not changed
 * while it is read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct assign_plan);
} plans SEC(".maps");

u32 plan_held SEC(".bss.held");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/* Connections left as they were, because the buffer was full. */
u64 records_lost SEC(".bss.lost");

char assign_license[] SEC("license") = "Dual MIT/GPL";

static __always_inline u64 assign_pair(u32 first, u32 second)
{
	return (u64)bpf_ntohl(first) << 32 | bpf_ntohl(second);
}

/* Each field is loaded by itself and in any case: the verifier refuses a load of
 * two fields at once, and one through a pointer that depends on the family. */
static __always_inline void assign_ends(const volatile struct bpf_sock_ops *ctx,
					struct assign_connection *c)
{
	u32 local_v4 = ctx->local_ip4, remote_v4 = ctx->remote_ip4;
	u32 local[4], remote[4];

	for (int i = 0; i < 4; i++) {
		local[i] = ctx->local_ip6[i];
		remote[i] = ctx->remote_ip6[i];
	}
	if (ctx->family == ASSIGN_AF_INET6) {
		c->local[0] = assign_pair(local[0], local[1]);
		c->local[1] = assign_pair(local[2], local[3]);
		c->remote[0] = assign_pair(remote[0], remote[1]);
		c->remote[1] = assign_pair(remote[2], remote[3]);
	} else {
		c->local[1] = assign_pair(bpf_htonl(0xffff), local_v4);
		c->remote[1] = assign_pair(bpf_htonl(0xffff), remote_v4);
	}
}

/* Does the connection have the algorithm already, from its host, route or
 * listener? Looking is cheaper than setting it again. */
static __always_inline int assign_has(const struct tcp_sock *tcp,
				      const char algorithm[16])
{
	const struct tcp_congestion_ops *ops = tcp->inet_conn.icsk_ca_ops;
	const u64 *wanted = (const u64 *)algorithm;
	const u64 *name = (const u64 *)ops->name;

	return name[0] == wanted[0] && name[1] == wanted[1];
}

/* When the segment that established the connection came: reading the clock again
 * costs more. With TCP Fast Open the connection may have no such time yet; then
 * the clock's last tick stands in. */
static __always_inline u64 assign_now(const struct tcp_sock *tcp)
{
	u64 segment = tcp->tcp_clock_cache, tick = bpf_ktime_get_coarse_ns();

	return segment > tick ? segment : tick;
}

/* Three of four calls are about something else, and return at once. */
SEC("sockops")
int knee_assign(struct bpf_sock_ops *ctx)
{
	struct assign_connection c = {};
	struct assign_choice choice = {};
	const struct assign_plan *plan;
	const struct tcp_sock *tcp;
	struct assign_record *r;
	const char *algorithm;
	struct bpf_sock *sk;
	u32 held;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	held = plan_held;
	plan = bpf_map_lookup_elem(&plans, &held);
	sk = ctx->sk;
	if (!plan || !sk)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 1;
	c.local_port = ctx->local_port;
	c.remote_port = bpf_ntohl(ctx->remote_port);
	assign_ends(ctx, &c);
	c.cookie = bpf_get_socket_cookie(ctx);
	if (plan->by_netns)
		c.netns = bpf_get_netns_cookie(ctx);
	if (!assign_choose(plan, &c, &choice))
		return 1;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&records_lost, 1);
		return 1;
	}
	r->t_ns = assign_now(tcp);
	r->cookie = c.cookie;
	r->unit[0] = choice.unit[0];
	r->unit[1] = choice.unit[1];
	r->phase = plan->phase;
	r->link = choice.link;
	r->arm = choice.arm;
	algorithm = plan->algorithm[choice.arm & (ASSIGN_ARMS - 1)];
	r->error = 0;
	if (!assign_has(tcp, algorithm))
		r->error = bpf_setsockopt(
			ctx, ASSIGN_IPPROTO_TCP, ASSIGN_TCP_CONGESTION,
			(void *)algorithm, sizeof(plan->algorithm[0]));
	/* The reader looks by itself, some times a second. */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 1;
}
