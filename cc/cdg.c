/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CDG - back off when the delay grows, as likely as it grows fast.
 *
 * A base RTT is hard to know; whether the RTT rises is not. CDG follows from
 * round to round how the smallest and the largest RTT change. Where they rise
 * it backs off, by chance: a steep rise almost surely, a faint one seldom. So
 * queues stay short without a threshold. Beside flows that only losses stop it
 * does not starve: back-offs that did not help are suspended, and a shadow
 * window keeps what the flow would have had by losses alone.
 *
 * Equations (per round; w = snd_cwnd)
 *	g_min, g_max = sums over 8 rounds of the change of the round's RTTs
 *	g	     = g_min if that rises, else g_max
 *	P[back off]  = 1 - exp(-g factor 10^-6),  factor = 42 (G = 3 ms)
 *	back off:      w = 0.7071 w over one round
 *	loss:	       shadow = min(shadow / 2, w), ssthresh = max(shadow, w / 2)
 *	shadow grows as w does, and is not cut by a back-off
 *
 *	        a rise of the RTT, by chance              one round is acked
 *	GROW (Reno) ------------------------> BACK OFF -----------------> GROW
 *
 * Source: Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay
 *	Gradients", IFIP Networking 2011, sections 3.1 to 3.3; Linux 6.12
 *	net/ipv4/tcp_cdg.c for units, its HyStart and its delayed-ACK filter.
 *
 * Differs from source:
 *	- Linux backs off by entering the state CWR, which an algorithm outside
 *	  the kernel cannot. The window is cut here, in proportion to what is
 *	  acked, as the kernel's proportional rate reduction does; until the
 *	  round is over nothing grows and a loss costs nothing more, as there.
 *	  The stack sees the state Open meanwhile, and does not set CWR in TCP's
 *	  header. In Linux the window of that round also follows what is in
 *	  flight, a loss in it is never undone, and a pause does not end it: with
 *	  the inputs of docs/against.md the window is another than that of Linux'
 *	  file after 4.6 % of the ACKs, the threshold after 0.9 %.
 *	- exp() is a series here, a product of table entries in Linux: the
 *	  probabilities differ by less than 3 10^-5.
 *	- Linux gives CDG the handshake's RTT before its init(); here init()
 *	  takes it from srtt_us. The end that was connected to has it in Linux
 *	  not; here it does.
 *	- Linux allows gradient windows of up to 256 rounds, powers of two;
 *	  here up to 32, any number. It has 32 bits for the products of
 *	  gradients (a rise of more than 100 s leaves them), we have 64.
 */
#include "cc_algorithm.h"

#define CDG_BETA_SCALE 1024u
/* The state holds so many gradients. */
#define CDG_MAX_WINDOW 32u
/* RTTs are taken as signed 32 bits. us. */
#define CDG_MAX_RTT_US 0x7fffffffu
/* A sum falling by so much says that a back-off worked; a change below it is
 * noise to the loss tolerance (Linux). us. */
#define CDG_NOTABLE_US 32
/* The filter of delayed ACKs remembers so many stretched ones (Linux). */
#define CDG_MAX_DELACK 5u

/* HyStart, as Linux has it in CDG. The detectors, bits of `hystart`. */
#define CDG_HYSTART_ACK_TRAIN 1u
#define CDG_HYSTART_DELAY 2u
/* ACKs less than this apart are one train; us. */
#define CDG_HYSTART_ACK_DELTA_US 3000u
/* no train or RTT below this ends slow start; us. */
#define CDG_HYSTART_MIN_US 125u
/* a round's smallest RTT is trusted after so many samples. */
#define CDG_HYSTART_MIN_SAMPLES 8u

/* exp(): log2(e) 10^-6 << 52 and ln(2) << 32; terms for 32 bits. */
#define CDG_LOG2_E_SHIFT 52
#define CDG_LOG2_E_MICRO 6497320849ull
#define CDG_LN_2 2977044472u
#define CDG_EXP_TERMS 12u
/* 32 / log2(e), 10^-6: beyond, exp(-x) leaves the 32 bits. */
#define CDG_EXP_END 22180710u

