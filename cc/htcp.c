/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * H-TCP - the increase grows with the time since the last loss.
 *
 * For a second after a loss it is Reno; from then on the additive increase is
 * a quadratic of the time since that loss, so that long fat paths fill in
 * seconds while short ones never notice. At a loss it gives up only what the
 * queue held, min RTT / max RTT, but half when the achieved throughput has
 * just changed. The increase is scaled by 2 (1 - beta), which keeps it fair to
 * flows with another beta, and by the RTT, which makes growth per second alike.
 *
 * Equations (D = time since the last loss, s; w = snd_cwnd, segments)
 *	alpha(D) = 1					D <= 1
 *		 = 1 + 10 (D - 1) + ((D - 1) / 2)^2	else
 *	alpha	 = 2 (1 - beta) max(alpha(D) / ratio, 1)
 *	ratio	 = 100 ms / min RTT, within [0.5, 10]
 *	growth	 = alpha segments per round trip
 *	beta	 = min RTT / max RTT, within [0.5, 0.8]
 *		 = 0.5 if the throughput changed by more than 20 % between two
 *		   losses, if min RTT <= 10 ms, or at the first loss
 *	loss:	 ssthresh = max(beta w, 2)
 *
 * Source: Leith and Shorten, "H-TCP: TCP for high-speed and long-distance
 *	networks", PFLDnet 2004 (increase, adaptive backoff);
 *	draft-leith-tcp-htcp-06 (RTT scaling); Linux 6.12
 *	net/ipv4/tcp_htcp.c for integers, clocks and ACK counting.
 *
 * Differs from source:
 *	- The draft adds alpha / w per ACK. Linux and this file add one segment
 *	  per ACK event at most, when the packets counted so far reach
 *	  w / alpha; the packets of that ACK are not counted and what is over
 *	  w / alpha is dropped, so stretched ACKs slow the growth. What slow
 *	  start leaves of an ACK is dropped too.
 *	- Times are jiffies, as in Linux. An RTT below one jiffy counts as one,
 *	  so at HZ 250 a LAN has a min RTT of 4 ms, and beta adapts from 16 ms.
 *	- The draft's max RTT is that of the last epoch; in Linux and here it
 *	  follows rises of at most 20 ms per sample and loses 5 % of what is
 *	  over min RTT per loss.
 *	- Linux also saves max RTT and the last throughput for undo, but after
 *	  the loss has changed them, so undo brings back what is there. Here
 *	  only the time of the loss before is saved.
 *	- Where a product overflows 32 bits in Linux (131 s without a loss at
 *	  HZ 1000) ours does not, or saturates.
 */
#include "cc_algorithm.h"

/* alpha and beta are in units of 1/128. */
#define HTCP_SHIFT 7
#define HTCP_ONE (1u << HTCP_SHIFT)
/* PFLDnet 2004: beta within [0.5, 0.8]. */
#define HTCP_BETA_MIN (HTCP_ONE / 2)
#define HTCP_BETA_MAX 102u
/* alpha(D), PFLDnet 2004: slope per second after the first second. */
#define HTCP_SLOPE 10u
/* The RTT that growth is scaled to: a tenth of a second. */
#define HTCP_REFERENCE_PER_SEC 10u
/* 100 ms / min RTT in units of 1/8, within [0.5, 10]. */
#define HTCP_RATIO_SHIFT 3
#define HTCP_RATIO_MIN 4u
#define HTCP_RATIO_MAX 80u
/* A rise of the RTT by more is no queue but another path (Linux). ms. */
#define HTCP_MAX_RTT_STEP_MS 20u
/* Below this min RTT the ratio of two jiffies says nothing (Linux). ms. */
#define HTCP_ADAPTIVE_MIN_RTT_MS 10u
/* Part of max RTT - min RTT remembered past a loss (Linux). %. */
#define HTCP_MAX_RTT_KEPT_PCT 95u
/* So many min RTTs after a loss the throughput filter starts anew (Linux). */
#define HTCP_FRESH_ROUNDS 3u

/* clang-format off */
#define HTCP_PARAMS(P)                                                         \
	P(use_rtt_scaling, 1, 0, 1, "",                                        \
	  "growth per second alike at every RTT; draft-leith-tcp-htcp-06")     \
	P(use_bandwidth_switch, 1, 0, 1, "",                                   \
	  "give up half when the throughput changed by 20 % (Linux)")
/* clang-format on */

struct htcp {
	CC_PARAM_FIELDS(HTCP_PARAMS)

