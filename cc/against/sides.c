/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * sides.c - both algorithms side by side. Each op runs on both, with the blocks
 * of cc.h filled from the same sender; windows, thresholds and rates are each
 * side's own.
 */
#include "against.h"

const struct cc_algorithm *against_algorithms[2];
struct decided against_decided[2];
struct sender against_sender;

const char *const against_kinds[N_KINDS] = { "snd_cwnd", "pacing_rate",
					     "snd_ssthresh", "phase" };

static u64 *states[2];
static u64 n_ops;
static struct cc_in in; /* of the op under way */
static u32 random_bits; /* of the op under way */
static u64 random_state;
static int random_is_held;
static struct parting now, partings[N_KINDS];
static int is_apart[N_KINDS];
static int has_begun; /* init() was called */

/* ---- parameters --------------------------------------------------------- */

/* The parameter that "name=value" names, and where its value begins. */
static const struct cc_param *param_of(u32 side, const char *word, u32 *place,
				       const char **value)
{
	const struct cc_algorithm *a = against_algorithms[side];
	u32 i;

	for (i = 0; i < a->n_params; i++) {
		size_t n = strlen(a->params[i].name);

		if (strncmp(word, a->params[i].name, n) || word[n] != '=')
			continue;
		*place = i;
		*value = word + n + 1;
		return &a->params[i];
	}
	return NULL;
}

/* 0 when it is no whole number of that range. */
static int read_value(const struct cc_param *p, const char *text, u32 *value)
{
	char *end;
	long long number = strtoll(text, &end, 0);

	/* A negative one is kept as its 32 bits. */
	if (number < 0 && number >= -2147483648ll && p->max == ~0u)
		number = (u32)number;
	*value = (u32)number;
	return end != text && !*end && number >= p->min && number <= p->max;
}

static int set(u32 side, const char *word)
{
	const struct cc_param *p;
	const char *text;
	u32 place, value;

	p = param_of(side, word, &place, &text);
	if (!p || !read_value(p, text, &value))
		return 0;
	((u32 *)states[side])[place] = value;
	return 1;
}

static int setting_holds(u32 side, const char *word)
{
	const struct cc_algorithm *a = against_algorithms[side];
	const struct cc_param *p;
	const char *text;
	u32 place, value, i, parts;

	p = param_of(side, word, &place, &text);
	if (!p) {
		fprintf(stderr, "knee against: %s has no parameter for %s; ",
			a->name, word);
		fprintf(stderr, a->n_params ? "expected NAME=VALUE, of"
					    : "it has none");
		for (i = 0; i < a->n_params; i++)
			fprintf(stderr, "%s %s", i ? "," : "",
				a->params[i].name);
		fprintf(stderr, ".\n");
		return 0;
	}
	if (read_value(p, text, &value))
		return 1;
	fprintf(stderr,
		"knee against: --%s %s: got \"%s\"; expected a whole number from %u to %u.",
		side ? "second" : "first", word, text, p->min, p->max);
	if (sscanf(p->unit, "1/%u", &parts) == 1)
		fprintf(stderr, " %s is counted in %s: %u for 0.5.", p->name,
			p->unit, parts / 2);
	else if (*p->unit)
		fprintf(stderr, " %s is counted in %s.", p->name, p->unit);
	fprintf(stderr, "\n");
	return 0;
}

int against_settings_hold(const struct settings *sets)
{
	u32 side;
	int i;

	for (side = 0; side < 2; side++)
		for (i = 0; i < sets->n[side]; i++)
			if (!setting_holds(side, sets->words[side][i]))
				return 0;
	return 1;
}

