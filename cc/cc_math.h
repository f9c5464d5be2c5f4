/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_math.h - arithmetic and window helpers shared by the algorithms.
 *
 * All integer, all total: a division by zero, an overflow and a wrapped
 * sequence number have a stated result, the same on the host and under BPF.
 */
#ifndef KNEE_CC_MATH_H
#define KNEE_CC_MATH_H

#define CC_U32_MAX 0xffffffffu
#define CC_U64_MAX 0xffffffffffffffffull
#define CC_USEC_PER_SEC 1000000u
#define CC_USEC_PER_MSEC 1000u
#define CC_MSEC_PER_SEC 1000u
#define CC_NSEC_PER_USEC 1000u

static inline u32 cc_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 cc_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline u64 cc_min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 cc_max64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static inline u32 cc_clamp(u32 x, u32 low, u32 high)
{
	return cc_min(cc_max(x, low), high);
}

/* x as u32, the largest u32 when it does not fit. */
static inline u32 cc_saturate(u64 x)
{
	return x > CC_U32_MAX ? CC_U32_MAX : (u32)x;
}

static inline u32 cc_add_saturate(u32 a, u32 b)
{
	return cc_saturate((u64)a + b);
}

/*
 * a / b, and 0 for b == 0: what BPF's division yields. The test stands in the
 * C because the host would trap.
 */
static inline u64 cc_div(u64 a, u64 b)
{
	return b ? a / b : 0;
}

/*
 * Order of wrapping 32-bit values (sequence numbers, jiffies, cumulative
 * counters): a is before b when b is less than 2^31 steps ahead.
 */
static inline u32 cc_before(u32 a, u32 b)
{
	return a - b >= 0x80000000u;
}

static inline u32 cc_after(u32 a, u32 b)
{
	return cc_before(b, a);
}

