/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * BIC - a binary search for the window at which the path is full.
 *
 * Somewhere between the window after a loss and W_max, the window before it,
 * lies the one the path can hold. BIC goes a quarter of the way there per
 * round trip, but 16 segments at most, so it is fast far from W_max and gentle
 * near it. Past W_max it looks for a new maximum, slowly first and then ever
 * faster, as a mirror image of the search. CUBIC is its successor: the same
 * shape, as a function of time.
 *
 * Equations (w = snd_cwnd, segments; growth in segments per round trip)
 *	w < W_max, dist = (W_max - w) / 4:
 *		16		dist > 16	additive increase
 *		dist		1 < dist	binary search
 *		4 / 20		dist <= 1	the last steps to W_max
 *	w >= W_max:
 *		4 / 20		w < W_max + 4	the first steps past W_max
 *		(w - W_max) / 3	w < W_max + 48	max probing
 *		16		above
 *	no W_max:	w / 20 at least
 *	w <= 14:	1 (Reno)
 *	loss:	ssthresh = max(0.8 w, 2), w / 2 for w <= 14
 *		W_max = 0.9 w if w < W_max (fast convergence), else w
 *
 *	W_max -      ,------'		Above the Reno range the growth is
 *	        |   /           	doubled in practice, see below.
 *	        |  /
 *	0.8 W - | /
 *
 * Source: Xu, Harfoush and Rhee, "Binary Increase Congestion Control (BIC) for
 *	Fast Long-Distance Networks", INFOCOM 2004, section III; Linux 6.12
 *	net/ipv4/tcp_bic.c for constants, clocks and ACK counting.
 *
 * Differs from source:
 *	- The paper goes half the way to W_max per round trip (S_max 32); Linux
 *	  and this file a quarter, and 16 segments at most.
 *	- The paper's beta is 0.125 of the window; Linux and this file give up
 *	  0.2.
 *	- The packets per segment of growth are divided by the mean number of
 *	  packets per ACK, from the time when growth was counted in ACKs. Since
 *	  Linux 5.7 it is counted in packets, and still divided: with delayed
 *	  ACKs the growth is twice what the equations say, in Linux and here. The
 *	  mean falls in whole sixteenths of itself, so that from its first value
 *	  of 2 it never comes below 31/16 by ACKs of one packet: the growth is
 *	  twice the equations' with those too.
 *	- The slope is looked at when the window changed or HZ/32 jiffies have
 *	  passed, as in Linux.
 *	- Products that leave 32 bits in Linux (windows above 5 million) do not
 *	  here. The global initial_ssthresh is a matter of the scenario.
 */
#include "cc_algorithm.h"

#define BIC_BETA_SCALE 1024u
/* Part of the way to W_max that one round trip goes: 1/4 (Linux). */
#define BIC_B 4u
/* Slope without a W_max to aim at: at least 5 % per round trip (Linux). */
#define BIC_MAX_CNT_NO_W_MAX 20u
/* Packets per ACK in units of 1/16: also the weight of one sample. */
#define BIC_ACK_RATIO_SHIFT 4
/* Where the estimate starts: every second packet is acked. */
#define BIC_ACK_RATIO_FIRST (2u << BIC_ACK_RATIO_SHIFT)

/* clang-format off */
#define BIC_PARAMS(P)                                                          \
	P(beta, 819, 512, 1023, "1/1024",                                      \
	  "window kept at a loss; 0.8 (Linux)")                                \
	P(max_increment, 16, 1, 65535, "segments",                             \
	  "S_max, the most to grow per round trip (Linux; INFOCOM 2004: 32)")  \
	P(low_window, 14, 0, 65535, "segments",                                \
	  "up to this window it is Reno; INFOCOM 2004: 14")                    \
	P(smooth_part, 20, 1, 65535, "rounds",                                 \
	  "from W_max - 4 to W_max, from W_max to W_max + 4 (Linux)")          \
	P(fast_convergence, 1, 0, 1, "",                                       \
	  "release room to new flows by a lower W_max; INFOCOM 2004")
/* clang-format on */

struct bic {
	CC_PARAM_FIELDS(BIC_PARAMS)

	u32 cnt;	  /* acked packets per segment of growth */
	u32 w_max;	  /* window before the last loss, segments; 0: none */
	u32 last_cwnd;	  /* snd_cwnd of the last update, segments */
	u32 last_time;	  /* time of the last update, jiffies */
	u32 ack_ratio_q4; /* mean packets per ACK, 1/16 */
};

