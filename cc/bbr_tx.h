/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_tx.h - what was in flight when the packet was sent that this ACK tells
 * of, and what has been lost since.
 *
 * BBR judges a probe by the loss rate of the flight it sent. Google's kernels
 * keep both numbers with every packet; stock Linux does not. There they are
 * rebuilt from a short history: each ACK notes how much had been delivered and
 * lost, and the next one how much was sent in between. A packet knows what had
 * been delivered when it was sent (rs_prior_delivered), which leads to its
 * entry.
 *
 *	lost since sent   = lost now - lost of the entry
 *	in flight at send = in flight after the entry's packets
 *			    - packets of the entry sent after this one
 *
 * Errors: losses marked by timers between two ACKs count for the later one;
 * retransmissions among an entry's packets, and entries that stand for several
 * ACKs (a 32nd of the window), shift the second number by as many packets.
 *
 * Source: the numbers: google/bbr v3, net/ipv4/tcp_rate.c; their rebuilding:
 *	this file.
 */
#ifndef KNEE_BBR_TX_H
#define KNEE_BBR_TX_H

#include "cc_algorithm.h"

/* A power of two. Twice the entries of a window, for a window that shrinks. */
#define BBR_TX_ENTRIES 64u
#define BBR_TX_PER_CWND 32u

struct bbr_tx_entry {
	u32 delivered; /* in->delivered after the ACK */
	u32 lost;      /* in->lost after the ACK */
	u32 in_flight; /* before the next ACK; 0: none has come yet */
	u32 snd_nxt;   /* the same */
};

struct bbr_tx {
	struct bbr_tx_entry entries[BBR_TX_ENTRIES];
	u32 head;  /* index of the newest */
	u32 count; /* entries in use */
};

/* What is asked of it. Segments. */
struct bbr_tx_fact {
	u32 in_flight; /* just after the packet was sent; 0: not known */
	u32 lost;      /* since then */
};

static void bbr_tx_push(struct bbr_tx *t, const struct cc_in *in)
{
	struct bbr_tx_entry *e;

	t->head = (t->head + 1) & (BBR_TX_ENTRIES - 1);
	t->count = cc_min(t->count + 1, BBR_TX_ENTRIES);
	e = &t->entries[t->head];
	e->delivered = in->delivered;
	e->lost = in->lost;
	e->in_flight = 0;
	e->snd_nxt = in->snd_nxt;
}

static void bbr_tx_reset(struct bbr_tx *t, const struct cc_in *in)
{
	t->head = 0;
	t->count = 0;
	bbr_tx_push(t, in);
}

/* At the begin of an ACK: this is what was sent after the one before. */
static void bbr_tx_before_ack(struct bbr_tx *t, const struct cc_in *in)
{
	struct bbr_tx_entry *e = &t->entries[t->head & (BBR_TX_ENTRIES - 1)];

	e->in_flight = in->rs_prior_in_flight;
	e->snd_nxt = in->snd_nxt;
}

/* At its end. */
static void bbr_tx_after_ack(struct bbr_tx *t, const struct cc_in *in, u32 cwnd)
{
	struct bbr_tx_entry *e = &t->entries[t->head & (BBR_TX_ENTRIES - 1)];

	if (in->delivered - e->delivered >= cc_max(cwnd / BBR_TX_PER_CWND, 1))
		bbr_tx_push(t, in);
}

static const struct bbr_tx_entry *bbr_tx_at(const struct bbr_tx *t, u32 age)
{
	return &t->entries[(t->head - age) & (BBR_TX_ENTRIES - 1)];
}

/* The age of the newest entry from before the packet was sent, by halving;
 * `count` where none is that old. */
static u32 bbr_tx_find(const struct bbr_tx *t, u32 prior_delivered)
{
	u32 newer = 0; /* entries known to be too new */
	u32 step;

	for (step = BBR_TX_ENTRIES / 2; step; step /= 2) {
		if (newer + step <= t->count &&
		    cc_after(bbr_tx_at(t, newer + step - 1)->delivered,
			     prior_delivered))
			newer += step;
	}
	return newer;
}

/* What the history says of the packet sampled by this ACK. */
static struct bbr_tx_fact bbr_tx_guess(const struct bbr_tx *t,
				       const struct cc_in *in)
{
	u32 age = bbr_tx_find(t, in->rs_prior_delivered);
	const struct bbr_tx_entry *e = bbr_tx_at(t, age);
	struct bbr_tx_fact fact = { .in_flight = 0, .lost = 0 };
	u32 later_bytes = e->snd_nxt - in->rs_last_end_seq;
	u32 later = (u32)cc_div(later_bytes, in->mss_bytes);

	if (age >= t->count) /* sent before the history began */
		return fact;
	fact.lost = in->lost - e->lost;
	fact.in_flight = e->in_flight;
	if (later_bytes < 0x80000000u && later < fact.in_flight)
		fact.in_flight -= later;
	return fact;
}

#endif