/* now - then, in a clock of 64 bits; 0 when `then` lies ahead. */
static inline u64 cc_elapsed(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

static inline u32 cc_usecs_to_jiffies(u32 us, u32 hz)
{
	return cc_saturate(((u64)us * hz + CC_USEC_PER_SEC - 1) /
			   CC_USEC_PER_SEC);
}

static inline u32 cc_msecs_to_jiffies(u32 ms, u32 hz)
{
	return cc_saturate(((u64)ms * hz + CC_MSEC_PER_SEC - 1) /
			   CC_MSEC_PER_SEC);
}

/*
 * The 32 random bits of this call. There are no more, so an op draws once.
 * The next call has others. What draws nothing leaves them to the next op that
 * does, so that an op called once more changes no other draw.
 */
static inline u32 cc_random(const struct cc_in *in, struct cc_out *out)
{
	out->random_drawn = 1;
	return in->random;
}

/* A uniform choice below n from 32 random bits, by multiplication (n > 0). */
static inline u32 cc_random_below(u32 random, u32 n)
{
	return (u32)(((u64)random * n) >> 32);
}

/* Bits needed to write x; 0 for 0. (clang-16 fails on its builtin for BPF.) */
static inline u32 cc_bit_length(u64 x)
{
	u32 bits = 0, step;

	for (step = 32; step; step /= 2) {
		if (x >> step) {
			x >>= step;
			bits += step;
		}
	}
	return bits + (x != 0);
}

/*
 * floor(cube root of a), exact. Newton's iteration from a power of two above
 * the root falls until it reaches the floor and then stays or rises, so the
 * minimum is the answer. From at most twice the root 7 steps are enough for 64
 * bits. A search bit by bit would do as well, but the verifier follows all
 * 2^22 outcomes of its comparisons.
 */
#define CC_CUBE_ROOT_STEPS 7

static inline u32 cc_cube_root(u64 a)
{
	u64 x;
	int i;

	if (!a)
		return 0;
	x = 1ull << ((cc_bit_length(a) + 2) / 3);
	for (i = 0; i < CC_CUBE_ROOT_STEPS; i++)
		x = cc_min64(x, (2 * x + cc_div(a, x * x)) / 3);
	return (u32)x;
}

/* Packets in the network: sent, not acked, not thought lost, plus resent. */
static inline u32 cc_in_flight(const struct cc_in *in)
{
	return in->packets_out - (in->sacked_out + in->lost_out) +
	       in->retrans_out;
}

/* The three below read snd_cwnd and snd_ssthresh from `out`, where an op has
 * its own earlier writes; at the start of an op both blocks agree. */
static inline u32 cc_in_slow_start(const struct cc_out *out)
{
	return out->snd_cwnd < out->snd_ssthresh;
}

/*
 * May the window grow? Only when it limited sending in this round; slow start
 * also when less than twice the packets sent would fit (the window may then
 * double ahead of use).
 */
static inline u32 cc_is_cwnd_limited(const struct cc_in *in,
				     const struct cc_out *out)
{
	if (in->is_cwnd_limited)
		return 1;
	return cc_in_slow_start(out) &&
	       out->snd_cwnd < 2 * (u64)in->max_packets_out;
}

/* The user's cap; the contract's floor of one segment holds even against it. */
static inline void cc_set_cwnd(const struct cc_in *in, struct cc_out *out,
			       u32 cwnd)
{
	out->snd_cwnd = cc_max(cc_min(cwnd, in->snd_cwnd_clamp), 1);
}

/*
 * Slow start for `acked` packets, up to ssthresh. Returns the acked packets
 * not used, which congestion avoidance may use.
 */
static inline u32 cc_slow_start(const struct cc_in *in, struct cc_out *out,
				u32 acked)
{
	u32 old = out->snd_cwnd;
	u32 cwnd = cc_min(cc_add_saturate(old, acked), out->snd_ssthresh);

	if (cwnd < old)
		return acked; /* not in slow start */
	cc_set_cwnd(in, out, cwnd);
	return acked - (cwnd - old);
}

/*
 * Additive increase: one segment per `w` acked packets. Credit gathered under
 * a larger w counts for one segment at most, so that a drop of w (CUBIC
 * leaving its plateau) does not become a burst.
 */
static inline void cc_cong_avoid_ai(const struct cc_in *in, struct cc_out *out,
				    u32 w, u32 acked)
{
	u32 cwnd = out->snd_cwnd;
	u32 credit = out->snd_cwnd_cnt;

	w = cc_max(w, 1);
	if (credit >= w) {
		credit = 0;
		cwnd = cc_add_saturate(cwnd, 1);
	}
	credit = cc_add_saturate(credit, acked);
	cwnd = cc_add_saturate(cwnd, credit / w);
	out->snd_cwnd_cnt = credit % w;
	cc_set_cwnd(in, out, cwnd);
}

/*
 * What Reno does (RFC 5681 section 3.1; Linux tcp_reno_*): the behaviour that
 * many algorithms fall back to.
 */
/* No window below two segments after a loss (RFC 5681 section 3.1 (4)). */
#define CC_MIN_SSTHRESH 2u

static inline u32 cc_reno_ssthresh(const struct cc_out *out)
{
	return cc_max(out->snd_cwnd / 2, CC_MIN_SSTHRESH);
}

static inline void cc_reno_cong_avoid(const struct cc_in *in,
				      struct cc_out *out, u32 acked)
{
	if (!cc_is_cwnd_limited(in, out))
		return;
	if (cc_in_slow_start(out)) {
		acked = cc_slow_start(in, out, acked);
		if (!acked)
			return;
	}
	cc_cong_avoid_ai(in, out, out->snd_cwnd, acked);
}

/* The reduction was spurious: the window from before it. */
static inline u32 cc_reno_undo_cwnd(const struct cc_in *in,
				    const struct cc_out *out)
{
	return cc_max(out->snd_cwnd, in->prior_cwnd);
}

/*
 * Windowed maximum in constant space (K. Nichols; used by BBR over rounds):
 * the best, second and third best of the window, in the order they came.
 */
struct cc_max_sample {
	u32 t; /* when, in the caller's unit */
	u32 v; /* value */
};

struct cc_max_filter {
	struct cc_max_sample best[3];
};

static inline u32 cc_max_filter_get(const struct cc_max_filter *f)
{
	return f->best[0].v;
}

static inline void cc_max_filter_reset(struct cc_max_filter *f, u32 t, u32 v)
{
	f->best[0].t = f->best[1].t = f->best[2].t = t;
	f->best[0].v = f->best[1].v = f->best[2].v = v;
}

static inline void cc_max_filter_shift(struct cc_max_filter *f,
				       struct cc_max_sample s)
{
	f->best[0] = f->best[1];
	f->best[1] = f->best[2];
	f->best[2] = s;
}

static inline void cc_max_filter_update(struct cc_max_filter *f, u32 window,
					u32 t, u32 v)
{
	struct cc_max_sample s = { t, v };
	u32 age;

	/* A new maximum, or nothing left in the window: start afresh. */
	if (v >= f->best[0].v || t - f->best[2].t > window) {
		cc_max_filter_reset(f, t, v);
		return;
	}
	if (v >= f->best[1].v)
		f->best[1] = f->best[2] = s;
	else if (v >= f->best[2].v)
		f->best[2] = s;

	age = t - f->best[0].t;
	if (age > window) {
		/* The best is too old; the second may be as well. */
		cc_max_filter_shift(f, s);
		if (t - f->best[0].t > window)
			cc_max_filter_shift(f, s);
	} else if (f->best[1].t == f->best[0].t && age > window / 4) {
		/* No second best for a quarter of the window: take this. */
		f->best[1] = f->best[2] = s;
	} else if (f->best[2].t == f->best[1].t && age > window / 2) {
		f->best[2] = s;
	}
}

#endif
