/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Westwood+ - after a loss, the window that the path was seen to carry.
 *
 * Reno halves at a loss whatever its cause. Westwood+ measures, all the time,
 * how fast acknowledgments come back, and sets the window after a loss to that
 * bandwidth times the smallest round-trip time: what fills the path without a
 * queue. A random loss on a path that is not full then costs little.
 *
 * Equations (bw in bytes per jiffy, windows of at least 50 ms and an RTT)
 *	sample   = bytes acked in the window / its length
 *	bw       = two filters in a row, each y = (7 y + x) / 8
 *	ssthresh = max(bw rtt_min / mss, 2), and the window after recovery
 *	growth:	 as Reno
 *
 * Source: Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: Bandwidth
 *	Estimation for Enhanced Transport over Wireless Links", MobiCom 2001;
 *	Grieco and Mascolo, "Performance evaluation and comparison of
 *	Westwood+, New Reno, and Vegas TCP", CCR 34(2), 2004, section 2 (the
 *	sampling); Linux 6.12 net/ipv4/tcp_westwood.c.
 *
 * Differs from source:
 *	- The paper sets ssthresh at the loss; in Linux and here ssthresh() is
 *	  Reno's half, so recovery first goes down to that and jumps to
 *	  bw rtt_min at its end.
 *	- RTTs are counted in jiffies, as in Linux: at 250 Hz a path of 10 ms
 *	  has 3 of them, 12 ms.
 */
#include "cc_algorithm.h"

/* rtt and rtt_min before the first sample (Linux). s. */
#define WESTWOOD_INIT_RTT_SEC 20u
/* Most windows of bandwidth samples per second (Linux). */
#define WESTWOOD_MAX_WINDOWS_PER_SEC 20u

#define WESTWOOD_PARAMS(P)

struct westwood {
	u32 bw_raw;	   /* first filter, bytes per jiffy */
	u32 bw;		   /* second filter, bytes per jiffy */
	u32 window_start;  /* jiffies */
	u32 window_bytes;  /* acked in the window */
	u32 snd_una;	   /* up to where bytes are counted */
	u32 accounted;	   /* bytes counted for duplicate ACKs */
	u32 rtt;	   /* last sample, jiffies */
	u32 rtt_min;	   /* jiffies */
	u32 has_acked;	   /* 0 or 1: an ACK has come */
	u32 reset_rtt_min; /* 0 or 1: the next sample is the new minimum */
};

static void westwood_init(struct westwood *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)out;
	s->bw_raw = 0;
	s->bw = 0;
	s->window_start = in->jiffies;
	s->window_bytes = 0;
	s->snd_una = in->snd_una;
	s->accounted = 0;
	s->rtt = WESTWOOD_INIT_RTT_SEC * in->hz;
	s->rtt_min = s->rtt;
	s->has_acked = 0;
	s->reset_rtt_min = 1;
}

static u32 westwood_filter(u32 y, u32 x)
{
	return (u32)((7 * (u64)y + x) >> 3);
}

static void westwood_end_window(struct westwood *s, u32 length)
{
	u32 sample = (u32)cc_div(s->window_bytes, length);

	if (!s->bw_raw && !s->bw) {
		s->bw_raw = sample;
		s->bw = sample;
	} else {
		s->bw_raw = westwood_filter(s->bw_raw, sample);
		s->bw = westwood_filter(s->bw, s->bw_raw);
	}
}

static void westwood_check_window(struct westwood *s, const struct cc_in *in)
{
	u32 shortest = (u32)cc_div(in->hz, WESTWOOD_MAX_WINDOWS_PER_SEC);
	s32 length = (s32)(in->jiffies - s->window_start);

	/* What was acked before the first ACK is the handshake's. */
	if (!s->has_acked) {
		s->snd_una = in->snd_una;
		s->has_acked = 1;
	}
	if (s->rtt &&
	    length > (s32)cc_min(cc_max(s->rtt, shortest), 0x7fffffffu)) {
		westwood_end_window(s, (u32)length);
		s->window_bytes = 0;
		s->window_start = in->jiffies;
	}
}

/*
 * Bytes that this ACK says have arrived. A duplicate stands for one segment;
 * the cumulative ACK that follows counts it again, and has it deducted, unless
 * header prediction expected it (Linux).
 */
static u32 westwood_acked_bytes(struct westwood *s, const struct cc_in *in)
{
	u32 acked = in->snd_una - s->snd_una;

	s->snd_una = in->snd_una;
	if (!(in->ack_flags & CC_ACK_SLOWPATH))
		return acked;
	if (!acked) {
		s->accounted = cc_add_saturate(s->accounted, in->mss_bytes);
		return in->mss_bytes;
	}
	if (acked > in->mss_bytes) {
		if (s->accounted >= acked) {
			s->accounted -= acked;
			acked = in->mss_bytes;
		} else {
			acked -= s->accounted;
			s->accounted = 0;
		}
	}
	return acked;
}

static void westwood_update_rtt_min(struct westwood *s)
{
	if (s->reset_rtt_min) {
		s->rtt_min = s->rtt;
		s->reset_rtt_min = 0;
	} else {
		s->rtt_min = cc_min(s->rtt_min, s->rtt);
	}
}

/* The path without a queue. Segments. */
static u32 westwood_bdp(const struct westwood *s, const struct cc_in *in)
{
	return cc_max(
		cc_saturate(cc_div((u64)s->bw * s->rtt_min, in->mss_bytes)),
		CC_MIN_SSTHRESH);
}

static void westwood_ssthresh(struct westwood *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_reno_ssthresh(out);
}

static void westwood_cong_avoid(struct westwood *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)s;
	cc_reno_cong_avoid(in, out, in->acked);
}

static void westwood_undo_cwnd(struct westwood *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void westwood_cwnd_event(struct westwood *s, const struct cc_in *in,
				struct cc_out *out)
{
	if (in->event == CC_EVENT_COMPLETE_CWR) {
		out->snd_ssthresh = westwood_bdp(s, in);
		out->snd_cwnd = out->snd_ssthresh;
	} else if (in->event == CC_EVENT_LOSS) {
		out->snd_ssthresh = westwood_bdp(s, in);
		s->reset_rtt_min = 1;
	}
}

static void westwood_pkts_acked(struct westwood *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)out;
	if (in->ack_rtt_us > 0)
		s->rtt = cc_usecs_to_jiffies(cc_saturate((u64)in->ack_rtt_us),
					     in->hz);
}

static void westwood_in_ack_event(struct westwood *s, const struct cc_in *in,
				  struct cc_out *out)
{
	(void)out;
	westwood_check_window(s, in);
	s->window_bytes =
		cc_add_saturate(s->window_bytes, westwood_acked_bytes(s, in));
	westwood_update_rtt_min(s);
}

/* clang-format off */
#define WESTWOOD_OPS(OP)                                                       \
	OP(westwood, init)                                                     \
	OP(westwood, ssthresh)                                                 \
	OP(westwood, cong_avoid)                                               \
	OP(westwood, undo_cwnd)                                                \
	OP(westwood, cwnd_event)                                               \
	OP(westwood, pkts_acked)                                               \
	OP(westwood, in_ack_event)

CC_ALGORITHM(westwood, struct westwood, WESTWOOD_PARAMS, WESTWOOD_OPS, 0,
	.summary = "Reno whose window after a loss is the measured bandwidth times the least RTT",
	.source = "Mascolo et al., MobiCom 2001; Grieco and Mascolo, CCR 34(2) 2004; Linux 6.12 tcp_westwood.c",
	.use_when = "wireless paths with random loss and spare bandwidth",
	.year = 2001)
/* clang-format on */
