/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Vegas - keep a few packets in the queue, and no more.
 *
 * A queue shows in the round-trip time before it overflows. The smallest RTT
 * seen is the path's own; what the window would carry in that time, less what
 * it does carry, stands in the queue. Vegas keeps between alpha and beta
 * packets there, adjusting once per round trip by one. Beside a flow that
 * fills the queue it is starved: it takes that flow's queue for its own.
 *
 * Equations (w = snd_cwnd, rtt = smallest of the round, base = smallest ever)
 *	diff = w (rtt - base) / base
 *	avoidance, once per RTT:  w += 1 if diff < alpha, w -= 1 if diff > beta
 *	slow start ends at diff > gamma:  w = min(w, w base / rtt + 1)
 *	loss:	as Reno
 *
 * Source: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on
 *	a Global Internet", IEEE JSAC 13(8), 1995, sections IV and V; Linux 6.12
 *	net/ipv4/tcp_vegas.c.
 *
 * Differs from source:
 *	- The paper doubles the window every other round trip in slow start and
 *	  retransmits on finer timeouts; Linux and this file do not.
 *	- The paper's diff is (expected - actual) base = w (rtt - base) / rtt;
 *	  Linux and this file divide by base, so a queue of a whole base RTT
 *	  counts twice as much.
 *	- Linux and this file forget base at each start after a pause, also one
 *	  of the application's: it then learns it with its own queue in place.
 */
#include "vegas_rtt.h"

/* No window below two segments (Linux). */
#define VEGAS_MIN_CWND 2u

/* clang-format off */
#define VEGAS_PARAMS(P)                                                        \
	P(alpha, 2, 0, 1000, "segments",                                       \
	  "least in the queue, else the window grows; Linux: 2, the paper: 1 to 3") \
	P(beta, 4, 0, 1000, "segments",                                        \
	  "most in the queue, else the window shrinks; Linux: 4, the paper: 3 to 6") \
	P(gamma, 1, 0, 1000, "segments",                                       \
	  "in the queue when slow start ends; the paper, section V.C: 1")
/* clang-format on */

struct vegas {
	CC_PARAM_FIELDS(VEGAS_PARAMS)

	struct vegas_rtt rtt;
};

static void vegas_init(struct vegas *s, const struct cc_in *in,
		       struct cc_out *out)
{
	(void)out;
	vegas_rtt_init(&s->rtt, in);
}

static void vegas_ssthresh(struct vegas *s, const struct cc_in *in,
			   struct cc_out *out)
{
	(void)s;
	(void)in;
	out->ret = cc_reno_ssthresh(out);
}

/* What tcp_info shows as ssthresh, and what an idle connection keeps. */
static u32 vegas_current_ssthresh(const struct cc_in *in,
				  const struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;

	if (in->ca_state == CC_CA_CWR || in->ca_state == CC_CA_RECOVERY)
		return out->snd_ssthresh;
	return cc_max(out->snd_ssthresh, (cwnd >> 1) + (cwnd >> 2));
}

static void vegas_adjust(struct vegas *s, const struct cc_in *in,
			 struct cc_out *out)
{
	u32 cwnd = out->snd_cwnd;
	u32 diff = vegas_rtt_queued(&s->rtt, cwnd, s->rtt.base_us);

	if (cc_in_slow_start(out)) {
		if (diff > s->gamma) {
			u64 target = cc_div((u64)cwnd * s->rtt.base_us,
					    s->rtt.min_us);

			out->snd_cwnd = cc_min(cwnd, cc_saturate(target + 1));
			out->snd_ssthresh =
				cc_min(out->snd_ssthresh, out->snd_cwnd);
		} else {
			cc_slow_start(in, out, in->acked);
		}
	} else if (diff > s->beta) {
		out->snd_cwnd = cc_max(cwnd, 1) - 1;
		out->snd_ssthresh = cc_min(out->snd_ssthresh, out->snd_cwnd);
	} else if (diff < s->alpha) {
		out->snd_cwnd = cc_add_saturate(cwnd, 1);
	}
	cc_set_cwnd(in, out, cc_max(out->snd_cwnd, VEGAS_MIN_CWND));
	out->snd_ssthresh = vegas_current_ssthresh(in, out);
}

static void vegas_cong_avoid(struct vegas *s, const struct cc_in *in,
			     struct cc_out *out)
{
	if (!s->rtt.is_on) {
		cc_reno_cong_avoid(in, out, in->acked);
		return;
	}
	if (vegas_rtt_round_ends(&s->rtt, in)) {
		if (s->rtt.samples >= VEGAS_MIN_SAMPLES)
			vegas_adjust(s, in, out);
		else
			cc_reno_cong_avoid(in, out, in->acked);
		vegas_rtt_new_round(&s->rtt);
	} else if (cc_in_slow_start(out)) {
		cc_slow_start(in, out, in->acked);
	}
}

static void vegas_undo_cwnd(struct vegas *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)s;
	out->ret = cc_reno_undo_cwnd(in, out);
}

static void vegas_set_state(struct vegas *s, const struct cc_in *in,
			    struct cc_out *out)
{
	(void)out;
	vegas_rtt_set_state(&s->rtt, in);
}

static void vegas_cwnd_event(struct vegas *s, const struct cc_in *in,
			     struct cc_out *out)
{
	(void)out;
	if (vegas_rtt_is_restart(in))
		vegas_rtt_init(&s->rtt, in);
}

static void vegas_pkts_acked(struct vegas *s, const struct cc_in *in,
			     struct cc_out *out)
{
	(void)out;
	vegas_rtt_sample(&s->rtt, in);
}

/* clang-format off */
#define VEGAS_OPS(OP)                                                          \
	OP(vegas, init)                                                        \
	OP(vegas, ssthresh)                                                    \
	OP(vegas, cong_avoid)                                                  \
	OP(vegas, undo_cwnd)                                                   \
	OP(vegas, set_state)                                                   \
	OP(vegas, cwnd_event)                                                  \
	OP(vegas, pkts_acked)

CC_ALGORITHM(vegas, struct vegas, VEGAS_PARAMS, VEGAS_OPS, 0,
	.summary = "keeps two to four packets in the queue, by the round-trip time",
	.source = "Brakmo and Peterson, IEEE JSAC 13(8) 1995; Linux 6.12 tcp_vegas.c",
	.use_when = "low delay where nobody else fills the queue; starved beside loss-based flows",
	.year = 1995)
/* clang-format on */
