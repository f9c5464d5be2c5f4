/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * scenarios.c - the classes: each brings an algorithm somewhere else. Below
 * them, random scenarios drawn from all that the classes vary.
 */
#include "against.h"

#define KBIT 1000ull
#define MBIT 1000000ull
#define COMMON                                                          \
	.rate = 10 * MBIT, .rtt_us = 40000, .buffer_pct = 100,          \
	.buffer_packets = 4, .mss = 1448, .init_cwnd = 10, .ms = 30000, \
	.acks = 40000

/* clang-format off */
const struct scenario against_classes[] = {
	{ COMMON, .name = "no loss, deep buffer", .buffer_pct = 400 },
	{ COMMON, .name = "no loss, 100 Mbit/s", .rate = 100 * MBIT, .rtt_us = 20000, .buffer_pct = 200, .acks = 120000 },
	{ COMMON, .name = "1 BDP" },
	{ COMMON, .name = "shallow, 0.2 BDP", .buffer_pct = 20 },
	{ COMMON, .name = "shallow, 2 packets", .buffer_pct = 0, .buffer_packets = 2 },
	{ COMMON, .name = "loss 0.1 %", .loss_ppm = 1000 },
	{ COMMON, .name = "loss 1 %", .loss_ppm = 10000 },
	{ COMMON, .name = "loss 5 %", .loss_ppm = 50000 },
	{ COMMON, .name = "loss 20 %", .loss_ppm = 200000 },
	{ COMMON, .name = "runs of 8 losses", .loss_ppm = 1000, .loss_run = 8 },
	{ COMMON, .name = "loss after start-up", .loss_ppm = 20000, .loss_after_ms = 4000 },
	{ COMMON, .name = "ACKs in lumps of 4 ms", .ack_us = 4000 },
	{ COMMON, .name = "ACKs in lumps of 20 ms, loss", .ack_us = 20000, .loss_ppm = 2000 },
	{ COMMON, .name = "an ACK for 2 packets, delayed", .ack_us = 2500, .ack_every = 2, .delayed_pct = 50 },
	{ COMMON, .name = "paced in bursts of 16", .burst = 16 },
	{ COMMON, .name = "application at half the rate", .app_rate = 5 * MBIT },
	{ COMMON, .name = "application at half the rate later", .app_rate = 5 * MBIT, .app_from_ms = 5000 },
	{ COMMON, .name = "application at a tenth, loss", .app_rate = 1 * MBIT, .loss_ppm = 10000 },
	{ COMMON, .name = "on 200 ms, off 300 ms", .app_on_ms = 200, .app_off_ms = 300 },
	{ COMMON, .name = "on 2 s, off 700 ms, loss", .app_on_ms = 2000, .app_off_ms = 700, .loss_ppm = 3000 },
	{ COMMON, .name = "requests of 30 segments", .app_on_ms = 150, .app_segments = 30 },
	{ COMMON, .name = "requests of 30 segments, ACKs in lumps", .app_on_ms = 150, .app_segments = 30, .ack_us = 6000 },
	{ COMMON, .name = "requests of 3 segments, loss, TLP", .app_on_ms = 120, .app_segments = 3, .loss_ppm = 30000, .tlp = 1 },
	{ COMMON, .name = "idle for 12 s", .app_on_ms = 3000, .app_off_ms = 12000, .ms = 60000 },
	{ COMMON, .name = "RTO: black for 1 s", .blackout_ms = 3000, .blackout_for_ms = 1000 },
	{ COMMON, .name = "RTO every 4 s", .blackout_ms = 2000, .blackout_for_ms = 300, .blackout_every_ms = 4000, .loss_ppm = 1000 },
	{ COMMON, .name = "RTO in start-up", .blackout_ms = 100, .blackout_for_ms = 600 },
	{ COMMON, .name = "marks, short RTT", .rtt_us = 2000, .mark_pct = 20, .ecn = 1, .buffer_pct = 300, .buffer_packets = 40 },
	{ COMMON, .name = "marks, short RTT, loss", .rtt_us = 3000, .mark_pct = 10, .ecn = 1, .loss_ppm = 5000, .buffer_packets = 30 },
	{ COMMON, .name = "marks, long RTT", .mark_pct = 10, .ecn = 1 },
	{ COMMON, .name = "marks not to be used", .rtt_us = 2000, .mark_pct = 10, .buffer_packets = 40 },
	{ COMMON, .name = "marks, on and off", .rtt_us = 1000, .mark_pct = 10, .ecn = 1, .buffer_packets = 40, .app_on_ms = 40, .app_off_ms = 30 },
	{ COMMON, .name = "less than a packet in flight", .rate = 64 * KBIT, .rtt_us = 10000, .ms = 120000 },
	{ COMMON, .name = "256 kbit/s, loss", .rate = 256 * KBIT, .rtt_us = 80000, .loss_ppm = 10000, .ms = 120000 },
	{ COMMON, .name = "1.2 Mbit/s", .rate = 1200 * KBIT, .rtt_us = 30000, .ms = 60000 },
	{ COMMON, .name = "10 to 40 Mbit/s", .rate_later = 40 * MBIT, .change_ms = 8000 },
	{ COMMON, .name = "10 to 2 Mbit/s and back", .rate_later = 2 * MBIT, .change_ms = 8000, .change_back_ms = 16000 },
	{ COMMON, .name = "RTT from 40 to 90 ms", .rtt_later_us = 90000, .change_ms = 8000 },
	{ COMMON, .name = "RTT from 40 to 15 ms and back", .rtt_later_us = 15000, .change_ms = 8000, .change_back_ms = 19000 },
	{ COMMON, .name = "local CWR", .local_cwr_ms = 700 },
	{ COMMON, .name = "local CWR, few packets in flight", .app_on_ms = 100, .app_segments = 4, .local_cwr_ms = 10, .loss_ppm = 1000 },
	{ COMMON, .name = "TLP, requests, loss", .app_on_ms = 200, .app_segments = 40, .loss_ppm = 10000, .tlp = 1 },
	{ COMMON, .name = "reordering: undo", .jitter_us = 8000, .jitter_ppm = 2000 },
	{ COMMON, .name = "reordering: undo, loss", .jitter_us = 30000, .jitter_ppm = 5000, .loss_ppm = 3000, .buffer_pct = 30 },
	{ COMMON, .name = "late ACKs: undo of RTO", .jitter_us = 900000, .jitter_ppm = 300, .app_on_ms = 100, .app_segments = 8 },
	{ COMMON, .name = "clamp of 20 segments", .clamp = 20 },
	{ COMMON, .name = "receive window of 25 segments", .receive_window = 25 },
	{ COMMON, .name = "paced at 4 Mbit/s at most", .max_pacing = 500000 },
	{ COMMON, .name = "segments of 536 bytes, 1 window of 2", .mss = 536, .init_cwnd = 2 },
	{ COMMON, .name = "no RTT sample", .no_rtt = 1, .loss_ppm = 2000 },
	{ COMMON, .name = "1 Gbit/s, 1 ms", .rate = 1000 * MBIT, .rtt_us = 1000, .buffer_pct = 200, .acks = 200000, .ms = 8000 },
	{ COMMON, .name = "600 ms", .rtt_us = 600000, .rate = 4 * MBIT, .loss_ppm = 500, .ms = 90000 },
};
/* clang-format on */
const u32 against_n_classes =
	sizeof(against_classes) / sizeof(against_classes[0]);

