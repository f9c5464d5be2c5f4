/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_prototype.h - an algorithm whose ops another process runs, as a prototype
 * in Python (tcpknee/algorithms/prototype.py, which writes the file that
 * includes this, and speaks the other end of the pipes).
 *
 * CC_PROTOTYPE_PLACE is the environment variable with the two descriptors. An
 * answer that does not come is the prototype's end, and a trap here.
 */
#ifndef KNEE_CC_PROTOTYPE_H
#define KNEE_CC_PROTOTYPE_H

#define CC_OF_PROCESS __attribute__((weak, visibility("default")))
CC_OF_PROCESS char *getenv(const char *name);
CC_OF_PROCESS long write(int file, const void *what, __SIZE_TYPE__ n);
CC_OF_PROCESS long read(int file, void *what, __SIZE_TYPE__ n);

#define CC_PROTOTYPE_PARAMS 64

struct cc_question {
	u32 op, in_bytes, out_bytes, n_params;
	u64 connection; /* 0: a new one */
	u32 params[CC_PROTOTYPE_PARAMS];
	struct cc_in in;
	struct cc_out out;
};

struct cc_answer {
	u64 connection;
	struct cc_out out;
};

static void cc_ask(u32 op, const u32 *params, u32 n_params, u64 *connection,
		   const struct cc_in *in, struct cc_out *out)
{
	static int ends[2] = { -1, -1 };
	struct cc_question question = {
		.op = op,
		.in_bytes = sizeof(*in),
		.out_bytes = sizeof(*out),
		.n_params = n_params,
		.connection = *connection,
		.in = *in,
		.out = *out,
	};
	struct cc_answer answer;
	const char *at = getenv(CC_PROTOTYPE_PLACE);
	u32 i;

	for (i = 0; ends[1] < 0 && i < 2 && at; i++) {
		ends[i] = 0;
		while (*at >= '0' && *at <= '9')
			ends[i] = ends[i] * 10 + (*at++ - '0');
		at += *at == ' ';
	}
	for (i = 0; i < n_params; i++)
		question.params[i] = params[i];
	/* Both are short enough for a pipe to take them whole. */
	if (ends[1] < 0 ||
	    write(ends[0], &question, sizeof(question)) !=
		    (long)sizeof(question) ||
	    read(ends[1], &answer, sizeof(answer)) != (long)sizeof(answer))
		__builtin_trap();
	*connection = answer.connection;
	*out = answer.out;
}

#endif
