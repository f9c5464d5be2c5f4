/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * fuzz_ops ALGORITHM OPS - runs random op sequences on the host build. Built
 * with sanitizers, it ends at the first undefined behaviour or stray access.
 * Checks the contract: snd_cwnd >= 1, `in` untouched, the phase has a name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cc_random.h"

#define OPS_PER_SEQUENCE 500

static int model_is_told(const struct cc_algorithm *a, const void *state,
			 const struct cc_in *in)
{
	struct cc_info info;

	a->get_info(state, in, &info);
	return info.phase < a->n_phases;
}

int main(int argc, char **argv)
{
	const struct cc_algorithm *a = 0;
	u64 n_ops, done = 0, seed;
	u32 i;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_ops ALGORITHM OPS\n");
		return 2;
	}
	for (i = 0; i < cc_n_algorithms; i++)
		if (!strcmp(cc_algorithms[i]->name, argv[1]))
			a = cc_algorithms[i];
	if (!a) {
		fprintf(stderr, "fuzz_ops: no algorithm \"%s\"\n", argv[1]);
		return 2;
	}
	n_ops = strtoull(argv[2], 0, 10);

	for (seed = 1; done < n_ops; seed++) {
		struct sequence q;
		struct block b;
		/* Of exact size, so that a stray access leaves it. */
		void *state = malloc(a->state_bytes);

		begin_sequence(&q, seed, a, &b);
		memcpy(state, b.state, a->state_bytes);
		for (i = 0; i < OPS_PER_SEQUENCE; i++, done++) {
			u32 op = next_op(&q, &b, i);
			struct cc_in in = b.in;
			u32 had_window = b.out.snd_cwnd != 0;

			if (!a->ops[op])
				continue;
			a->ops[op](state, &b.in, &b.out);
			if ((had_window && !b.out.snd_cwnd) ||
			    memcmp(&in, &b.in, sizeof(in))) {
				fprintf(stderr,
					"fuzz_ops: %s: seed %llu, op %u of number %u broke the contract\n",
					a->name, seed, i, op);
				return 1;
			}
			if (a->get_info && !model_is_told(a, state, &b.in)) {
				fprintf(stderr,
					"fuzz_ops: %s: seed %llu, op %u of number %u: a phase without a name\n",
					a->name, seed, i, op);
				return 1;
			}
		}
		free(state);
	}
	printf("%s: %llu ops\n", a->name, done);
	return 0;
}
