/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Deliberately unfair: doubles its window at each loss. */
#include "cc_algorithm.h"

#define DOUBLER_PARAMS(P)

struct doubler {
	u32 unused;
};

static void doubler_ssthresh(struct doubler *s, const struct cc_in *in,
			     struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_min(2 * out->snd_cwnd, 20000u);
}

static void doubler_cong_avoid(struct doubler *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	cc_reno_cong_avoid(in, out, in->acked);
}

static void doubler_undo_cwnd(struct doubler *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* clang-format off */
#define DOUBLER_OPS(OP)                                                       \
	OP(doubler, ssthresh)                                                 \
	OP(doubler, cong_avoid)                                               \
	OP(doubler, undo_cwnd)

CC_ALGORITHM(doubler, struct doubler, DOUBLER_PARAMS, DOUBLER_OPS, 0,
	.summary = "Reno that doubles its window at a loss",
	.source = "a test of the gate",
	.use_when = "never",
	.year = 2026)
/* clang-format on */
