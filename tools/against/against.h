/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * against.h - the parts of the harness: the path with its sender (world.c),
 * the two algorithms side by side (sides.c), the scenarios (scenarios.c) and
 * the report (main.c).
 */
#ifndef KNEE_AGAINST_H
#define KNEE_AGAINST_H

#include "stub.h"
#include "cc_algorithm.h"

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

/* What an algorithm decides. The kernel's is in the socket. */
struct decided {
	u64 pacing_rate;
	u32 pacing_status;
	u32 snd_cwnd, snd_cwnd_cnt, snd_ssthresh;
	u32 prior_cwnd, prior_ssthresh;
};

enum kind { CWND, PACING, SSTHRESH, PHASE, N_KINDS };
extern const char *const against_kinds[N_KINDS];

struct difference {
	int is_set;
	struct scenario scenario;
	u64 ack;
	u64 kernel, ours;
	u32 phase_kernel, phase_ours; /* before this ACK */
	struct cc_in in;
	struct decided before;
};

struct score {
	u64 acks, equal, differ[N_KINDS];
};

extern struct tcp_sock against_socket;
extern struct decided against_ours;
extern struct tcp_congestion_ops *against_kernel_ops;
extern const struct cc_algorithm *against_algorithm;

int against_sides_begin(const struct scenario *s, const char *const *sets,
			int n_sets, const char *const *kernel_sets,
			int n_kernel_sets);
void against_sides_init(void);
/* One random number for several ops, where each side decides in another. */
void against_hold_random(int hold);

/* Ops, run on both sides. */
void against_set_state(u8 state);
void against_event(enum tcp_ca_event event);
void against_take_ssthresh(void);
void against_take_undo(void);
void against_marked_lost(struct sk_buff *skb);
void against_ack_event(u32 flags);
void against_pkts_acked(const struct ack_sample *sample);
void against_cong_avoid(u32 ack, u32 acked);
void against_cong_control(u32 ack, int flag, const struct rate_sample *rs);
void against_compare(struct score *score, struct difference *first);

/* `in` as the BPF shell fills it from the socket; for the stand-in. */
void against_fill(struct cc_in *in, const struct sock *sk);
/* The bits of cc.h for CA_ACK_*. */
u32 against_ack_flags(u32 flags);
void against_fill_sample(struct cc_in *in, const struct rate_sample *rs,
			 u32 flags);

/* CWR that the kernel's algorithm entered by itself (own_cwr.c). */
void against_own_cwr_reset(void);
int against_own_cwr_is_on(void);
int against_own_cwr_is_taken_over(void);
int against_own_cwr_reduces(u32 acked);

/* ---- the world ---------------------------------------------------------- */

void against_run(const struct scenario *s, struct score *score,
		 struct difference *first);

#endif
