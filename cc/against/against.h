/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * against.h - the parts of the harness: the path with its sender (world.c),
 * the two algorithms side by side (sides.c), the scenarios (scenarios.c), the
 * report (main.c), and the words for an algorithm that fails (failed.c).
 */
#ifndef KNEE_AGAINST_H
#define KNEE_AGAINST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cc_algorithm.h"
#include "kernel/minmax.h"
#include "kernel/tlp.h"

#define HZ 1000

/* ---- scenarios ---------------------------------------------------------- */

struct scenario {
	const char *name;
	u64 seed;
	u64 rate;	/* bit/s */
	u64 rate_later; /* bit/s from change_ms on; 0: no change */
	u32 rtt_us;
	u32 rtt_later_us;   /* from change_ms on; 0: no change */
	u32 change_ms;	    /* of rate and RTT; */
	u32 change_back_ms; /* and back; 0: never */
	u32 buffer_pct;	    /* of the BDP; */
	u32 buffer_packets; /* at least */
	u32 loss_ppm;	    /* random, of the data packets */
	u32 loss_run;	    /* packets lost at once; 0 or 1: single ones */
	u32 loss_after_ms;  /* no random loss before */
	u32 jitter_us;	    /* reorders packets; */
	u32 jitter_ppm;	    /* this share of them */
	u32 ack_us;	    /* ACKs come in lumps of this; 0: each alone */
	u32 ack_every;	    /* packets per ACK at most; 0: any */
	u32 burst;	    /* segments sent at once by the pacer; 0: 1 */
	u32 mark_pct;	    /* CE above this share of the buffer; 0: no marks */
	u32 ecn;	    /* 1: the algorithms take marks */
	u32 app_on_ms, app_off_ms; /* the application writes, pauses; 0: bulk */
	u32 app_segments;      /* it writes this much per period; 0: no end */
	u64 app_rate;	       /* bit/s that it writes; 0: no limit */
	u32 app_from_ms;       /* bulk until then */
	u32 blackout_ms;       /* everything is lost from then; */
	u32 blackout_for_ms;   /* for this time; */
	u32 blackout_every_ms; /* again after this; 0: once */
	u32 local_cwr_ms;      /* the host's own queue is full every so often */
	u32 tlp;	       /* 1: tail loss probes */
	u32 delayed_pct;       /* share of ACKs that waited for the receiver */
	u32 mss;
	u32 init_cwnd;
	u32 clamp;	    /* snd_cwnd_clamp; 0: none */
	u32 receive_window; /* segments; 0: none */
	u64 max_pacing;	    /* bytes/s; 0: none */
	u32 no_rtt;	    /* 1: RTT samples are missing at first */
	u32 ms;		    /* length */
	u32 acks;	    /* or as many ACKs */
};

extern const struct scenario against_classes[];
extern const u32 against_n_classes;
void against_draw(struct scenario *s, u64 seed);

/* A splitmix64 stream. */
u64 against_next(u64 *state);

/* ---- the two sides ------------------------------------------------------ */

/* What an algorithm decides, and what it was before a reduction. */
struct decided {
	u64 pacing_rate;
	u32 pacing_status;
	u32 snd_cwnd, snd_cwnd_cnt, snd_ssthresh;
	u32 prior_cwnd, prior_ssthresh;
};

/* What the sender knows, in the words and scales of Linux. */
struct sender {
	u64 tcp_mstamp; /* us */
	u64 clock_ns, tcp_wstamp_ns;
	u64 delivered_mstamp; /* us */
	u64 max_pacing_rate;
	u32 jiffies, lsndtime;
	u32 snd_cwnd_clamp;
	u32 snd_una, snd_nxt;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, delivered_ce, lost, app_limited;
	u32 srtt_us; /* of us, << 3 */
	u32 min_rtt_us;
	u32 mss_cache, gso_max_size;
	u32 reordering;
	u32 undo_marker, high_seq;
	u32 ca_state, ecn_mode;
	u32 is_cwnd_limited;
	u32 rcv_tsval, rcv_tsecr;
};

