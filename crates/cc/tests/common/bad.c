/* An algorithm that does what no algorithm may, by its parameter `how`. */
#include "cc_algorithm.h"

#define BAD_PARAMS(P) P(how, 0, 0, 9, "", "what it does")
struct bad {
	CC_PARAM_FIELDS(BAD_PARAMS)
	u32 filler[3];
};

static void bad_ssthresh(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	volatile u32 *words = (volatile u32 *)s;

	if (s->how == 1)
		words[4] = 7;
	if (s->how == 2)
		words[-1] = 7;
	if (s->how == 3)
		*(volatile u32 *)&in->snd_una = 7;
	if (s->how == 4)
		*(volatile u32 *)(out + 1) = 7;
	if (s->how == 5)
		out->snd_cwnd = 0;
	out->ret = 9;
}

static void bad_undo_cwnd(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = 10;
}

static void bad_cong_avoid(struct bad *s, const struct cc_in *in, struct cc_out *out)
{
	(void)s;
	(void)in;
	out->snd_cwnd++;
}

static void bad_get_info(const struct bad *s, const struct cc_in *in, struct cc_info *info)
{
	volatile u32 *words = (volatile u32 *)s;

	if (s->how == 6)
		words[2] = 7; /* of its own state, which is as good as const */
	if (s->how == 7)
		*(volatile u32 *)&in->snd_una = 7;
	if (s->how == 8)
		*(volatile u32 *)(info + 1) = 7;
	if (s->how == 9)
		words[-1] = 7;
	info->bw = 5;
}

#define BAD_OPS(OP) OP(bad, ssthresh) OP(bad, cong_avoid) OP(bad, undo_cwnd)
CC_GET_INFO(bad, struct bad, "only")
CC_ALGORITHM(bad, struct bad, BAD_PARAMS, BAD_OPS, 0, .summary = "bad", .source = "none", .use_when = "never",
	     .year = 2026, CC_HAS_INFO(bad))
