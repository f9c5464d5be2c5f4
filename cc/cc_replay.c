/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_replay ALGORITHM OBJECT SEQUENCES - runs the same random op sequences on
 * the host build and on the BPF bytecode in the kernel, and compares state, in
 * and out byte for byte after every op. Needs root. Linked with a file of a
 * user's own (CC_FILE), ALGORITHM is that one, whatever it is called.
 *
 * A sequence begins with a fresh state; what counts is how many of them were
 * run to their end. One in 64 is long enough for the memories of seconds and
 * of dozens of rounds, the others are about the first ops.
 *
 * OBJECT is build/bpf/ALGORITHM.replay.bpf.o: one run of its program runs as
 * many ops as its map has entries, each on the block of its own entry. The host
 * goes ahead; the kernel starts every op from where the host did.
 *
 * Its exit code: 0 all was equal, 1 they differ, 2 it could not be asked, 3 all
 * was equal, but too few ops changed something to prove anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cc_random.h"

#define LONG_SEQUENCE_OPS 500
#define SHORT_SEQUENCE_OPS 20
#define LONG_SEQUENCE_ONE_IN 64
#define MOST_ENTRIES 512

enum { EQUAL, DIFFER, UNASKED, IDLE }; /* exit codes */

/* What the host made of an entry, and of where it stands. */
struct result {
	struct block after;
	u64 seed;
	u32 step;
	u32 op;
};

struct machine {
	int program;
	char *entries; /* the map: each state, in, out, op */
	u32 n_entries;
	u32 entry_bytes;
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
		fprintf(stderr, "cc_replay: cannot load %s: %s\n", path,
			strerror(errno));
		return UNASKED;
	}
	program = bpf_object__find_program_by_name(object, "replay");
	map = bpf_object__find_map_by_name(object, "replay_entries");
	if (!program || !map) {
		fprintf(stderr,
			"cc_replay: %s: no program replay or map replay_entries\n",
			path);
		return UNASKED;
	}
	m->program = bpf_program__fd(program);
	m->state_bytes = (a->state_bytes + 7) & ~7u;
	value_bytes = bpf_map__value_size(map);
	expected_bytes = m->state_bytes + sizeof(struct cc_in) +
			 sizeof(struct cc_out) + sizeof(u64);
	if (value_bytes != expected_bytes) {
		fprintf(stderr,
			"cc_replay: %s: entry of %u bytes, on the host %u\n",
			path, value_bytes, expected_bytes);
		return UNASKED;
	}
	m->entry_bytes = value_bytes;
	m->n_entries = bpf_map__max_entries(map);
	if (m->n_entries > MOST_ENTRIES)
		m->n_entries = MOST_ENTRIES;
	m->entries =
		mmap(0, (size_t)m->n_entries * value_bytes,
		     PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (m->entries == MAP_FAILED) {
		fprintf(stderr, "cc_replay: cannot map the entries: %s\n",
			strerror(errno));
		return UNASKED;
	}
	return 0;
}

static int run_in_kernel(const struct machine *m, u32 n)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &n,
		    .ctx_size_in = sizeof(n));

	if (bpf_prog_test_run_opts(m->program, &opts) || opts.retval) {
		fprintf(stderr, "cc_replay: %u ops: %s, program returned %u\n",
			n, strerror(errno), opts.retval);
		return UNASKED;
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

/* Runs the first n entries in the kernel; each must give what the host did. */
static int check(const struct machine *m, const struct cc_algorithm *a,
		 const struct result *results, u32 n)
{
	u32 i;

	if (run_in_kernel(m, n))
		return UNASKED;
	for (i = 0; i < n; i++) {
		const struct result *r = &results[i];
		const char *state = m->entries + (size_t)i * m->entry_bytes;
		const char *in = state + m->state_bytes;
		const char *out = in + sizeof(r->after.in);

		if (compare("state", r->after.state, state, m->state_bytes) +
		    compare("in", &r->after.in, in, sizeof(r->after.in)) +
		    compare("out", &r->after.out, out, sizeof(r->after.out))) {
			fprintf(stderr,
				"cc_replay: %s: host and kernel differ at seed %llu, op %u of number %u\n",
				a->name, r->seed, r->step, r->op);
			return DIFFER;
		}
	}
	return 0;
}

/* Puts an op before the kernel, and runs it on the host. Returns whether it
 * changed something. */
static int prepare(const struct machine *m, const struct cc_algorithm *a,
		   struct block *b, u32 op, u32 i, struct result *r)
{
	char *entry = m->entries + (size_t)i * m->entry_bytes;
	char *in = entry + m->state_bytes;
	char *out = in + sizeof(b->in);
	u64 op_number = op;
	int changed;

	memcpy(entry, b->state, m->state_bytes);
	memcpy(in, &b->in, sizeof(b->in));
	memcpy(out, &b->out, sizeof(b->out));
	memcpy(out + sizeof(b->out), &op_number, sizeof(op_number));
	a->ops[op](b->state, &b->in, &b->out);
	changed = memcmp(entry, b->state, m->state_bytes) ||
		  memcmp(in, &b->in, sizeof(b->in)) ||
		  memcmp(out, &b->out, sizeof(b->out));
	memcpy(r->after.state, b->state, m->state_bytes);
	r->after.in = b->in;
	r->after.out = b->out;
	r->op = op;
	return changed;
}

int main(int argc, char **argv)
{
	static struct result results[MOST_ENTRIES];
	const struct cc_algorithm *a = 0;
	struct machine m;
	u64 n_sequences, done = 0, changed = 0, seed;
	u32 i, n = 0;
	int code;

	if (argc != 4) {
		fprintf(stderr,
			"usage: cc_replay ALGORITHM OBJECT SEQUENCES\n");
		return UNASKED;
	}
#ifdef CC_FILE
	a = cc_file_algorithm;
#else
	for (i = 0; i < cc_n_algorithms; i++)
		if (!strcmp(cc_algorithms[i]->name, argv[1]))
			a = cc_algorithms[i];
#endif
	if (!a) {
		fprintf(stderr, "cc_replay: no algorithm \"%s\"\n", argv[1]);
		return UNASKED;
	}
	if (open_machine(&m, a, argv[2]))
		return UNASKED;
	n_sequences = strtoull(argv[3], 0, 10);

	for (seed = 1; seed <= n_sequences; seed++) {
		struct sequence q;
		struct block b;
		u32 length;

		begin_sequence(&q, seed, a, &b);
		length = below(&q, LONG_SEQUENCE_ONE_IN)
				 ? 1 + below(&q, SHORT_SEQUENCE_OPS)
				 : LONG_SEQUENCE_OPS;
		for (i = 0; i < length; i++) {
			u32 op = next_op(&q, &b, i);

			if (!a->ops[op])
				continue;
			results[n].seed = seed;
			results[n].step = i;
			changed += prepare(&m, a, &b, op, n, &results[n]);
			done++;
			if (++n < m.n_entries)
				continue;
			code = check(&m, a, results, n);
			if (code)
				return code;
			n = 0;
		}
	}
	code = n ? check(&m, a, results, n) : EQUAL;
	if (code)
		return code;
	/* Ops that change nothing compare equal without proving anything. */
	printf("%s: %llu sequences equal, %llu ops, %llu of them changed something\n",
	       a->name, n_sequences, done, changed);
	return changed > done / 4 ? EQUAL : IDLE;
}