static void bic_reset(struct bic *s)
{
	s->cnt = 0;
	s->w_max = 0;
	s->last_cwnd = 0;
	s->last_time = 0;
	s->ack_ratio_q4 = BIC_ACK_RATIO_FIRST;
}

/* Packets per segment of growth for `n` / `d` segments per round trip. */
static u32 bic_cnt_of(u32 cwnd, u32 n, u32 d)
{
	return cc_saturate(cc_div((u64)cwnd * d, n));
}

static u32 bic_search_cnt(const struct bic *s, u32 cwnd)
{
	u32 dist;

	if (cwnd < s->w_max) {
		dist = (s->w_max - cwnd) / BIC_B;
		if (dist > s->max_increment)
			return bic_cnt_of(cwnd, s->max_increment, 1);
		if (dist <= 1)
			return bic_cnt_of(cwnd, BIC_B, s->smooth_part);
		return bic_cnt_of(cwnd, dist, 1);
	}
	dist = cwnd - s->w_max;
	if (dist < BIC_B)
		return bic_cnt_of(cwnd, BIC_B, s->smooth_part);
	if (dist < s->max_increment * (BIC_B - 1))
		return bic_cnt_of(cwnd, dist, BIC_B - 1);
	return bic_cnt_of(cwnd, s->max_increment, 1);
}

static void bic_update(struct bic *s, const struct cc_in *in, u32 cwnd)
{
	s32 since = (s32)(in->jiffies - s->last_time);
	u64 cnt;

	if (s->last_cwnd == cwnd && since <= (s32)(in->hz / 32))
		return;
	s->last_cwnd = cwnd;
	s->last_time = in->jiffies;

	if (cwnd <= s->low_window) {
		s->cnt = cwnd;
		return;
	}
	cnt = bic_search_cnt(s, cwnd);
	if (!s->w_max)
		cnt = cc_min64(cnt, BIC_MAX_CNT_NO_W_MAX);
	cnt = cc_div(cnt << BIC_ACK_RATIO_SHIFT, s->ack_ratio_q4);
	s->cnt = cc_max(cc_saturate(cnt), 1);
}

static void bic_init(struct bic *s, const struct cc_in *in, struct cc_out *out)
{
	(void)in;
	(void)out;
	bic_reset(s);
}

static void bic_ssthresh(struct bic *s, const struct cc_in *in,
			 struct cc_out *out)
{
	u64 cwnd = out->snd_cwnd;
	u64 kept = cwnd * s->beta / BIC_BETA_SCALE;

	(void)in;
	/* Lost below the last W_max: likely a new flow, leave it some room. */
	if (s->fast_convergence && cwnd < s->w_max)
		s->w_max = (u32)(cwnd * (BIC_BETA_SCALE + s->beta) /
				 (2 * BIC_BETA_SCALE));
	else
		s->w_max = (u32)cwnd;
	if (cwnd <= s->low_window)
		kept = cwnd / 2;
	out->ret = cc_max((u32)kept, CC_MIN_SSTHRESH);
}

static void bic_cong_avoid(struct bic *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u32 acked = in->acked;

	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	bic_update(s, in, out->snd_cwnd);
	cc_cong_avoid_ai(in, out, s->cnt, acked);
}

static void bic_undo_cwnd(struct bic *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void bic_set_state(struct bic *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)out;
	if (in->state == CC_CA_LOSS)
		bic_reset(s);
}

static void bic_pkts_acked(struct bic *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)out;
	if (in->ca_state != CC_CA_OPEN)
		return;
	s->ack_ratio_q4 -= s->ack_ratio_q4 >> BIC_ACK_RATIO_SHIFT;
	s->ack_ratio_q4 = cc_add_saturate(s->ack_ratio_q4, in->acked);
}

/* clang-format off */
#define BIC_OPS(OP)                                                            \
	OP(bic, init)                                                          \
	OP(bic, ssthresh)                                                      \
	OP(bic, cong_avoid)                                                    \
	OP(bic, undo_cwnd)                                                     \
	OP(bic, set_state)                                                     \
	OP(bic, pkts_acked)

CC_ALGORITHM(bic, struct bic, BIC_PARAMS, BIC_OPS, 0,
	.summary = "a binary search for the window at which the path is full",
	.source = "Xu, Harfoush, Rhee, INFOCOM 2004; Linux 6.12 tcp_bic.c",
	.use_when = "long fat paths; the Linux default from 2.6.8 to 2.6.18, before CUBIC",
	.year = 2004)
/* clang-format on */