int against_sides_begin(const struct scenario *s, const struct settings *sets)
{
	u32 side, p;
	int i;

	memset(TP, 0, sizeof(*TP));
	memset(against_decided, 0, sizeof(against_decided));
	TP->ecn_mode = s->ecn ? CC_ECN_CLASSIC : CC_ECN_NONE;
	for (side = 0; side < 2; side++) {
		const struct cc_algorithm *a = against_algorithms[side];

		free(states[side]);
		states[side] = calloc(1, a->state_bytes + 8);
		if (!states[side])
			return 0;
		for (p = 0; p < a->n_params; p++)
			((u32 *)states[side])[p] = a->params[p].dflt;
		if (s->ecn && !set(side, "ecn=1"))
			set(side, "ecn_enable=1"); /* of Google's kernels */
		for (i = 0; i < sets->n[side]; i++)
			set(side, sets->words[side][i]);
	}
	random_state = s->seed;
	random_is_held = 0;
	against_own_cwr_reset();
	has_begun = 0;
	memset(is_apart, 0, sizeof(is_apart));
	against_under_way.scenario = s;
	return 1;
}

/* ---- when do they part? ------------------------------------------------- */

/* Empty where it tells none. */
static const char *phase_of(u32 side)
{
	const struct cc_algorithm *a = against_algorithms[side];
	struct cc_info info;

	if (!a->get_info || !a->n_phases || !has_begun)
		return "";
	memset(&info, 0, sizeof(info));
	a->get_info(states[side], &in, &info);
	return info.phase < a->n_phases ? a->phases[info.phase] : "";
}

static int differ(u32 kind, const struct decided d[2],
		  const char *const phases[2])
{
	switch (kind) {
	case CWND:
		return d[0].snd_cwnd != d[1].snd_cwnd;
	case PACING:
		return d[0].pacing_rate != d[1].pacing_rate;
	case SSTHRESH:
		return d[0].snd_ssthresh != d[1].snd_ssthresh;
	default: /* where one of them tells no phase, nothing is compared */
		return *phases[0] && *phases[1] && strcmp(phases[0], phases[1]);
	}
}

/* After an op, or before the next one: what the stack did meanwhile. */
static void look(u32 op)
{
	u32 k, side;

	now.op = op;
	now.in = in;
	for (side = 0; side < 2; side++) {
		now.before[side] = now.after[side];
		now.after[side] = against_decided[side];
		now.phases_before[side] = now.phases_after[side];
		now.phases_after[side] = phase_of(side);
	}
	for (k = 0; k < N_KINDS; k++) {
		int is = differ(k, now.after, now.phases_after);

		if (is && !is_apart[k])
			partings[k] = now;
		is_apart[k] = is;
	}
}

/* ---- what both are shown ------------------------------------------------ */

static void draw(void)
{
	random_bits = (u32)(against_next(&random_state) >> 32);
}

void against_hold_random(int hold)
{
	if (hold)
		draw();
	random_is_held = hold;
}

/* Begins an op: chance, and all of `in` that is the same for both. */
static void prepare(void)
{
	if (!random_is_held)
		draw();
	in = (struct cc_in){
		.now_us = TP->tcp_mstamp,
		.clock_ns = TP->clock_ns,
		.wstamp_ns = TP->tcp_wstamp_ns,
		.max_pacing_rate = TP->max_pacing_rate,
		.jiffies = TP->jiffies,
		.hz = HZ,
		.lsndtime = TP->lsndtime,
		.snd_cwnd_clamp = TP->snd_cwnd_clamp,
		.snd_una = TP->snd_una,
		.snd_nxt = TP->snd_nxt,
		.rcv_tsval = TP->rcv_tsval,
		.rcv_tsecr = TP->rcv_tsecr,
		.packets_out = TP->packets_out,
		.sacked_out = TP->sacked_out,
		.lost_out = TP->lost_out,
		.retrans_out = TP->retrans_out,
		.max_packets_out = TP->max_packets_out,
		.delivered = TP->delivered,
		.delivered_ce = TP->delivered_ce,
		.lost = TP->lost,
		.app_limited = TP->app_limited,
		.srtt_us = TP->srtt_us >> 3,
		.min_rtt_us = TP->min_rtt_us,
		.mss_bytes = TP->mss_cache,
		.gso_max_bytes = TP->gso_max_size,
		.reordering = TP->reordering,
		.ca_state = TP->ca_state,
		.is_cwnd_limited = TP->is_cwnd_limited,
		.random = random_bits,
		.ecn_mode = TP->ecn_mode,
	};
	if (has_begun)
		look(CC_N_OPS);
}

