/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_aggregation.h - how much more than bw * time is acked at once?
 *
 * Where ACKs come in lumps (wifi, cable, GRO) cwnd needs that much on top to
 * keep sending in between.
 *
 * Equations
 *	extra_acked = max over 5 to 10 rounds of acked - bw * time,
 *		      where acked and time count from the begin of an epoch:
 *		      an epoch ends when ACKs come no faster than bw
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c, bbr_update_ack_aggregation() and
 *	bbr_ack_aggregation_cwnd().
 */
#ifndef KNEE_BBR_AGGREGATION_H
#define KNEE_BBR_AGGREGATION_H

#include "bbr_model.h"

/* Maximum over two slots of 5 rounds each, at most 100 ms of bw; */
#define BBR_AGGREGATION_SLOT_ROUNDS 5u
#define BBR_AGGREGATION_MAX_US 100000u
/* an epoch ends before its count leaves the 20 bits of Linux. Segments. */
#define BBR_AGGREGATION_EPOCH_MAX (1u << 20)

struct bbr_aggregation {
	u32 epoch_acked;     /* segments delivered in the epoch */
	u32 slot_rounds;     /* age of the current slot, rounds */
	u32 slot;	     /* 0 or 1 */
	u16 extra_acked[2];  /* maxima, segments, modulo 2^16 as in Linux */
	u64 epoch_mstamp_us; /* begin of the epoch */
};

static void bbr_aggregation_new_epoch(struct bbr_aggregation *a, u64 mstamp_us)
{
	a->epoch_acked = 0;
	a->epoch_mstamp_us = mstamp_us;
}

static void bbr_aggregation_reset(struct bbr_aggregation *a, u64 mstamp_us)
{
	bbr_aggregation_new_epoch(a, mstamp_us);
	a->slot_rounds = 0;
	a->slot = 0;
	a->extra_acked[0] = 0;
	a->extra_acked[1] = 0;
}

static void bbr_aggregation_new_round(struct bbr_aggregation *a)
{
	if (++a->slot_rounds < BBR_AGGREGATION_SLOT_ROUNDS)
		return;
	a->slot_rounds = 0;
	a->slot = (a->slot & 1) ^ 1;
	a->extra_acked[a->slot & 1] = 0;
}

/* An ACK at mstamp_us delivered `acked` segments. */
static void bbr_aggregation_ack(struct bbr_aggregation *a, u32 acked, u32 bw,
				u64 mstamp_us, u32 cwnd)
{
	u32 slot = a->slot & 1;
	u32 epoch_us = (u32)cc_elapsed(mstamp_us, a->epoch_mstamp_us);
	u32 expected = (u32)(((u64)bw * epoch_us) >> BBR_BW_SHIFT);
	u32 extra;

	/* No faster than bw, or too long an epoch: begin a new one. */
	if (a->epoch_acked <= expected ||
	    (u64)a->epoch_acked + acked >= BBR_AGGREGATION_EPOCH_MAX) {
		bbr_aggregation_new_epoch(a, mstamp_us);
		expected = 0;
	}
	a->epoch_acked = cc_min(cc_add_saturate(a->epoch_acked, acked),
				BBR_AGGREGATION_EPOCH_MAX - 1);
	extra = cc_min(a->epoch_acked - expected, cwnd);
	if (extra > a->extra_acked[slot])
		a->extra_acked[slot] = (u16)extra;
}

/* What cwnd gets on top, segments. */
static u32 bbr_aggregation_cwnd(const struct bbr_aggregation *a, u32 bw)
{
	u32 limit = (u32)(((u64)bw * BBR_AGGREGATION_MAX_US) >> BBR_BW_SHIFT);

	return cc_min(cc_max(a->extra_acked[0], a->extra_acked[1]), limit);
}

#endif