/* clang-format off */
#define CDG_PARAMS(P)                                                          \
	P(window, 8, 1, 32, "rounds",                                          \
	  "rounds over which the gradients are summed; Linux: 8")              \
	P(backoff_beta, 724, 0, 1024, "1/1024",                                \
	  "window kept by a back-off; Linux: 0.7071, of the square root of 1/2") \
	P(backoff_factor, 42, 0, 1000000, "",                                  \
	  "scale of the back-off's probability, 10^6 / (G window) with G in us; Linux: 42, for G = 3 ms") \
	P(hystart, 3, 0, 3, "",                                                \
	  "early end of slow start: 0 off, 1 ACK train, 2 delay, 3 both (Linux)") \
	P(use_ineff, 5, 0, 65535, "",                                          \
	  "back-offs in a row without effect, after which none follow, 0: any number; the paper, section 3.2: 5") \
	P(use_shadow, 1, 0, 1, "",                                             \
	  "a loss leaves at least half the shadow window; the paper, section 3.3 (Linux: 1)") \
	P(use_tolerance, 0, 0, 1, "",                                          \
	  "no reduction at a loss where the queue seems not full (Linux: 0)")
/* clang-format on */

/* What the gradients say of the queue (for the loss tolerance). */
enum cdg_queue {
	CDG_UNKNOWN,
	CDG_NOT_FULL,
	CDG_FULL,
	CDG_BACKOFF, /* a back-off is under way */
};

struct cdg_rtt {
	u32 min_us; /* smallest RTT of a round; 0: no sample */
	u32 max_us; /* largest RTT of a round */
};

struct cdg_gradient {
	s32 min_us; /* change of the smallest RTT to the round before */
	s32 max_us; /* and of the largest */
};

struct cdg {
	CC_PARAM_FIELDS(CDG_PARAMS)

	u32 queue;	      /* enum cdg_queue */
	struct cdg_rtt rtt;   /* of this round */
	struct cdg_rtt prior; /* and of the round before */
	u32 round_end_seq;    /* the round ends when this is acked */
	u32 shadow_cwnd;      /* window by losses alone, segments */
	u32 backoffs;	      /* in a row without effect */
	u32 delack;	      /* stretched ACKs seen of late, to 5 */

	u32 delay_min_us;   /* smallest RTT; 0: none yet */
	u32 last_ack_us;    /* last ACK of the train, wraps; 0: none yet */
	u32 train_start_us; /* begin of the train, us, wraps */
	u32 samples;	    /* of the round, counted to 8 */

	u32 is_reducing;      /* 0 or 1: a back-off is under way */
	u32 reduce_end_seq;   /* it ends when this is acked */
	u32 reduce_from;      /* window before it, segments */
	u32 reduce_to;	      /* and after it */
	u32 reduce_delivered; /* acked since it began, segments */

	u32 tail;      /* place of the next gradient */
	u32 is_filled; /* 0 or 1: all places have a gradient */
	s64 sum_min_us;
	s64 sum_max_us;
	struct cdg_gradient gradients[CDG_MAX_WINDOW];
};

/* exp(-x 10^-6), in units of 2^-32, below 1. */
static u32 cdg_exp_minus(u32 x)
{
	u64 exponent, t, sum = 1ull << 32;
	u32 i;

	if (x >= CDG_EXP_END)
		return 0;
	/* 2^-(whole part) times e^-t, the latter by its series. */
	exponent = (u64)x * CDG_LOG2_E_MICRO;
	t = (exponent >> (CDG_LOG2_E_SHIFT - 32)) & CC_U32_MAX;
	t = (t * CDG_LN_2) >> 32;
	for (i = CDG_EXP_TERMS; i; i--)
		sum = (1ull << 32) - ((t * sum) >> 32) / i;
	return cc_saturate(sum >> (exponent >> CDG_LOG2_E_SHIFT));
}