	u32 alpha;	    /* increase per round trip, 1/128 segment */
	u32 beta;	    /* window kept at a loss, 1/128 */
	u32 is_adaptive;    /* 0 or 1: beta may follow the RTTs */
	u32 pkts_acked;	    /* by the ACK that cong_avoid() will see */
	u32 min_rtt;	    /* smallest RTT, jiffies; 0: none yet */
	u32 max_rtt;	    /* largest RTT, with fading memory, jiffies */
	u32 last_cong;	    /* when the last loss was, jiffies */
	u32 undo_last_cong; /* last_cong before it, jiffies; 0: no undo */

	u32 packet_count; /* acked since last_time */
	u32 last_time;	  /* start of the throughput sample, jiffies */
	u32 b;		  /* throughput, filtered, packets/s */
	u32 max_b;	  /* largest b since the last loss, packets/s */
	u32 old_max_b;	  /* max_b of the epoch before, packets/s */
};

static u32 htcp_since_loss(const struct htcp *s, const struct cc_in *in)
{
	return in->jiffies - s->last_cong;
}

/* alpha(D), segments. */
static u64 htcp_alpha_of_time(u32 since, u32 hz)
{
	u64 t, half;

	if (since <= hz)
		return 1;
	t = since - hz;
	half = t / 2;
	return 1 + cc_div(HTCP_SLOPE * t + cc_div(half * half, hz), hz);
}

static void htcp_update_alpha(struct htcp *s, const struct cc_in *in)
{
	u64 alpha = htcp_alpha_of_time(htcp_since_loss(s, in), in->hz);

	if (s->use_rtt_scaling && s->min_rtt) {
		u64 ratio = cc_div((u64)in->hz << HTCP_RATIO_SHIFT,
				   (u64)HTCP_REFERENCE_PER_SEC * s->min_rtt);

		ratio = cc_max64(cc_min64(ratio, HTCP_RATIO_MAX),
				 HTCP_RATIO_MIN);
		alpha = cc_max64((alpha << HTCP_RATIO_SHIFT) / ratio, 1);
	}
	s->alpha = cc_saturate(2 * alpha * (HTCP_ONE - s->beta));
}

static void htcp_update_beta(struct htcp *s, const struct cc_in *in)
{
	u64 max_b = s->max_b, old_max_b = s->old_max_b;

	if (s->use_bandwidth_switch) {
		s->old_max_b = s->max_b;
		if (5 * max_b < 4 * old_max_b || 5 * max_b > 6 * old_max_b) {
			s->beta = HTCP_BETA_MIN;
			s->is_adaptive = 0;
			return;
		}
	}

	if (s->is_adaptive && s->max_rtt &&
	    s->min_rtt >
		    cc_msecs_to_jiffies(HTCP_ADAPTIVE_MIN_RTT_MS, in->hz)) {
		u64 ratio = cc_div((u64)s->min_rtt << HTCP_SHIFT, s->max_rtt);

		s->beta = cc_clamp(cc_saturate(ratio), HTCP_BETA_MIN,
				   HTCP_BETA_MAX);
	} else {
		s->beta = HTCP_BETA_MIN;
		s->is_adaptive = 1;
	}
}

static void htcp_measure_rtt(struct htcp *s, const struct cc_in *in, u32 rtt)
{
	u32 step = cc_msecs_to_jiffies(HTCP_MAX_RTT_STEP_MS, in->hz);

	if (!s->min_rtt || rtt < s->min_rtt)
		s->min_rtt = rtt;
	if (in->ca_state != CC_CA_OPEN)
		return;
	s->max_rtt = cc_max(s->max_rtt, s->min_rtt);
	if (rtt > s->max_rtt && rtt <= (u64)s->max_rtt + step)
		s->max_rtt = rtt;
}

/*
 * Packets per second, one sample per window acked and min RTT passed. While
 * alpha exceeds the window (small windows, long without a loss) there is none.
 */
