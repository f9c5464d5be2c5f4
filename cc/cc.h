/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc.h - the contract between an algorithm and the stack that runs it.
 *
 * An algorithm is a set of ops over three blocks of plain memory:
 *
 *	op(state, in, out)
 *
 * `in` is what the stack shows (read only), `out` is what the algorithm may
 * change, `state` is the algorithm's own memory, one per connection. No op
 * allocates, sleeps, fails, calls the stack or keeps a pointer; every op is
 * total for every input. Ops keep the names, the order and the meaning of
 * Linux `struct tcp_congestion_ops`; fields keep the names of `tcp_sock` and
 * `rate_sample`, but carry honest units (srtt_us is microseconds, not << 3).
 *
 * The same file is compiled twice. cc_native.h turns it into a descriptor that
 * the simulator calls; cc_bpf.h turns it into struct_ops programs which copy
 * kernel fields into `in`, call the op, and copy `out` back. Between the two
 * nothing may differ, so this header admits only what both can do: unsigned
 * division, bounded loops, no float, no libc, no 128-bit arithmetic, and a
 * guard before every division by a variable.
 */
#ifndef KNEE_CC_H
#define KNEE_CC_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

/* in->ca_state: the loss-recovery state machine, numbered as in Linux. */
enum cc_ca_state {
	CC_CA_OPEN = 0,
	CC_CA_DISORDER = 1,
	CC_CA_CWR = 2,
	CC_CA_RECOVERY = 3,
	CC_CA_LOSS = 4,
};

/* in->event of cwnd_event(), numbered as in Linux. */
enum cc_event {
	CC_EVENT_TX_START = 0,	   /* first transmit with nothing in flight */
	CC_EVENT_CWND_RESTART = 1, /* congestion window restart after idle */
	CC_EVENT_COMPLETE_CWR = 2, /* end of CWR or Recovery */
	CC_EVENT_LOSS = 3,	   /* retransmission timeout */
	CC_EVENT_ECN_NO_CE = 4,	   /* receiver side: packet without CE */
	CC_EVENT_ECN_IS_CE = 5,	   /* receiver side: packet with CE */
};

/* in->pacing_status */
enum cc_pacing_status {
	CC_PACING_NONE = 0,   /* nothing paces this socket */
	CC_PACING_NEEDED = 1, /* TCP's own timer paces */
	CC_PACING_FQ = 2,     /* the fq qdisc paces */
};

/* in->ecn_mode: what the handshake agreed on. */
enum cc_ecn_mode {
	CC_ECN_NONE = 0,
	CC_ECN_CLASSIC = 1,  /* RFC 3168 */
	CC_ECN_ACCURATE = 2, /* RFC 9768 */
};

/* in->ack_state */
#define CC_ACK_STATE_ECHO 0x1u	  /* ACKs carry ECE (classic ECN) */
#define CC_ACK_STATE_DELAYED 0x2u /* an ACK waits for its timer */

/* out->ack_prior of cwnd_event() */
enum cc_ack_prior {
	CC_ACK_PRIOR_NONE = 0,
	CC_ACK_PRIOR_PLAIN = 1, /* an ACK without ECE */
	CC_ACK_PRIOR_ECE = 2,	/* an ACK with ECE */
};

/* in->ack_flags: the bits of Linux' FLAG_* that algorithms read. */
#define CC_ACK_ECE 0x40u
#define CC_ACK_SLOWPATH 0x100u /* not what header prediction expects */
#define CC_ACK_SND_UNA_ADVANCED 0x400u
#define CC_ACK_MAYBE_DELAYED 0x10000u

/* snd_ssthresh before the first congestion event. */
#define CC_INFINITE_SSTHRESH 0x7fffffffu
/* in->app_limited while no marker is set is 0; a socket starts with ~0. */

/*
 * What the stack shows. Segments unless the name carries a unit. Sequence
 * numbers and cumulative counters are 32 bits and wrap, as in the kernel;
 * compare them with cc_before()/cc_after() of cc_math.h.
 *
 * Fields under "argument" are valid only in the op named; elsewhere they hold
 * the last value and must not be read.
 */
struct cc_in {
	/* clocks */
	u64 now_us;	 /* tcp_mstamp: time this ACK or timer began, us */
	u64 clock_ns;	 /* tcp_clock_cache: the same instant in ns */
	u64 wstamp_ns;	 /* tcp_wstamp_ns: earliest departure of the next skb */
	u64 pacing_rate; /* sk_pacing_rate, bytes/s */
	u64 max_pacing_rate; /* sk_max_pacing_rate, bytes/s; ~0 = no limit */
	/* argument of cong_control(): the delivery-rate sample of this ACK */
	s64 rs_interval_us;	/* length of the sample; < 0: no valid sample */
	s64 rs_rtt_us;		/* RTT of this ACK; < 0: none */
	u64 rs_prior_mstamp_us; /* when rs_prior_delivered was current; 0: none */
	/* argument of pkts_acked() */
	s64 ack_rtt_us; /* RTT of the last segment acked; < 0: none */

	u32 jiffies;  /* tcp_jiffies32 */
	u32 hz;	      /* jiffies per second */
	u32 lsndtime; /* jiffies of the last data transmission */

	u32 snd_cwnd;
	u32 snd_cwnd_cnt; /* credit toward the next increase of snd_cwnd */
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd; /* snd_cwnd just before recovery began */

