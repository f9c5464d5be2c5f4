/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * path.c - the clock, the path (world.h) and the application.
 */
#include "world.h"

struct world w;

u32 world_chance(u64 limit, u64 of)
{
	return against_next(&w.random_state) % of < limit;
}

struct segment *world_at(u32 seq)
{
	return &w.segments[seq & (WINDOW - 1)];
}

/* ---- clock -------------------------------------------------------------- */

void world_set_clock(u64 ns)
{
	w.now_ns = ns;
	TP->clock_ns = ns;
	TP->jiffies = 1000 + (u32)(ns / (1000000000ull / HZ));
	TP->tcp_mstamp = ns / 1000;
}

/* ---- the path ----------------------------------------------------------- */

static u32 is_later(void)
{
	u64 ms = w.now_ns / MSEC_NS;

	return w.s->change_ms && ms >= w.s->change_ms &&
	       (!w.s->change_back_ms || ms < w.s->change_back_ms);
}

static u64 rate_now(void)
{
	return w.s->rate_later && is_later() ? w.s->rate_later : w.s->rate;
}

static u64 rtt_now_ns(void)
{
	return 1000ull * (w.s->rtt_later_us && is_later() ? w.s->rtt_later_us
							  : w.s->rtt_us);
}

static u32 is_black(void)
{
	u64 ms = w.now_ns / MSEC_NS;

	if (!w.s->blackout_for_ms || ms < w.s->blackout_ms)
		return 0;
	ms -= w.s->blackout_ms;
	if (w.s->blackout_every_ms)
		ms %= w.s->blackout_every_ms;
	return ms < w.s->blackout_for_ms;
}

static u32 is_lost_at_random(void)
{
	if (w.run_left) {
		w.run_left--;
		return 1;
	}
	if (!w.s->loss_ppm || w.now_ns < w.s->loss_after_ms * MSEC_NS ||
	    !world_chance(w.s->loss_ppm, 1000000))
		return 0;
	w.run_left = w.s->loss_run ? w.s->loss_run - 1 : 0;
	return 1;
}

static void push(struct arrival a)
{
	u32 i = w.n_heap++;

	while (i && w.heap[(i - 1) / 2].at_ns > a.at_ns) {
		w.heap[i] = w.heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w.heap[i] = a;
}

struct arrival world_pop(void)
{
	struct arrival first = w.heap[0], last = w.heap[--w.n_heap];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < w.n_heap) {
		if (child + 1 < w.n_heap &&
		    w.heap[child + 1].at_ns < w.heap[child].at_ns)
			child++;
		if (w.heap[child].at_ns >= last.at_ns)
			break;
		w.heap[i] = w.heap[child];
		i = child;
	}
	w.heap[i] = last;
	return first;
}

void world_into_path(u32 seq)
{
	u64 bits = 8ull * (w.s->mss + HEADER_BYTES);
	u64 packet_ns = bits * 1000000000ull / rate_now();
	u64 bdp_ns = rtt_now_ns();
	u64 room_ns = max(bdp_ns * w.s->buffer_pct / 100,
			  packet_ns * w.s->buffer_packets);
	u64 wait_ns = w.free_ns > w.now_ns ? w.free_ns - w.now_ns : 0;
	struct arrival a = { .seq = seq, .order = world_at(seq)->order };

	if (is_black() || is_lost_at_random() || wait_ns > room_ns ||
	    w.n_heap == WINDOW)
		return;
	if (w.s->mark_pct && wait_ns > room_ns * w.s->mark_pct / 100)
		a.is_marked = 1;
	w.free_ns = w.now_ns + wait_ns + packet_ns;
	a.at_ns = w.free_ns + rtt_now_ns();
	if (w.s->jitter_us && world_chance(w.s->jitter_ppm, 1000000))
		a.at_ns += 1000ull *
			   (against_next(&w.random_state) % w.s->jitter_us);
	if (w.s->ack_us) {
		u64 lump_ns = 1000ull * w.s->ack_us;

		a.at_ns = (a.at_ns / lump_ns + 1) * lump_ns;
	}
	push(a);
}

/* ---- the application ---------------------------------------------------- */

/* Segments that it has written so far. */
static u64 written(void)
{
	u64 ms = w.now_ns / MSEC_NS, n = ~0ull, period;

	if (ms < w.s->app_from_ms)
		return ~0ull >> 1;
	if (w.s->app_rate)
		n = w.now_ns / 1000 * (w.s->app_rate / 1000) / 8 / 1000 /
			    w.s->mss +
		    (w.s->app_from_ms ? 0 : 1);
	if (w.s->app_segments) {
		period = w.s->app_on_ms + w.s->app_off_ms;
		n = min(n, (ms / max(period, 1ull) + 1) * w.s->app_segments);
	}
	return n;
}

u32 world_has_data(void)
{
	u64 ms = w.now_ns / MSEC_NS;

	if (ms < w.s->app_from_ms) {
		w.base_written = w.nxt;
		return 1;
	}
	if (w.s->app_off_ms && !w.s->app_segments &&
	    ms % (w.s->app_on_ms + w.s->app_off_ms) >= w.s->app_on_ms)
		return 0;
	if (!w.s->app_rate && !w.s->app_segments)
		return 1;
	if (w.base_written) {
		u64 since = 1000 * MSEC_NS / 1000 * w.s->app_from_ms,
		    keep = w.now_ns;
		u64 n;

		w.now_ns -= since;
		n = written();
		w.now_ns = keep;
		if (n == ~0ull >> 1)
			n = (keep - since) / 1000 * (w.s->app_rate / 1000) / 8 /
			    1000 / w.s->mss;
		return w.nxt < w.base_written + n;
	}
	return w.nxt < written();
}

void world_check_app_limited(void)
{
	u32 in_flight = against_in_flight();

	if (in_flight < FIRST.snd_cwnd && TP->lost_out <= TP->retrans_out)
		TP->app_limited = max(TP->delivered + in_flight, 1u);
}
