/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * HighSpeed TCP - Reno with an increase and a decrease that depend on the
 * window.
 *
 * Up to 38 segments it is Reno. Above, the response function is a straight
 * line in log-log scale from (loss 1e-3, window 38) to (1e-7, 83,000): the
 * larger the window, the more it adds per round trip and the less it gives up
 * at a loss. A loss rate of 1e-7, which a good 10 Gbit/s path of 100 ms can
 * keep, then is enough to fill it; Reno would need 2e-10.
 *
 * Equations (w = snd_cwnd, segments; w_l = 38, w_h = 83000)
 *	growth	a(w) segments per round trip
 *	loss	ssthresh = max(w - b(w) w, 2)
 *	p(w) = 0.078 / w^1.2		the loss rate at which the mean is w
 *	b(w) = 0.5 - 0.4 (ln w - ln w_l) / (ln w_h - ln w_l)
 *	a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
 *	mean window, loss rate p:	w = 0.12 / p^0.835
 *
 * Source: RFC 3649 section 5 (equations) and appendix B (the table and the
 *	program that makes it); Linux 6.12 net/ipv4/tcp_highspeed.c.
 *
 * Differs from source:
 *	- The RFC's table is for w from its row on; in Linux and here a row is
 *	  the last w of its increase, so a(w) is one larger between two rows.
 *	- RFC 3649 adds a(w) / w per ACK, taking one ACK per segment. Linux and
 *	  this file do so too, per ACK event: stretched and delayed ACKs slow
 *	  the growth as much as they are stretched. What slow start leaves of an
 *	  ACK is dropped.
 *	- The RFC's last row, 94717 segments, is missing in Linux and here.
 *	- The row used at a loss is the one of the last growth in avoidance, as
 *	  in Linux: at a loss in the first slow start it is the first, half.
 *	- Linux limits snd_cwnd to 2^25, so that its product with b fits 32 bits;
 *	  ours is of 64.
 */
#include "cc_algorithm.h"

/* b(w) is in units of 1/256. */
#define HIGHSPEED_B_SHIFT 8

struct highspeed_row {
	u32 cwnd; /* largest window of the row, segments */
	u32 b;	  /* decrease, 1/256 of the window */
};

/*
 * RFC 3649 appendix B. Row i has a(w) = i + 1. The first is w = 38; the next
 * is at the first w whose a(w) exceeds that of the row before by more than 1
 * (the unrounded a(w); 1 at w = 38), with p(w) w^1.2 = 1 / 12.8, as the RFC's
 * program has it. b is 256 b(w), rounded down. crates/cc/tests/highspeed.rs
 * computes every row.
 */
/* clang-format off */
static const struct highspeed_row highspeed_rows[] = {
	{    38, 128 }, {   118, 112 }, {   221, 104 }, {   347,  98 },
	{   495,  93 }, {   663,  89 }, {   851,  86 }, {  1058,  83 },
	{  1284,  81 }, {  1529,  78 }, {  1793,  76 }, {  2076,  74 },
	{  2378,  72 }, {  2699,  71 }, {  3039,  69 }, {  3399,  68 },
	{  3778,  66 }, {  4177,  65 }, {  4596,  64 }, {  5036,  62 },
	{  5497,  61 }, {  5979,  60 }, {  6483,  59 }, {  7009,  58 },
	{  7558,  57 }, {  8130,  56 }, {  8726,  55 }, {  9346,  54 },
	{  9991,  53 }, { 10661,  52 }, { 11358,  52 }, { 12082,  51 },
	{ 12834,  50 }, { 13614,  49 }, { 14424,  48 }, { 15265,  48 },
	{ 16137,  47 }, { 17042,  46 }, { 17981,  45 }, { 18955,  45 },
	{ 19965,  44 }, { 21013,  43 }, { 22101,  43 }, { 23230,  42 },
	{ 24402,  41 }, { 25618,  41 }, { 26881,  40 }, { 28193,  39 },
	{ 29557,  39 }, { 30975,  38 }, { 32450,  38 }, { 33986,  37 },
	{ 35586,  36 }, { 37253,  36 }, { 38992,  35 }, { 40808,  35 },
	{ 42707,  34 }, { 44694,  33 }, { 46776,  33 }, { 48961,  32 },
	{ 51258,  32 }, { 53677,  31 }, { 56230,  30 }, { 58932,  30 },
	{ 61799,  29 }, { 64851,  28 }, { 68113,  28 }, { 71617,  27 },
	{ 75401,  26 }, { 79517,  26 }, { 84035,  25 }, { 89053,  24 },
};
/* clang-format on */

#define HIGHSPEED_ROWS (sizeof(highspeed_rows) / sizeof(highspeed_rows[0]))
/* First step of a search by halves: the power of two at or above half. */
#define HIGHSPEED_FIRST_STEP 64u

#define HIGHSPEED_PARAMS(P)

struct highspeed {
	CC_PARAM_FIELDS(HIGHSPEED_PARAMS)
	u32 row; /* of the last growth in avoidance */
};

/* The first row that reaches to cwnd, or the last of all. */
static u32 highspeed_find_row(u32 cwnd)
{
	u32 row = 0, step;

	for (step = HIGHSPEED_FIRST_STEP; step; step /= 2) {
		u32 next = row + step;

		if (next < HIGHSPEED_ROWS &&
		    cwnd > highspeed_rows[next - 1].cwnd)
			row = next;
	}
	return row;
}

static void highspeed_init(struct highspeed *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)in;
	(void)out;
	s->row = 0;
}

static void highspeed_ssthresh(struct highspeed *s, const struct cc_in *in,
			       struct cc_out *out)
{
	u32 row = cc_min(s->row, HIGHSPEED_ROWS - 1);
	u64 cwnd = out->snd_cwnd;
	u64 cut = (cwnd * highspeed_rows[row].b) >> HIGHSPEED_B_SHIFT;

	(void)in;
	out->ret = cc_max((u32)(cwnd - cut), CC_MIN_SSTHRESH);
}

static void highspeed_cong_avoid(struct highspeed *s, const struct cc_in *in,
				 struct cc_out *out)
{
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		cc_slow_start(in, out, in->acked);
		return;
	}
	s->row = highspeed_find_row(out->snd_cwnd);
	if (out->snd_cwnd >= in->snd_cwnd_clamp)
		return;
	out->snd_cwnd_cnt = cc_add_saturate(out->snd_cwnd_cnt, s->row + 1);
	if (out->snd_cwnd_cnt >= out->snd_cwnd) {
		out->snd_cwnd_cnt -= out->snd_cwnd;
		out->snd_cwnd++;
	}
}

static void highspeed_undo_cwnd(struct highspeed *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* clang-format off */
#define HIGHSPEED_OPS(OP)                                                      \
	OP(highspeed, init)                                                    \
	OP(highspeed, ssthresh)                                                \
	OP(highspeed, cong_avoid)                                              \
	OP(highspeed, undo_cwnd)

CC_ALGORITHM(highspeed, struct highspeed, HIGHSPEED_PARAMS, HIGHSPEED_OPS, 0,
	.summary = "Reno with an increase and a decrease that depend on the window",
	.source = "RFC 3649; Linux 6.12 tcp_highspeed.c",
	.use_when = "long fat paths of very low loss; Reno's equal below 38 segments",
	.year = 2003)
/* clang-format on */