u64 against_next(u64 *state)
{
	u64 z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static u64 below(u64 *r, u64 n)
{
	return against_next(r) % n;
}

static u32 one_in(u64 *r, u32 n)
{
	return !below(r, n);
}

/* Between low and high, each power of two as likely as the other. */
static u64 spread(u64 *r, u64 low, u64 high)
{
	u32 doublings = 0;
	u64 base;

	while (low << (doublings + 1) <= high)
		doublings++;
	base = low << below(r, doublings + 1);
	return min(base + below(r, base), high);
}

void against_draw(struct scenario *s, u64 seed)
{
	static const u32 sizes[] = { 1448, 1448, 1448, 536, 1200, 8948 };
	u64 r = seed;

	memset(s, 0, sizeof(*s));
	s->name = "random";
	s->seed = seed;
	s->rate = spread(&r, 64 * KBIT, 400 * MBIT);
	s->rtt_us = (u32)spread(&r, 300, 400000);
	s->buffer_pct = (u32)spread(&r, 5, 800);
	s->buffer_packets = (u32)spread(&r, 1, 60);
	s->mss = sizes[below(&r, 6)];
	s->init_cwnd = one_in(&r, 6) ? (u32)spread(&r, 1, 100) : 10;
	if (one_in(&r, 2))
		s->loss_ppm = (u32)spread(&r, 100, 200000);
	if (one_in(&r, 5))
		s->loss_run = (u32)spread(&r, 2, 30);
	if (one_in(&r, 4))
		s->loss_after_ms = (u32)below(&r, 8000);
	if (one_in(&r, 6)) {
		s->jitter_us = (u32)spread(&r, 100, 1000000);
		s->jitter_ppm = (u32)spread(&r, 100, 30000);
	}
	if (one_in(&r, 3))
		s->ack_us = (u32)spread(&r, 50, 40000);
	if (one_in(&r, 4))
		s->ack_every = (u32)spread(&r, 1, 64);
	if (one_in(&r, 4))
		s->burst = (u32)spread(&r, 2, 44);
	if (one_in(&r, 3)) {
		s->mark_pct = (u32)spread(&r, 1, 90);
		s->ecn = !one_in(&r, 4);
		if (one_in(&r, 2))
			s->rtt_us = (u32)spread(&r, 300, 6000);
	}
	switch (below(&r, 6)) {
	case 0:
		s->app_on_ms = (u32)spread(&r, 5, 8000);
		s->app_off_ms = (u32)spread(&r, 5, 12000);
		break;
	case 1:
		s->app_on_ms = (u32)spread(&r, 5, 2000);
		s->app_segments = (u32)spread(&r, 1, 200);
		break;
	case 2:
		s->app_rate = max(s->rate / spread(&r, 1, 30), 8 * KBIT);
		if (one_in(&r, 2))
			s->app_from_ms = (u32)below(&r, 9000);
		break;
	default:
		break;
	}
	if (one_in(&r, 6)) {
		s->blackout_ms = (u32)below(&r, 9000);
		s->blackout_for_ms = (u32)spread(&r, 5, 3000);
		if (one_in(&r, 2))
			s->blackout_every_ms =
				s->blackout_for_ms + (u32)spread(&r, 200, 9000);
	}
	if (one_in(&r, 8))
		s->local_cwr_ms = (u32)spread(&r, 3, 5000);
	s->tlp = one_in(&r, 3);
	if (one_in(&r, 6))
		s->delayed_pct = (u32)below(&r, 100);
	if (one_in(&r, 5))
		s->rate_later = spread(&r, s->rate / 8, s->rate * 8);
	if (one_in(&r, 6))
		s->rtt_later_us =
			(u32)spread(&r, s->rtt_us / 4 + 1, 4ull * s->rtt_us);
	s->change_ms = 500 + (u32)below(&r, 12000);
	if (one_in(&r, 2))
		s->change_back_ms = s->change_ms + (u32)spread(&r, 100, 9000);
	if (one_in(&r, 12))
		s->clamp = (u32)spread(&r, 4, 400);
	if (one_in(&r, 12))
		s->receive_window = (u32)spread(&r, 2, 400);
	if (one_in(&r, 12))
		s->max_pacing = max(s->rate / 8 / spread(&r, 1, 8), 1000ull);
	s->no_rtt = one_in(&r, 40);
	s->ms = 30000;
	s->acks = 4000;
}
