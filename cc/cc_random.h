/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_random.h - random sequences of ops over the contract of cc.h, for the
 * programs that run them (fuzz_ops.c of the tests on the host, cc_replay.c on
 * host and kernel).
 *
 * Two kinds of sequence alternate. A lively one evolves a connection (time
 * passes, packets are delivered and lost) so that an algorithm gets into its
 * deeper states; a wild one takes every word of `in` and `out` at random with
 * a liking for the edges, since every op must be total for every input.
 */
#ifndef KNEE_CC_RANDOM_H
#define KNEE_CC_RANDOM_H

#include <string.h>

#include "cc_algorithm.h"

struct block {
	u64 state[CC_STATE_MAX_BYTES / 8];
	struct cc_in in;
	struct cc_out out;
};

struct sequence {
	const struct cc_algorithm *algorithm;
	u64 random;
	int wild;
	u32 loss_per_1024;
	u32 marks_per_256; /* share of ACKs that report CE */
	u32 rtt_us;
	u32 in_recovery;      /* ACKs of recovery left */
	u32 side_ops_per_256; /* share of ops that are not an ACK's main two */
};

static u64 next_random(struct sequence *q)
{
	/* xorshift64* (Marsaglia; Vigna 2016) */
	q->random ^= q->random >> 12;
	q->random ^= q->random << 25;
	q->random ^= q->random >> 27;
	return q->random * 2685821657736338717ull;
}

static u32 below(struct sequence *q, u32 n)
{
	return (u32)(((next_random(q) >> 32) * n) >> 32);
}