static void htcp_measure_throughput(struct htcp *s, const struct cc_in *in,
				    u32 cwnd)
{
	u32 per_round = cc_max(s->alpha >> HTCP_SHIFT, 1);
	u32 elapsed = in->jiffies - s->last_time;
	u32 b;

	if (in->ca_state != CC_CA_OPEN && in->ca_state != CC_CA_DISORDER) {
		s->packet_count = 0;
		s->last_time = in->jiffies;
		return;
	}

	s->packet_count = cc_add_saturate(s->packet_count, in->acked);
	if (!s->min_rtt || elapsed < s->min_rtt || per_round > cwnd ||
	    s->packet_count < cwnd - per_round)
		return;

	b = cc_saturate(cc_div((u64)s->packet_count * in->hz, elapsed));
	if (cc_div(htcp_since_loss(s, in), s->min_rtt) <= HTCP_FRESH_ROUNDS) {
		s->b = s->max_b = b;
	} else {
		s->b = (u32)((3 * (u64)s->b + b) / 4);
		s->max_b = cc_max(s->max_b, s->b);
	}
	s->packet_count = 0;
	s->last_time = in->jiffies;
}

static void htcp_init(struct htcp *s, const struct cc_in *in,
		      struct cc_out *out)
{
	(void)out;
	s->alpha = HTCP_ONE;
	s->beta = HTCP_BETA_MIN;
	s->is_adaptive = 0;
	s->pkts_acked = 1;
	s->min_rtt = 0;
	s->max_rtt = 0;
	s->last_cong = in->jiffies;
	s->undo_last_cong = 0;
	s->packet_count = 0;
	s->last_time = 0;
	s->b = 0;
	s->max_b = 0;
	s->old_max_b = 0;
}

static void htcp_ssthresh(struct htcp *s, const struct cc_in *in,
			  struct cc_out *out)
{
	htcp_update_beta(s, in);
	htcp_update_alpha(s, in);
	if (s->min_rtt && s->max_rtt > s->min_rtt)
		s->max_rtt = s->min_rtt + (u32)((u64)(s->max_rtt - s->min_rtt) *
						HTCP_MAX_RTT_KEPT_PCT / 100);
	out->ret = cc_max((u32)(((u64)out->snd_cwnd * s->beta) >> HTCP_SHIFT),
			  CC_MIN_SSTHRESH);
}

static void htcp_cong_avoid(struct htcp *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		cc_slow_start(in, out, in->acked);
		return;
	}
	if (((u64)out->snd_cwnd_cnt * s->alpha) >> HTCP_SHIFT >=
	    out->snd_cwnd) {
		if (out->snd_cwnd < in->snd_cwnd_clamp)
			out->snd_cwnd++;
		out->snd_cwnd_cnt = 0;
		htcp_update_alpha(s, in);
	} else {
		out->snd_cwnd_cnt =
			cc_add_saturate(out->snd_cwnd_cnt, s->pkts_acked);
	}
	s->pkts_acked = 1;
}

static void htcp_undo_cwnd(struct htcp *s, const struct cc_in *in,
			   struct cc_out *out)
{
	if (s->undo_last_cong) {
		s->last_cong = s->undo_last_cong;
		s->undo_last_cong = 0;
	}
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* The clock of alpha starts at the loss, and anew when it is repaired. */
static void htcp_set_state(struct htcp *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)out;
	if (in->state == CC_CA_OPEN) {
		if (s->undo_last_cong) {
			s->last_cong = in->jiffies;
			s->undo_last_cong = 0;
		}
	} else if (in->state != CC_CA_DISORDER) {
		s->undo_last_cong = s->last_cong;
		s->last_cong = in->jiffies;
	}
}

static void htcp_pkts_acked(struct htcp *s, const struct cc_in *in,
			    struct cc_out *out)
{
	if (in->ca_state == CC_CA_OPEN)
		s->pkts_acked = in->acked;
	if (in->ack_rtt_us > 0)
		htcp_measure_rtt(
			s, in,
			cc_usecs_to_jiffies(cc_saturate((u64)in->ack_rtt_us),
					    in->hz));
	if (s->use_bandwidth_switch)
		htcp_measure_throughput(s, in, out->snd_cwnd);
}

/* clang-format off */
#define HTCP_OPS(OP)                                                           \
	OP(htcp, init)                                                         \
	OP(htcp, ssthresh)                                                     \
	OP(htcp, cong_avoid)                                                   \
	OP(htcp, undo_cwnd)                                                    \
	OP(htcp, set_state)                                                    \
	OP(htcp, pkts_acked)

CC_ALGORITHM(htcp, struct htcp, HTCP_PARAMS, HTCP_OPS, 0,
	.summary = "the increase is a quadratic of the time since the last loss; adaptive decrease",
	.source = "draft-leith-tcp-htcp-06; PFLDnet 2004; Linux 6.12 tcp_htcp.c",
	.use_when = "long fat paths with some buffer; Reno's equal on short ones",
	.year = 2004)
/* clang-format on */