static void cdg_new_round(struct cdg *s, const struct cc_in *in)
{
	s->round_end_seq = in->snd_nxt;
	s->prior = s->rtt;
	s->rtt.min_us = 0;
	s->rtt.max_us = 0;
}

/* From a pause on the path is a new one: all but the parameters. */
static void cdg_reset(struct cdg *s, const struct cc_in *in,
		      const struct cc_out *out)
{
	u32 i;

	s->queue = CDG_UNKNOWN;
	s->rtt.min_us = 0;
	s->rtt.max_us = 0;
	cdg_new_round(s, in);
	s->shadow_cwnd = out->snd_cwnd;
	s->backoffs = 0;
	s->delack = 0;
	s->delay_min_us = 0;
	s->last_ack_us = 0;
	s->train_start_us = 0;
	s->samples = 0;
	s->is_reducing = 0;
	s->tail = 0;
	s->is_filled = 0;
	s->sum_min_us = 0;
	s->sum_max_us = 0;
	for (i = 0; i < CDG_MAX_WINDOW; i++) {
		s->gradients[i].min_us = 0;
		s->gradients[i].max_us = 0;
	}
}

/* ---- HyStart ------------------------------------------------------------ */

static u32 cdg_train_is_long(struct cdg *s, const struct cc_in *in,
			     const struct cc_out *out)
{
	u32 now = (u32)in->now_us;

	if (!s->last_ack_us || !cc_is_cwnd_limited(in, out)) {
		s->last_ack_us = now;
		s->train_start_us = now;
		return 0;
	}
	if (!cc_before(now, s->last_ack_us + CDG_HYSTART_ACK_DELTA_US))
		return 0;
	s->last_ack_us = now;
	/* A train of half an RTT fills the pipe one way. */
	return cc_after(now, s->train_start_us + cc_max(s->delay_min_us / 2,
							CDG_HYSTART_MIN_US));
}

static u32 cdg_rtt_is_long(struct cdg *s)
{
	if (s->samples < CDG_HYSTART_MIN_SAMPLES) {
		s->samples++;
		return 0;
	}
	return s->rtt.min_us > cc_max(s->delay_min_us + s->delay_min_us / 8,
				      CDG_HYSTART_MIN_US);
}

static void cdg_hystart(struct cdg *s, const struct cc_in *in,
			struct cc_out *out)
{
	if (s->rtt.min_us &&
	    (!s->delay_min_us || s->rtt.min_us < s->delay_min_us))
		s->delay_min_us = s->rtt.min_us;
	if (!s->delay_min_us)
		return;
	if (((s->hystart & CDG_HYSTART_ACK_TRAIN) &&
	     cdg_train_is_long(s, in, out)) ||
	    ((s->hystart & CDG_HYSTART_DELAY) && cdg_rtt_is_long(s)))
		out->snd_ssthresh = out->snd_cwnd;
}

/* ---- the gradient ------------------------------------------------------- */

static void cdg_judge_queue(struct cdg *s)
{
	u32 min_rises = s->sum_min_us >= CDG_NOTABLE_US;
	u32 max_rises = s->sum_max_us >= CDG_NOTABLE_US;

	/* The largest RTT stops to rise where the queue overflows. */
	if (min_rises && !max_rises)
		s->queue = CDG_FULL;
	else if (min_rises || s->sum_max_us <= -CDG_NOTABLE_US)
		s->queue = CDG_NOT_FULL;
}

