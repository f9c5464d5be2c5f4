/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Deliberately unfair: a window of 4,000 segments, whatever happens. */
#include "cc_algorithm.h"

#define BRICK_PARAMS(P)

struct brick {
	u32 unused;
};

static void brick_ssthresh(struct brick *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 4000;
}

static void brick_cong_avoid(struct brick *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)s;
	(void)in;
	out->snd_cwnd = 4000;
}

static void brick_undo_cwnd(struct brick *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 4000;
}

/* clang-format off */
#define BRICK_OPS(OP)                                                       \
	OP(brick, ssthresh)                                                 \
	OP(brick, cong_avoid)                                               \
	OP(brick, undo_cwnd)

CC_ALGORITHM(brick, struct brick, BRICK_PARAMS, BRICK_OPS, 0,
	.summary = "a window of 4,000 segments",
	.source = "a test of the gate",
	.use_when = "never",
	.year = 2026)
/* clang-format on */
