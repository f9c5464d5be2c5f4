/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Deliberately unfair: grows as Reno does, and keeps its window at each loss. */
#include "cc_algorithm.h"

#define STUBBORN_PARAMS(P)

struct stubborn {
	u32 unused;
};

static void stubborn_ssthresh(struct stubborn *s, const struct cc_in *in,
			      struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_max(out->snd_cwnd, CC_MIN_SSTHRESH);
}

static void stubborn_cong_avoid(struct stubborn *s, const struct cc_in *in,
				struct cc_out *out)
{
	(void)s;
	cc_reno_cong_avoid(in, out, in->acked);
}

static void stubborn_undo_cwnd(struct stubborn *s, const struct cc_in *in,
			       struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

/* clang-format off */
#define STUBBORN_OPS(OP)                                                       \
	OP(stubborn, ssthresh)                                                 \
	OP(stubborn, cong_avoid)                                               \
	OP(stubborn, undo_cwnd)

CC_ALGORITHM(stubborn, struct stubborn, STUBBORN_PARAMS, STUBBORN_OPS, 0,
	.summary = "Reno that keeps its window at a loss",
	.source = "a test of the gate",
	.use_when = "never",
	.year = 2026)
/* clang-format on */