/* The rise of the RTT over the window of rounds, us; 0 if it does not rise. */
static u32 cdg_rise(struct cdg *s)
{
	u32 window = cc_clamp(s->window, 1, CDG_MAX_WINDOW);
	struct cdg_gradient *oldest =
		&s->gradients[s->tail & (CDG_MAX_WINDOW - 1)];
	s32 min_us = (s32)(s->rtt.min_us - s->prior.min_us);
	s32 max_us = (s32)(s->rtt.max_us - s->prior.max_us);
	u64 rise;

	/* Sums, so that gradients of a back-off can be left out. */
	s->sum_min_us += (s64)min_us - oldest->min_us;
	s->sum_max_us += (s64)max_us - oldest->max_us;
	oldest->min_us = min_us;
	oldest->max_us = max_us;
	s->tail = (s->tail + 1) % window;
	s->is_filled |= s->tail == 0;

	if (s->sum_min_us <= -CDG_NOTABLE_US ||
	    s->sum_max_us <= -CDG_NOTABLE_US)
		s->backoffs = 0;
	if (s->use_tolerance)
		cdg_judge_queue(s);

	if (s->sum_min_us > 0)
		rise = (u64)s->sum_min_us;
	else if (s->sum_max_us > 0)
		rise = (u64)s->sum_max_us;
	else
		return 0;
	/* Rounds not seen yet are taken to be like those seen. */
	if (!s->is_filled)
		rise = cc_div(rise * window, s->tail);
	return cc_saturate(rise);
}

/* ---- backing off -------------------------------------------------------- */

static void cdg_begin_reduction(struct cdg *s, const struct cc_in *in,
				struct cc_out *out)
{
	s->is_reducing = 1;
	s->reduce_end_seq = in->snd_nxt;
	s->reduce_from = out->snd_cwnd;
	s->reduce_to = cc_max(
		(u32)((u64)out->snd_cwnd * s->backoff_beta / CDG_BETA_SCALE),
		CC_MIN_SSTHRESH);
	s->reduce_delivered = 0;
	out->snd_ssthresh = s->reduce_to;
	out->snd_cwnd_cnt = 0;
}

static u32 cdg_backs_off(struct cdg *s, const struct cc_in *in,
			 struct cc_out *out, u32 rise_us)
{
	u32 x = cc_saturate((u64)rise_us * s->backoff_factor);

	if (cc_random(in, out) <= cdg_exp_minus(x))
		return 0;
	if (s->use_ineff) {
		s->backoffs = cc_add_saturate(s->backoffs, 1);
		if (s->backoffs > s->use_ineff)
			return 0;
	}
	s->shadow_cwnd = cc_max(s->shadow_cwnd, out->snd_cwnd);
	s->queue = CDG_BACKOFF;
	/* The stack's own reductions go first. */
	if (in->ca_state < CC_CA_CWR)
		cdg_begin_reduction(s, in, out);
	return 1;
}

/* After a reduction, whoever made it. */
static void cdg_end_reduction(struct cdg *s, const struct cc_in *in)
{
	s->is_reducing = 0;
	s->queue = CDG_UNKNOWN;
	cdg_new_round(s, in);
}

/* The window falls with what is acked. Returns whether it is still to fall. */
static u32 cdg_reduces(struct cdg *s, const struct cc_in *in,
		       struct cc_out *out)
{
	u32 from = s->reduce_from;
	u32 cut = from > s->reduce_to ? from - s->reduce_to : 0;

	if (cc_after(in->snd_una, s->reduce_end_seq)) {
		cc_set_cwnd(in, out, cc_min(out->snd_cwnd, s->reduce_to));
		cdg_end_reduction(s, in);
		return 0;
	}
	s->reduce_delivered =
		cc_min(cc_add_saturate(s->reduce_delivered, in->acked), from);
	cut = (u32)cc_div((u64)cut * s->reduce_delivered, from);
	cc_set_cwnd(in, out, cc_min(out->snd_cwnd, from - cut));
	return 1;
}

/* ---- ops ---------------------------------------------------------------- */

/*
 * The handshake's RTT is the first sample. Without it the second round seldom
 * had a rise of the smallest RTT, and the largest always rises there, from a
 * burst of the initial window to one of twice that.
 */
static void cdg_init(struct cdg *s, const struct cc_in *in, struct cc_out *out)
{
	cdg_reset(s, in, out);
	s->rtt.min_us = cc_min(in->srtt_us, CDG_MAX_RTT_US);
	s->rtt.max_us = s->rtt.min_us;
}

