/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * against [--random N] [--seed S] [--class TEXT] [--only SEED]
 *	   [--first NAME=VALUE]... [--second NAME=VALUE]... FIRST.so SECOND.so
 *
 * Runs two algorithms, each a shared object of cc_file.h, through every class
 * and N random scenarios; prints the share of ACKs after which both had decided
 * the same, and the first difference of each kind. Exit code 0: none, 1: some,
 * 2: cannot run.
 */
#include <dlfcn.h>

#include "against.h"

static struct settings sets;
static struct difference first[N_KINDS];
static const char *const names[2] = { "first", "second" };

static void print_share(const char *name, const struct score *score)
{
	u32 k;

	printf("%-42s %9llu %9.4f %%", name, score->acks,
	       score->acks ? 100.0 * (double)score->equal / (double)score->acks
			   : 100.0);
	for (k = 0; k < N_KINDS; k++)
		printf(" %10llu", score->differ[k]);
	printf("\n");
}

static void print_scenario(const struct scenario *s)
{
	printf("    path: %llu bit/s, RTT %u us, buffer %u %% of the BDP and %u packets, loss %u ppm in runs of %u\n",
	       s->rate, s->rtt_us, s->buffer_pct, s->buffer_packets,
	       s->loss_ppm, s->loss_run ? s->loss_run : 1);
	printf("    ecn %u, marks at %u %%, jitter %u us, ACKs per %u us, application on %u off %u ms, %u segments, %llu bit/s, TLP %u, local CWR %u ms\n",
	       s->ecn, s->mark_pct, s->jitter_us, s->ack_us, s->app_on_ms,
	       s->app_off_ms, s->app_segments, s->app_rate, s->tlp,
	       s->local_cwr_ms);
}

static void print_u64(const char *name, u64 before, u64 after)
{
	printf(before == after ? "%s %llu" : "%s %llu -> %llu", name, before,
	       after);
}

static void print_side(const struct parting *p, u32 side)
{
	const struct decided *b = &p->before[side], *a = &p->after[side];

	printf("    %-6s ", names[side]);
	print_u64("snd_cwnd", b->snd_cwnd, a->snd_cwnd);
	print_u64(", snd_cwnd_cnt", b->snd_cwnd_cnt, a->snd_cwnd_cnt);
	print_u64(", snd_ssthresh", b->snd_ssthresh, a->snd_ssthresh);
	print_u64(", pacing_rate", b->pacing_rate, a->pacing_rate);
	if (*p->phases_after[side])
		printf(", phase ");
	if (*p->phases_before[side] &&
	    strcmp(p->phases_before[side], p->phases_after[side]))
		printf("%s -> ", p->phases_before[side]);
	printf("%s\n", p->phases_after[side]);
}

/* What that op alone is shown. */
static void print_shown(u32 op, const struct cc_in *i)
{
	switch (op) {
	case CC_OP_cong_avoid:
		printf("acked %u", i->acked);
		break;
	case CC_OP_pkts_acked:
		printf("acked %u, rtt %lld us, in flight %u bytes", i->acked,
		       (long long)i->ack_rtt_us, i->ack_in_flight_bytes);
		break;
	case CC_OP_cong_control:
		printf("delivered %d (CE %d) in %lld us from %u, rtt %lld us, acked %u, losses %u, in flight before %u, when sent %u, lost since %u, app-limited %u",
		       i->rs_delivered, i->rs_delivered_ce,
		       (long long)i->rs_interval_us, i->rs_prior_delivered,
		       (long long)i->rs_rtt_us, i->rs_acked_sacked,
		       i->rs_losses, i->rs_prior_in_flight, i->rs_tx_in_flight,
		       i->rs_lost, i->rs_is_app_limited);
		break;
	case CC_OP_set_state:
		printf("state %u", i->state);
		break;
	case CC_OP_cwnd_event:
		printf("event %u", i->event);
		break;
	case CC_OP_in_ack_event:
		printf("flags %u", i->ack_flags);
		break;
	case CC_OP_skb_marked_lost:
		printf("in flight when sent %u, lost until then %u, app-limited %u",
		       i->lost_tx_in_flight, i->lost_tx_lost,
		       i->lost_is_app_limited);
		break;
	default:
		break;
	}
}

static void print_difference(u32 k)
{
	const struct difference *d = &first[k];
	const struct parting *p = &d->parting;
	const struct cc_in *i = &p->in;

	if (!d->is_set)
		return;
	printf("\nfirst difference of %s: \"%s\", seed %llu, ACK %llu: ",
	       against_kinds[k], d->scenario.name, d->scenario.seed, d->ack);
	if (k == PHASE)
		printf("%s %s, %s %s\n", names[0], d->phases[0], names[1],
		       d->phases[1]);
	else
		printf("%s %llu, %s %llu\n", names[0], d->values[0], names[1],
		       d->values[1]);
	print_scenario(&d->scenario);
	if (p->op == CC_N_OPS) {
		printf("    in no op: what the stack made of the windows");
	} else {
		printf("    in %s(", against_ops[p->op]);
		print_shown(p->op, i);
		printf(")");
	}
	printf("\n    now %llu us, delivered %u, lost %u, state %u, packets out %u, sacked %u, lost out %u, retransmitted %u, app_limited %u, cwnd-limited %u, srtt %u us, min_rtt %u us\n",
	       i->now_us, i->delivered, i->lost, i->ca_state, i->packets_out,
	       i->sacked_out, i->lost_out, i->retrans_out, i->app_limited,
	       i->is_cwnd_limited, i->srtt_us, i->min_rtt_us);
	print_side(p, 0);
	print_side(p, 1);
}

