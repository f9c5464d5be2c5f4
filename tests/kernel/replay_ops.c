/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * replay_ops ALGORITHM OBJECT OPS - runs the same random op sequences on the
 * host build and on the BPF bytecode in the kernel, and compares state, in and
 * out byte for byte after every op. Needs root.
 *
 * OBJECT is build/bpf/ALGORITHM.replay.bpf.o: its program runs one op on the
 * block that lies in its one map, which is mapped into this process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "random_ops.h"

#define OPS_PER_SEQUENCE 500

struct machine {
	int program;
	void *block;	 /* the map's value: state, in, out */
	u32 state_bytes; /* up to `in`: the state and its padding */
};

static int open_machine(struct machine *m, const struct cc_algorithm *a,
			const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, 0);
	struct bpf_program *program;
	struct bpf_map *map;
	u32 value_bytes, expected_bytes;

	if (libbpf_get_error(object) || bpf_object__load(object)) {
		fprintf(stderr, "replay_ops: cannot load %s: %s\n", path,
			strerror(errno));
		return 1;
	}
	program = bpf_object__find_program_by_name(object, "replay");
	map = bpf_object__find_map_by_name(object, "replay_block");
	if (!program || !map) {
		fprintf(stderr,
			"replay_ops: %s: no program replay or map replay_block\n",
			path);
		return 1;
	}
	m->program = bpf_program__fd(program);
	m->state_bytes = (a->state_bytes + 7) & ~7u;
	value_bytes = bpf_map__value_size(map);
	expected_bytes =
		m->state_bytes + sizeof(struct cc_in) + sizeof(struct cc_out);
	if (value_bytes != expected_bytes) {
		fprintf(stderr,
			"replay_ops: %s: block of %u bytes, on the host %u\n",
			path, value_bytes, expected_bytes);
		return 1;
	}
	m->block = mmap(0, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			MAP_SHARED, bpf_map__fd(map), 0);
	if (m->block == MAP_FAILED) {
		fprintf(stderr, "replay_ops: cannot map the block: %s\n",
			strerror(errno));
		return 1;
	}
	return 0;
}

static int run_in_kernel(const struct machine *m, u32 op)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &op,
		    .ctx_size_in = sizeof(op));

	if (bpf_prog_test_run_opts(m->program, &opts) || opts.retval) {
		fprintf(stderr, "replay_ops: op %u: %s, program returned %u\n",
			op, strerror(errno), opts.retval);
		return 1;
	}
	return 0;
}

/* Names the first word that differs, so that the report can be acted on. */
static u32 compare(const char *part, const void *host, const void *kernel,
		   u32 bytes)
{
	const u32 *h = host, *k = kernel;
	u32 i;

	for (i = 0; i < bytes / 4; i++) {
		if (h[i] == k[i])
			continue;
		fprintf(stderr, "%s + %u bytes: host 0x%x, kernel 0x%x\n", part,
			i * 4, h[i], k[i]);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct cc_algorithm *a = 0;
	struct machine m;
	u64 n_ops, done = 0, changed = 0, seed;
	u32 i;

	if (argc != 4) {
		fprintf(stderr, "usage: replay_ops ALGORITHM OBJECT OPS\n");
		return 2;
	}
	for (i = 0; i < cc_n_algorithms; i++)
		if (!strcmp(cc_algorithms[i]->name, argv[1]))
			a = cc_algorithms[i];
	if (!a) {
		fprintf(stderr, "replay_ops: no algorithm \"%s\"\n", argv[1]);
		return 2;
	}
	if (open_machine(&m, a, argv[2]))
		return 1;
	n_ops = strtoull(argv[3], 0, 10);

	for (seed = 1; done < n_ops; seed++) {
		struct sequence q;
		struct block b;

		begin_sequence(&q, seed, a, &b);
		for (i = 0; i < OPS_PER_SEQUENCE; i++) {
			u32 op = next_op(&q, &b, i);
			struct block before = b;
			char *kernel = m.block;

			if (!a->ops[op])
				continue;
			memcpy(kernel, b.state, m.state_bytes);
			memcpy(kernel + m.state_bytes, &b.in, sizeof(b.in));
			memcpy(kernel + m.state_bytes + sizeof(b.in), &b.out,
			       sizeof(b.out));
			if (run_in_kernel(&m, op))
				return 1;
			a->ops[op](b.state, &b.in, &b.out);
			if (compare("state", b.state, kernel, m.state_bytes) +
			    compare("in", &b.in, kernel + m.state_bytes,
				    sizeof(b.in)) +
			    compare("out", &b.out,
				    kernel + m.state_bytes + sizeof(b.in),
				    sizeof(b.out))) {
				fprintf(stderr,
					"replay_ops: %s: host and kernel differ at seed %llu, op %u of number %u\n",
					a->name, seed, i, op);
				return 1;
			}
			changed += memcmp(&before, &b, sizeof(b)) != 0;
			done++;
		}
	}
	/* Ops that change nothing compare equal without proving anything. */
	printf("%s: %llu ops equal, %llu of them changed something\n", a->name,
	       done, changed);
	return changed > done / 4 ? 0 : 1;
}