	u32 snd_una; /* sequence numbers, bytes */
	u32 snd_nxt;
	/* TCP timestamps of the last segment; both 0: the option is not used */
	u32 rcv_tsval; /* the other end's clock, in a unit that it chooses */
	u32 rcv_tsecr; /* ours as echoed: now_us / 1000 when that was sent, ms */

	u32 packets_out; /* sent and not cumulatively acked */
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out; /* most packets_out in the last window */
	u32 delivered;	     /* cumulative, including retransmits */
	u32 delivered_ce;    /* cumulative, of those: CE marked */
	u32 lost;	     /* cumulative loss marks, never decremented */
	u32 app_limited;     /* 0, or `delivered` at which the limit ends */

	u32 srtt_us;	   /* smoothed RTT; 0: no sample yet */
	u32 min_rtt_us;	   /* windowed minimum; ~0: no sample yet */
	u32 mss_bytes;	   /* mss_cache: payload of a full segment */
	u32 gso_max_bytes; /* sk_gso_max_size */
	u32 reordering;
	u32 pacing_status;   /* enum cc_pacing_status */
	u32 ca_state;	     /* enum cc_ca_state */
	u32 is_cwnd_limited; /* 0 or 1: cwnd blocked sending in this window */
	u32 random;	     /* uniform 32 bits; drawn by cc_random() */

	u32 state;     /* argument of set_state(): the state entered */
	u32 event;     /* argument of cwnd_event(): enum cc_event */
	u32 ack_flags; /* argument of cong_control(), in_ack_event() */
	u32 acked;     /* argument of cong_avoid() and pkts_acked() */
	u32 ack_in_flight_bytes; /* argument of pkts_acked() */

	/* argument of cong_control(), continued */
	u32 rs_prior_delivered; /* tp.delivered when the sampled skb was sent */
	s32 rs_delivered;	/* delivered over the interval; < 0: invalid */
	s32 rs_delivered_ce;
	u32 rs_acked_sacked;	/* newly delivered by this ACK */
	u32 rs_losses;		/* newly marked lost by this ACK */
	u32 rs_prior_in_flight; /* in flight before this ACK */
	u32 rs_snd_interval_us;
	u32 rs_rcv_interval_us;
	u32 rs_last_end_seq; /* end sequence of the sampled skb */
	u32 rs_is_app_limited;
	u32 rs_is_retrans;
	u32 rs_is_ack_delayed;
	/*
	 * Exact per-packet facts that stock Linux does not keep. Where
	 * rs_has_tx is 0 an algorithm must estimate them itself.
	 */
	u32 rs_has_tx;
	u32 rs_tx_in_flight; /* in flight just after the sampled skb was sent */
	u32 rs_lost;	     /* tp.lost now minus tp.lost when it was sent */

	/*
	 * argument of skb_marked_lost(), which stock Linux does not have: the
	 * packet just counted in `lost`, as it was sent
	 */
	u32 lost_tx_in_flight; /* in flight just after it was sent */
	u32 lost_tx_lost;      /* tp.lost when it was sent */
	u32 lost_is_app_limited;

	/* the receiving half */
	u32 ecn_mode;  /* enum cc_ecn_mode */
	u32 ack_state; /* CC_ACK_STATE_* */
	u32 rcv_nxt;   /* sequence number expected next, bytes */
};

/*
 * What an op may change. The stack fills it from the connection before the
 * call and copies it back after, so an op that does nothing changes nothing.
 * snd_cwnd must stay >= 1.
 */
struct cc_out {
	u64 pacing_rate;   /* bytes/s */
	u32 pacing_status; /* only NONE -> NEEDED is honoured */
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_ssthresh;
	u32 app_limited;
	u32 ret; /* result of ssthresh, undo_cwnd, min_tso_segs, sndbuf_expand */

	/*
	 * Of cwnd_event() with an ECN event, where classic ECN is in use. The
	 * prior ACK goes out first, then the new echo holds.
	 */
	u32 ack_prior;	   /* enum cc_ack_prior; 0 before the call */
	u32 ack_prior_seq; /* what it acknowledges; 0 before the call */
	u32 ecn_echo;	   /* 0 or 1: ACKs carry ECE from now on */
	u16 ack_now;	   /* 1: ack what arrives at once; 0 before the call */

	u8 random_drawn; /* 1: `random` was drawn; 0 before the call */

	/*
	 * Of cong_avoid() and cong_control(): 1 asks the stack for a reduction
	 * to what ssthresh() says, as after a mark. Linux lets no BPF program
	 * ask; so a file of the kernel may, and ours do not. 0 before the call.
	 */
	u8 enter_cwr;
};

/*
 * What get_info() tells of an algorithm's model of the path, for a table or a
 * screen: the fields of struct tcp_bbr_info (linux/inet_diag.h), and the
 * phase, which Linux does not tell. The kernel does not let struct_ops provide
 * get_info, so this exists on the host only.
 */
struct cc_info {
	u64 bw;		 /* bandwidth estimate in use, bytes/s; 0: none yet */
	u32 min_rtt_us;	 /* ~0: none yet */
	u32 pacing_gain; /* 1/256 */
	u32 cwnd_gain;	 /* 1/256 */
	u32 phase;	 /* index into the descriptor's `phases` */
};

/*
 * A parameter that a user may set per flow. The first `n_params` u32 of the
 * state are the parameters in the order listed; the stack fills them before
 * init(), ops only read them.
 */
struct cc_param {
	const char *name;
	u32 dflt, min, max;
	const char *unit; /* "", "segments", "us", "1/256" ... */
	const char *doc;  /* one line, and the source of the default */
};

#define CC_STATE_MAX_BYTES 2048

#endif