static void add(struct score *sum, const struct score *one)
{
	u32 k;

	sum->acks += one->acks;
	sum->equal += one->equal;
	for (k = 0; k < N_KINDS; k++)
		sum->differ[k] += one->differ[k];
}

static int run_one(const struct scenario *s, struct score *score)
{
	memset(score, 0, sizeof(*score));
	if (!against_sides_begin(s, &sets))
		return 0;
	against_run(s, score, first);
	return 1;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: against [--random N] [--seed S] [--class TEXT] [--only SEED] [--first NAME=VALUE] [--second NAME=VALUE] FIRST.so SECOND.so\n");
	return 2;
}

static const struct cc_algorithm *load(const char *file)
{
	void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const struct cc_algorithm *const *algorithm =
		object ? dlsym(object, "cc_file_algorithm") : NULL;
	const u32 *abi = object ? dlsym(object, "cc_file_abi") : NULL;

	if (algorithm && *algorithm && abi && *abi == CC_ABI)
		return *algorithm;
	fprintf(stderr, "knee against: %s is no algorithm of this cc.h\n",
		file);
	return NULL;
}

static int take(u32 side, const char *word)
{
	if (sets.n[side] == 16)
		return 0;
	sets.words[side][sets.n[side]++] = word;
	return 1;
}

/* Says on stderr which there are where none has that text in its name. */
static int has_class(const char *text)
{
	u32 c;

	for (c = 0; c < against_n_classes; c++)
		if (strstr(against_classes[c].name, text))
			return 1;
	fprintf(stderr,
		"knee against: --class: got \"%s\", which is in no class's name; expected a part of one of",
		text);
	for (c = 0; c < against_n_classes; c++)
		fprintf(stderr, "%s \"%s\"", c ? "," : "",
			against_classes[c].name);
	fprintf(stderr, ".\n");
	return 0;
}

int main(int argc, char **argv)
{
	u64 n_random = 0, seed = 1, only = 0, i, unequal = 0, ran = 0;
	const char *class = NULL;
	struct score all = { 0 }, random = { 0 }, one;
	u32 c, k;
	int a;

	for (a = 1; a + 2 < argc; a += 2) {
		const char *value = argv[a + 1];

		if (!strcmp(argv[a], "--random"))
			n_random = strtoull(value, NULL, 10);
		else if (!strcmp(argv[a], "--seed"))
			seed = strtoull(value, NULL, 10);
		else if (!strcmp(argv[a], "--only"))
			only = strtoull(value, NULL, 10);
		else if (!strcmp(argv[a], "--class"))
			class = value;
		else if (!strcmp(argv[a], "--first") && take(0, value))
			continue;
		else if (!strcmp(argv[a], "--second") && take(1, value))
			continue;
		else
			return usage();
	}
	if (a + 2 != argc)
		return usage();
	if (only)
		n_random = 1;
	if (class && !has_class(class))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0); /* a line as soon as it is known */
	for (k = 0; k < 2; k++) {
		against_algorithms[k] = load(argv[a + (int)k]);
		if (!against_algorithms[k])
			return 2;
	}
	if (!against_algorithms[0]->ops[CC_OP_cong_control] !=
	    !against_algorithms[1]->ops[CC_OP_cong_control]) {
		fprintf(stderr,
			"knee against: only one of %s and %s has cong_control(), so they do not decide at the same ops; expected two of one kind. `knee compare` runs both.\n",
			against_algorithms[0]->name,
			against_algorithms[1]->name);
		return 2;
	}
	if (!against_settings_hold(&sets))
		return 2;
	against_watch();
	printf("%s against %s\n", against_algorithms[0]->name,
	       against_algorithms[1]->name);
	printf("%-42s %9s %11s %10s %10s %10s %10s\n", "", "ACKs", "all equal",
	       "cwnd", "pacing", "ssthresh", "phase");
	for (c = 0; c < against_n_classes && !only; c++) {
		struct scenario s = against_classes[c];

		if (class && !strstr(s.name, class))
			continue;
		s.seed = seed;
		if (!run_one(&s, &one))
			return 2;
		print_share(s.name, &one);
		add(&all, &one);
		ran++;
	}
	for (i = 0; i < n_random; i++) {
		struct scenario s;

		against_draw(&s, only ? only : seed * 1000000 + i);
		if (!run_one(&s, &one))
			return 2;
		add(&random, &one);
		unequal += one.equal != one.acks;
	}
	if (i) {
		print_share("random scenarios", &random);
		printf("  %llu of %llu random scenarios with a difference\n",
		       unequal, i);
	}
	add(&all, &random);
	print_share("all", &all);
	for (k = 0; k < N_KINDS; k++)
		print_difference(k);
	if (!all.acks) {
		fprintf(stderr,
			"knee against: no ACK was compared; expected a class or drawn scenarios. Leave out `--random 0`, or name another class.\n");
		return 2;
	}
	return all.equal != all.acks;
}