/* A packet as it was sent: a segment. */
struct packet {
	u32 seq, end_seq;
	u64 delivered_mstamp, first_tx_mstamp;
	u32 delivered, delivered_ce, in_flight, lost;
	u32 is_app_limited;
};

/* What an ACK tells; rate_sample of Linux. */
struct sample {
	u64 prior_mstamp;
	u32 prior_delivered, prior_delivered_ce, prior_lost;
	u32 tx_in_flight;
	s32 delivered, delivered_ce, lost;
	s64 interval_us, rtt_us;
	u32 snd_interval_us, rcv_interval_us;
	u32 losses, acked_sacked, prior_in_flight, last_end_seq;
	u32 is_app_limited, is_retrans, is_ack_delayed;
	u32 is_ece, is_acking_tlp_retrans_seq;
};

enum kind { CWND, PACING, SSTHRESH, PHASE, N_KINDS };
extern const char *const against_kinds[N_KINDS];

/* How the sides parted, of each its own. */
struct parting {
	u32 op; /* after which they differed; CC_N_OPS: the stack's own doing */
	struct cc_in in; /* of that op; windows and rates are in `before` */
	struct decided before[2], after[2];
	const char *phases_before[2], *phases_after[2];
};

struct difference {
	int is_set;
	struct scenario scenario;
	u64 ack;
	u64 values[2];
	const char *phases[2];
	struct parting parting;
};

struct score {
	u64 acks, equal, differ[N_KINDS];
};

/* The first closes the loop: its window and its rate decide what is sent. */
extern const struct cc_algorithm *against_algorithms[2];
extern struct decided against_decided[2];
extern struct sender against_sender;
#define FIRST against_decided[0]
#define SECOND against_decided[1]
#define TP (&against_sender)

static inline u32 against_in_flight(void)
{
	return TP->packets_out - (TP->sacked_out + TP->lost_out) +
	       TP->retrans_out;
}

/* Does the algorithm set the window at every ACK? Both do, or neither. */
static inline int against_has_cong_control(void)
{
	return against_algorithms[0]->ops[CC_OP_cong_control] != 0;
}

struct settings {
	const char *words[2][16]; /* NAME=VALUE, of each side */
	int n[2];
};

/* Returns whether each names a parameter, and its value is in its range; says on
 * stderr what is wrong. */
int against_settings_hold(const struct settings *sets);
int against_sides_begin(const struct scenario *s, const struct settings *sets);
void against_sides_init(void);
/* One random number for several ops, where each side decides in another. */
void against_hold_random(int hold);

/* Ops, run on both sides. */
void against_set_state(u32 state);
void against_event(u32 event);
void against_take_ssthresh(void);
void against_take_undo(void);
void against_marked_lost(const struct packet *packet);
void against_ack_event(u32 flags);
void against_pkts_acked(u32 acked, s64 rtt_us, u32 in_flight_bytes);
void against_cong_avoid(u32 acked);
void against_cong_control(u32 flags, const struct sample *rs);
void against_compare(struct score *score, struct difference *first);
/* Of one side. */
u32 against_ask_ssthresh(u32 side);
void against_tell_event(u32 side, u32 event);

/* CWR that an algorithm entered by itself (own_cwr.c). */
void against_own_cwr_reset(void);
void against_own_cwr_enter(u32 side);
int against_own_cwr_is_on(u32 side);
int against_own_cwr_is_taken_over(u32 side);
int against_own_cwr_reduces(u32 side, u32 acked);

/* ---- an algorithm that fails -------------------------------------------- */

extern const char *const against_ops[CC_N_OPS];

/* The op under way, for failed.c. */
struct under_way {
	const struct scenario *scenario;
	u32 side, op;
	u64 n; /* of ops so far; 0: none is under way */
};
extern struct under_way against_under_way;
void against_watch(void);

/* ---- the world ---------------------------------------------------------- */

void against_run(const struct scenario *s, struct score *score,
		 struct difference *first);

#endif
