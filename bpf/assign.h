/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * assign.h - which arm of an experiment a connection belongs to.
 *
 * The BPF program and Rust compile this file, so that there is one answer. It
 * depends on the plan and the unit alone: hosts with the same plan agree.
 *
 * Addresses are numbers of the host, not bytes of the network: word 0 has the
 * first eight bytes. IPv4 is ::ffff:a.b.c.d.
 */
#ifndef KNEE_ASSIGN_H
#define KNEE_ASSIGN_H

/* Who includes this has the types u8, u16, u32, u64. */

#define ASSIGN_ARMS 8
#define ASSIGN_LINKS 8
#define ASSIGN_PORTS 8

/* What gets one algorithm for all its connections. */
enum assign_unit {
	ASSIGN_PREFIX,	   /* the far end's address, cut to a prefix */
	ASSIGN_CONNECTION, /* each by itself */
	ASSIGN_HOST,	   /* this host */
};

struct assign_prefix {
	u64 address[2];
	u64 mask[2];
};

struct assign_ports {
	u16 low;
	u16 high;
};

/* Connections that share an allocation. */
struct assign_link {
	u64 netns; /* cookie of the network namespace; 0: any */
	struct assign_prefix local;
	/* A unit whose draw, of 2^32, is below the first of these has arm 0,
	 * below the second arm 1, and so on. */
	u64 draw_below[ASSIGN_ARMS];
};

struct assign_plan {
	u64 seed;
	u64 netns; /* as of a link */
	/* Stands for this host, or for this boot of it where connections are
	 * the units: their cookies begin anew with each boot. */
	u64 own[2];
	u64 mask_v4[2];
	u64 mask_v6[2];
	u32 unit;  /* enum assign_unit */
	u32 phase; /* number of the allocation that holds */
	u32 arms;
	u32 links;
	u32 ports;
	u32 by_netns; /* does the plan or a link name one? */
	struct assign_ports port[ASSIGN_PORTS]; /* of either end */
	char algorithm[ASSIGN_ARMS][16];
	struct assign_link link[ASSIGN_LINKS];
};

/* What is known of a connection when it is established. */
struct assign_connection {
	u64 local[2];
	u64 remote[2];
	u64 cookie;
	u64 netns;
	u16 local_port;
	u16 remote_port;
	u32 unused;
};

struct assign_choice {
	u64 unit[2];
	u32 link;
	u32 arm;
};

/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline u64 assign_mix(u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* A number below 2^32 that the seed and the unit decide. */
static inline u64 assign_draw(u64 seed, const u64 unit[2])
{
	u64 hash = assign_mix(seed + 0x9e3779b97f4a7c15ull);

	hash = assign_mix(hash ^ unit[0]);
	hash = assign_mix(hash + unit[1]);
	return hash >> 32;
}

static inline int assign_is_v4(const u64 address[2])
{
	return !address[0] && address[1] >> 32 == 0xffff;
}

static inline int assign_is_within(const u64 address[2],
				   const struct assign_prefix *prefix)
{
	return (address[0] & prefix->mask[0]) == prefix->address[0] &&
	       (address[1] & prefix->mask[1]) == prefix->address[1];
}

static inline int assign_port_is_wanted(const struct assign_plan *plan,
					const struct assign_connection *c)
{
	if (!plan->ports)
		return 1;
	for (u32 i = 0; i < ASSIGN_PORTS && i < plan->ports; i++) {
		const struct assign_ports *range = &plan->port[i];

		if (c->local_port >= range->low && c->local_port <= range->high)
			return 1;
		if (c->remote_port >= range->low &&
		    c->remote_port <= range->high)
			return 1;
	}
	return 0;
}

/* Does the connection get an arm? Then which, and why. */
static inline int assign_choose(const struct assign_plan *plan,
				const struct assign_connection *c,
				struct assign_choice *choice)
{
	const u64 *mask;
	u64 draw;

	if (plan->netns && plan->netns != c->netns)
		return 0;
	if (!assign_port_is_wanted(plan, c))
		return 0;
	if (plan->unit == ASSIGN_PREFIX) {
		mask = assign_is_v4(c->remote) ? plan->mask_v4 : plan->mask_v6;
		choice->unit[0] = c->remote[0] & mask[0];
		choice->unit[1] = c->remote[1] & mask[1];
	} else {
		choice->unit[0] = plan->own[0];
		choice->unit[1] = plan->own[1];
		if (plan->unit == ASSIGN_CONNECTION)
			choice->unit[1] ^= c->cookie;
	}
	draw = assign_draw(plan->seed, choice->unit);
	for (u32 i = 0; i < ASSIGN_LINKS && i < plan->links; i++) {
		const struct assign_link *link = &plan->link[i];

		if (link->netns && link->netns != c->netns)
			continue;
		if (!assign_is_within(c->local, &link->local))
			continue;
		for (u32 arm = 0; arm < ASSIGN_ARMS && arm < plan->arms;
		     arm++) {
			if (draw < link->draw_below[arm]) {
				choice->link = i;
				choice->arm = arm;
				return 1;
			}
		}
		return 0;
	}
	return 0;
}

#endif