/* The op of one side, if it has one; its result. */
static u32 run(u32 side, u32 op)
{
	struct decided *d = &against_decided[side];
	struct cc_in shown = in;
	struct cc_out out;

	if (!against_algorithms[side]->ops[op])
		return 0;
	shown.snd_cwnd = d->snd_cwnd;
	shown.snd_cwnd_cnt = d->snd_cwnd_cnt;
	shown.snd_ssthresh = d->snd_ssthresh;
	shown.prior_cwnd = d->prior_cwnd;
	shown.pacing_rate = d->pacing_rate;
	shown.pacing_status = d->pacing_status;
	memset(&out, 0, sizeof(out));
	out.pacing_rate = d->pacing_rate;
	out.pacing_status = d->pacing_status;
	out.snd_cwnd = d->snd_cwnd;
	out.snd_cwnd_cnt = d->snd_cwnd_cnt;
	out.snd_ssthresh = d->snd_ssthresh;
	out.app_limited = in.app_limited;
	against_under_way.side = side;
	against_under_way.op = op;
	against_under_way.n = ++n_ops;
	against_algorithms[side]->ops[op](states[side], &shown, &out);
	against_under_way.n = 0;
	d->pacing_rate = out.pacing_rate;
	d->pacing_status = out.pacing_status;
	d->snd_cwnd = out.snd_cwnd;
	d->snd_cwnd_cnt = out.snd_cwnd_cnt;
	d->snd_ssthresh = out.snd_ssthresh;
	if (!side)
		TP->app_limited = out.app_limited;
	if (out.enter_cwr)
		against_own_cwr_enter(side);
	return out.ret;
}

static void both(u32 op)
{
	run(0, op);
	run(1, op);
	look(op);
}

/* ---- ops ---------------------------------------------------------------- */

void against_sides_init(void)
{
	u32 side;

	for (side = 0; side < 2; side++) {
		now.after[side] = against_decided[side];
		now.phases_after[side] = "";
	}
	/* The end that connects hears of the handshake before its init(), and
	 * the initial window is set in between. Ours find the RTT in srtt_us. */
	if (TP->srtt_us) {
		prepare();
		in.acked = 1;
		in.ack_rtt_us = TP->srtt_us >> 3;
		for (side = 0; side < 2; side++) {
			u32 cwnd = against_decided[side].snd_cwnd;

			run(side, CC_OP_pkts_acked);
			against_decided[side].snd_cwnd = cwnd;
		}
	}
	prepare();
	has_begun = 1;
	both(CC_OP_init);
}

void against_set_state(u32 new_state)
{
	if (new_state == TP->ca_state && new_state < CC_CA_LOSS)
		return;
	prepare();
	in.state = new_state;
	both(CC_OP_set_state);
	TP->ca_state = new_state;
}

void against_event(u32 event)
{
	prepare();
	in.event = event;
	both(CC_OP_cwnd_event);
}

void against_tell_event(u32 side, u32 event)
{
	in.event = event;
	run(side, CC_OP_cwnd_event);
}

u32 against_ask_ssthresh(u32 side)
{
	return run(side, CC_OP_ssthresh);
}

void against_take_ssthresh(void)
{
	u32 side, ssthresh;

	prepare();
	for (side = 0; side < 2; side++) {
		if (against_own_cwr_is_taken_over(side))
			continue;
		ssthresh = run(side, CC_OP_ssthresh);
		against_decided[side].snd_ssthresh = ssthresh;
	}
	look(CC_OP_ssthresh);
}

/* The reduction was spurious. Without a threshold to return to, nothing is
 * undone. */