static void cdg_cong_avoid(struct cdg *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u32 cwnd;

	if (s->is_reducing && cdg_reduces(s, in, out))
		return;
	if (cc_in_slow_start(out) && s->hystart)
		cdg_hystart(s, in, out);

	if (cc_after(in->snd_una, s->round_end_seq) && s->rtt.min_us) {
		u32 rise_us = s->prior.min_us ? cdg_rise(s) : 0;

		cdg_new_round(s, in);
		s->last_ack_us = 0;
		s->samples = 0;
		if (rise_us && cdg_backs_off(s, in, out, rise_us))
			return;
	}

	cwnd = out->snd_cwnd;
	if (!cc_is_cwnd_limited(in, out)) {
		s->shadow_cwnd = cc_min(s->shadow_cwnd, cwnd);
		return;
	}
	cc_reno_cong_avoid(in, out, in->acked);
	if (out->snd_cwnd > cwnd)
		s->shadow_cwnd =
			cc_add_saturate(s->shadow_cwnd, out->snd_cwnd - cwnd);
}

static void cdg_ssthresh(struct cdg *s, const struct cc_in *in,
			 struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;

	(void)in;
	/* One reduction per round: a loss during a back-off is part of it. */
	if (s->is_reducing) {
		s->is_reducing = 0;
		out->ret = cc_max(s->reduce_to, CC_MIN_SSTHRESH);
		return;
	}
	if (s->queue == CDG_BACKOFF) {
		out->ret = (u32)((u64)cwnd * s->backoff_beta / CDG_BETA_SCALE);
	} else if (s->queue == CDG_NOT_FULL && s->use_tolerance) {
		out->ret = cwnd;
	} else {
		s->shadow_cwnd = cc_min(s->shadow_cwnd / 2, cwnd);
		out->ret = cwnd / 2;
		if (s->use_shadow)
			out->ret = cc_max(out->ret, s->shadow_cwnd);
	}
	out->ret = cc_max(out->ret, CC_MIN_SSTHRESH);
}

static void cdg_undo_cwnd(struct cdg *s, const struct cc_in *in,
			  struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void cdg_cwnd_event(struct cdg *s, const struct cc_in *in,
			   struct cc_out *out)
{
	if (in->event == CC_EVENT_CWND_RESTART)
		cdg_reset(s, in, out);
	else if (in->event == CC_EVENT_COMPLETE_CWR)
		cdg_end_reduction(s, in);
}

static void cdg_pkts_acked(struct cdg *s, const struct cc_in *in,
			   struct cc_out *out)
{
	u32 rtt_us;

	(void)out;
	if (in->ack_rtt_us <= 0)
		return;
	rtt_us = (u32)cc_min64((u64)in->ack_rtt_us, CDG_MAX_RTT_US);

	/*
	 * A single packet acked among stretched ACKs likely waited at the
	 * receiver; it can prove a smaller RTT but no larger one.
	 */
	if (!in->sacked_out) {
		if (in->acked == 1 && s->delack) {
			s->rtt.min_us = cc_min(s->rtt.min_us, rtt_us);
			s->delack--;
			return;
		}
		if (in->acked > 1 && s->delack < CDG_MAX_DELACK)
			s->delack++;
	}
	if (!s->rtt.min_us || rtt_us < s->rtt.min_us)
		s->rtt.min_us = rtt_us;
	s->rtt.max_us = cc_max(s->rtt.max_us, rtt_us);
}

/* clang-format off */
#define CDG_OPS(OP)                                                            \
	OP(cdg, init)                                                          \
	OP(cdg, ssthresh)                                                      \
	OP(cdg, cong_avoid)                                                    \
	OP(cdg, undo_cwnd)                                                     \
	OP(cdg, cwnd_event)                                                    \
	OP(cdg, pkts_acked)

CC_ALGORITHM(cdg, struct cdg, CDG_PARAMS, CDG_OPS, 0,
	.summary = "backs off by chance where the RTT rises, the likelier the steeper",
	.source = "Hayes and Armitage, IFIP Networking 2011; Linux 6.12 tcp_cdg.c",
	.use_when = "background and home traffic that shall keep queues short beside loss-based flows",
	.year = 2011)
/* clang-format on */
