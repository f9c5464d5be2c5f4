/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * world.h - a sender, a bottleneck and a receiver, as small as they can be and
 * still bring a congestion control everywhere it can go. The first algorithm
 * closes the loop: its window and its rate decide what is sent.
 *
 *	application -> window, pacer -> queue -> delay -> receiver -> ACK -> sender
 *	     path.c       sender.c         path.c                    world.c
 *
 * The sender follows Linux where an algorithm can see it: what is counted when,
 * the rate samples, the order of ops in an ACK, recovery, timeouts, tail loss
 * probes and undo. It is not the simulator's (crates/sim), which is exact where
 * this is quick.
 */
#ifndef KNEE_AGAINST_WORLD_H
#define KNEE_AGAINST_WORLD_H

#include "against.h"

#define STATE (TP->ca_state)

#define WINDOW 65536u	/* segments remembered; a power of two */
#define MAX_CWND 20000u /* so that a scenario ends */
#define HEADER_BYTES 52u
#define REORDERING 3u
#define MSEC_NS 1000000ull
#define MIN_RTO_NS (200 * MSEC_NS)
#define NEVER (~0ull)

struct segment {
	struct packet packet;
	u64 sent_ns;
	u32 order; /* of its last transmission */
	u8 is_delivered, is_lost, is_retrans, was_retrans;
};

struct transmission { /* in the order they were sent */
	u32 seq, order;
};

struct arrival { /* of an ACK */
	u64 at_ns;
	u32 seq, order;
	u8 is_marked;
};

/* Times without a name are of the virtual clock. */
struct world {
	const struct scenario *s;
	struct segment segments[WINDOW];
	struct transmission sent[WINDOW]; /* oldest at sent_head */
	u32 sent_head, sent_tail;
	u32 lost_queue[WINDOW]; /* segments to retransmit */
	u32 lost_head, lost_tail;
	struct arrival heap[WINDOW];
	u32 n_heap;
	u64 now_ns, random_state;
	u64 free_ns;  /* when the bottleneck has sent all it holds */
	u32 una, nxt; /* segments */
	u32 last_order, highest_order; /* of transmissions: sent, delivered */
	u64 first_tx_us;
	u64 rto_ns, tlp_ns, next_cwr_ns; /* when they are due */
	u32 rto_backoff, cwnd_usage_seq;
	u32 undo_order; /* the last transmission before the reduction */
	u32 tlp_is_active, tlp_high;
	u32 run_left;	  /* packets of a run still to be lost */
	u64 base_written; /* segments sent in bulk before app_from_ms */
};
extern struct world w;

u32 world_chance(u64 limit, u64 of);
struct segment *world_at(u32 seq);
void world_set_clock(u64 ns);
struct arrival world_pop(void);
void world_into_path(u32 seq);
u32 world_has_data(void);
void world_check_app_limited(void);
void world_arm_timers(void);
void world_transmit(u32 seq, u32 is_retrans);
u32 world_next_lost(u32 *seq);
void world_send_all(void);
void world_find_losses(void);
void world_note_reduction(u32 is_undoable);
void world_enter_recovery(void);
void world_enter_cwr(void);
void world_end_reduction(void);
void world_undo(void);
void world_timeout(void);
void world_probe_tail(void);

#endif