void against_take_undo(void)
{
	u32 side, cwnd;

	prepare();
	for (side = 0; side < 2; side++) {
		struct decided *d = &against_decided[side];

		if (!d->prior_ssthresh)
			continue;
		cwnd = run(side, CC_OP_undo_cwnd);
		d->snd_cwnd = cwnd;
		d->snd_ssthresh = max(d->snd_ssthresh, d->prior_ssthresh);
	}
	look(CC_OP_undo_cwnd);
}

void against_marked_lost(const struct packet *packet)
{
	if (!against_algorithms[0]->ops[CC_OP_skb_marked_lost] &&
	    !against_algorithms[1]->ops[CC_OP_skb_marked_lost])
		return;
	prepare();
	in.lost_tx_in_flight = packet->in_flight;
	in.lost_tx_lost = packet->lost;
	in.lost_is_app_limited = packet->is_app_limited;
	both(CC_OP_skb_marked_lost);
}

void against_ack_event(u32 flags)
{
	prepare();
	in.ack_flags = flags;
	both(CC_OP_in_ack_event);
}

void against_pkts_acked(u32 acked, s64 rtt_us, u32 in_flight_bytes)
{
	if (!against_algorithms[0]->ops[CC_OP_pkts_acked] &&
	    !against_algorithms[1]->ops[CC_OP_pkts_acked])
		return;
	prepare();
	in.acked = acked;
	in.ack_rtt_us = rtt_us;
	in.ack_in_flight_bytes = in_flight_bytes;
	both(CC_OP_pkts_acked);
}

void against_cong_avoid(u32 acked)
{
	u32 side;

	prepare();
	in.acked = acked;
	for (side = 0; side < 2; side++)
		if (!against_own_cwr_reduces(side, acked))
			run(side, CC_OP_cong_avoid);
	look(CC_OP_cong_avoid);
}

void against_cong_control(u32 flags, const struct sample *rs)
{
	prepare();
	in.ack_flags = flags;
	in.rs_interval_us = rs->interval_us;
	in.rs_rtt_us = rs->rtt_us;
	in.rs_prior_mstamp_us = rs->prior_mstamp;
	in.rs_prior_delivered = rs->prior_delivered;
	in.rs_delivered = rs->delivered;
	in.rs_delivered_ce = rs->delivered_ce;
	in.rs_acked_sacked = rs->acked_sacked;
	in.rs_losses = rs->losses;
	in.rs_prior_in_flight = rs->prior_in_flight;
	in.rs_snd_interval_us = rs->snd_interval_us;
	in.rs_rcv_interval_us = rs->rcv_interval_us;
	in.rs_last_end_seq = rs->last_end_seq;
	in.rs_is_app_limited = rs->is_app_limited;
	in.rs_is_retrans = rs->is_retrans;
	in.rs_is_ack_delayed = rs->is_ack_delayed;
	in.rs_has_tx = 1;
	in.rs_tx_in_flight = rs->tx_in_flight;
	in.rs_lost = (u32)rs->lost;
	both(CC_OP_cong_control);
}

/* ---- are they equal? ---------------------------------------------------- */

static void note(struct difference *first, u32 kind, u64 ack)
{
	const struct decided *d = now.after;
	u32 side;

	if (first->is_set)
		return;
	first->is_set = 1;
	first->ack = ack;
	first->parting = partings[kind];
	for (side = 0; side < 2; side++) {
		first->values[side] = kind == CWND   ? d[side].snd_cwnd
				      : kind == PACING ? d[side].pacing_rate
						       : d[side].snd_ssthresh;
		first->phases[side] = now.phases_after[side];
	}
}

void against_compare(struct score *score, struct difference *first)
{
	u32 k, equal = 1;

	look(CC_N_OPS);
	score->acks++;
	for (k = 0; k < N_KINDS; k++) {
		if (!is_apart[k])
			continue;
		equal = 0;
		score->differ[k]++;
		note(&first[k], k, score->acks);
	}
	score->equal += equal;
}