static u32 wild_word(struct sequence *q)
{
	static const u32 edges[] = { 0,		  1,	       2,
				     4,		  1000,	       0x7fffffffu,
				     0x80000000u, 0xfffffffeu, 0xffffffffu };

	switch (below(q, 4)) {
	case 0:
		return edges[below(q, sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return below(q, 256);
	case 2:
		return 1u << below(q, 32);
	default:
		return (u32)next_random(q);
	}
}

static void wild_words(struct sequence *q, void *block, u32 bytes)
{
	u32 i, *words = block;

	for (i = 0; i < bytes / 4; i++)
		words[i] = wild_word(q);
}

/* The stack fills `out` from the connection before every op. */
static void fill_out(struct block *b)
{
	b->out.pacing_rate = b->in.pacing_rate;
	b->out.pacing_status = b->in.pacing_status;
	b->out.snd_cwnd = b->in.snd_cwnd;
	b->out.snd_cwnd_cnt = b->in.snd_cwnd_cnt;
	b->out.snd_ssthresh = b->in.snd_ssthresh;
	b->out.app_limited = b->in.app_limited;
	b->out.ret = 0;
	b->out.ack_prior = CC_ACK_PRIOR_NONE;
	b->out.ack_prior_seq = 0;
	b->out.ecn_echo = b->in.ack_state & CC_ACK_STATE_ECHO;
	b->out.ack_now = 0;
	b->out.random_drawn = 0;
	b->out.enter_cwr = 0;
}

static void begin_lively(struct sequence *q, struct block *b)
{
	static const u32 hz[] = { 100, 250, 300, 1000 };
	struct cc_in *in = &b->in;

	memset(in, 0, sizeof(*in));
	in->now_us = next_random(q) >> 20;
	in->max_pacing_rate = CC_U64_MAX;
	in->hz = hz[below(q, 4)];
	in->jiffies = (u32)next_random(q);
	in->lsndtime = in->jiffies;
	in->snd_cwnd = 10;
	in->snd_cwnd_clamp = below(q, 4) ? CC_U32_MAX : 20 + below(q, 1000);
	in->snd_ssthresh = CC_INFINITE_SSTHRESH;
	in->snd_una = (u32)next_random(q);
	in->snd_nxt = in->snd_una;
	in->min_rtt_us = CC_U32_MAX;
	in->mss_bytes = 88 + below(q, 8900);
	in->gso_max_bytes = 65536;
	in->delivered = below(q, 4) ? 1 : (u32)next_random(q);
	in->app_limited = CC_U32_MAX;
	q->rtt_us = 50 << below(q, 14);
	q->loss_per_1024 = below(q, 3) ? below(q, 8) : below(q, 400);
	/* Few side ops leave the long memories (policer model) undisturbed. */
	q->side_ops_per_256 = below(q, 2) ? 64 : 1;
	q->in_recovery = 0;
	in->ecn_mode = below(q, 3);
	q->marks_per_256 = below(q, 2) * below(q, 256);
}

/* What an ACK changes, before the ops are called. */
static void lively_step(struct sequence *q, struct block *b)
{
	struct cc_in *in = &b->in;
	u32 gap_us = 1 + below(q, below(q, 64) ? q->rtt_us / 4 + 1 : 3000000);
	u64 before_us = in->now_us;

	in->now_us += gap_us;
	in->jiffies += (u32)(in->now_us * in->hz / 1000000 -
			     before_us * in->hz / 1000000);
	in->clock_ns = in->now_us * 1000;
	in->wstamp_ns = in->clock_ns + below(q, 2) * below(q, q->rtt_us * 100);
	in->lsndtime = in->jiffies - (below(q, 16) ? 0 : below(q, 1000));
	/* A remote clock of 1 ms, some way ahead, after up to half an RTT. */
	in->rcv_tsecr = (u32)((in->now_us - q->rtt_us) / 1000);
	in->rcv_tsval =
		in->rcv_tsecr + 1000 + in->random % 1024 * q->rtt_us / 2048000;
	in->pacing_rate = b->out.pacing_rate;
	in->pacing_status = b->out.pacing_status;
	in->snd_cwnd = b->out.snd_cwnd;
	in->snd_cwnd_cnt = b->out.snd_cwnd_cnt;
	in->snd_ssthresh = b->out.snd_ssthresh;
	in->random = (u32)next_random(q);

	in->acked = 1 + below(q, below(q, 8) ? 3 : 44);
	in->rs_acked_sacked = below(q, 16) ? in->acked : 0;
	in->rs_losses = below(q, 1024) < q->loss_per_1024 ? 1 + below(q, 4) : 0;
	in->delivered += in->rs_acked_sacked;
	in->lost += in->rs_losses;
	in->ack_flags = CC_ACK_SND_UNA_ADVANCED;
	if (in->ecn_mode && below(q, 256) < q->marks_per_256) {
		in->delivered_ce += 1 + below(q, in->rs_acked_sacked + 1);
		in->ack_flags |= CC_ACK_ECE;
	}
	in->rcv_nxt += in->mss_bytes;
	in->ack_state = (b->out.ecn_echo ? CC_ACK_STATE_ECHO : 0) |
			(below(q, 2) ? CC_ACK_STATE_DELAYED : 0);
	in->snd_una += in->acked * in->mss_bytes;
	in->packets_out =
		1 + below(q, in->snd_cwnd < 65536 ? in->snd_cwnd : 65536);
	if (!below(q, 32))
		in->packets_out = 0;
	in->snd_nxt = in->snd_una + in->packets_out * in->mss_bytes;
	in->lost_out = in->rs_losses < in->packets_out ? in->rs_losses : 0;
	in->max_packets_out = cc_max(in->packets_out, 1);
	in->is_cwnd_limited = below(q, 4) != 0;
	in->app_limited = below(q, 4) ? 0 : in->delivered + in->packets_out;

	in->ack_rtt_us =
		below(q, 32) ? (s64)q->rtt_us + below(q, q->rtt_us) : -1;
	in->rs_rtt_us = in->ack_rtt_us;
	if (in->rs_rtt_us >= 0) {
		in->srtt_us = q->rtt_us;
		in->min_rtt_us = cc_min(in->min_rtt_us, (u32)in->rs_rtt_us);
	}
	in->rs_interval_us = below(q, 32) ? (s64)q->rtt_us + below(q, 100) : -1;
	in->rs_delivered =
		below(q, 64) ? (s32)(1 + below(q, in->packets_out + 1)) : -1;
	in->rs_prior_delivered =
		in->delivered - (u32)below(q, in->packets_out + 1);
	in->rs_prior_in_flight = in->packets_out;
	in->rs_is_app_limited = !below(q, 16);
	in->rs_is_ack_delayed = !below(q, 8);

	if (in->rs_losses && !q->in_recovery) {
		in->prior_cwnd = in->snd_cwnd;
		in->ca_state = below(q, 16) ? CC_CA_RECOVERY : CC_CA_LOSS;
		q->in_recovery = 1 + below(q, 40);
	} else if (q->in_recovery && !--q->in_recovery) {
		in->ca_state = CC_CA_OPEN;
	}
	in->state = in->ca_state;
	in->event = below(q, 6);
}

static void begin_sequence(struct sequence *q, u64 seed,
			   const struct cc_algorithm *a, struct block *b)
{
	u32 i, *words = (u32 *)b->state;

	memset(b, 0, sizeof(*b));
	memset(q, 0, sizeof(*q));
	q->algorithm = a;
	q->random = seed * 0x9e3779b97f4a7c15ull + 1;
	q->wild = below(q, 2);
	for (i = 0; i < a->n_params; i++) {
		const struct cc_param *p = &a->params[i];

		words[i] = p->dflt;
		if (!below(q, 4))
			words[i] = p->min + below(q, p->max - p->min + 1);
	}
	begin_lively(q, b);
	fill_out(b);
}

/* One of the ops of every ACK that the algorithm has: an op that it lacks would
 * be a step lost, and the long memories need many rounds. */
static u32 main_op(struct sequence *q)
{
	if (q->algorithm->ops[CC_OP_cong_control])
		return CC_OP_cong_control;
	if (q->algorithm->ops[CC_OP_pkts_acked] && below(q, 2))
		return CC_OP_pkts_acked;
	return CC_OP_cong_avoid;
}

/* Prepares `in` and `out` and chooses the op. Most sequences begin with init,
 * a few do not: ops must be total before it, too. */
static u32 next_op(struct sequence *q, struct block *b, u32 step)
{
	if (q->wild) {
		wild_words(q, &b->in, sizeof(b->in));
		wild_words(q, &b->out, sizeof(b->out));
	} else if (step) {
		lively_step(q, b);
	}
	if (q->wild || below(q, 8))
		fill_out(b);
	if (step == 0 && below(q, 8))
		return CC_OP_init;
	/* The main ops of an ACK more often than the rest. */
	if (!q->wild && below(q, 256) >= q->side_ops_per_256)
		return main_op(q);
	return CC_OP_ssthresh + below(q, CC_N_OPS - CC_OP_ssthresh);
}

#endif
