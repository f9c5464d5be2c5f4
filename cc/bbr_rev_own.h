/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_rev_own.h - what versions 2 and 3 of BBR do each their own way: bbr2.c and
 * bbr3.c define these functions, bbr_rev.h and bbr_rev_ops.h call them.
 *
 * Included by bbr_rev.h only.
 */
#ifndef KNEE_BBR_REV_OWN_H
#define KNEE_BBR_REV_OWN_H

#include "bbr_rev_model.h"

/* A round began: the share of marks, and what to do about it. */
static void bbr_rev_update_alpha(struct bbr_rev *s, const struct cc_in *in,
				 const struct cc_out *out);
/* An ACK says that packets were marked. */
static void bbr_rev_note_marks(struct bbr_rev *s, const struct cc_in *in);
/* Are so many marks too many? */
static u32 bbr_rev_is_marked_too_much(u32 delivered_ce, u64 most);
/* The maxima of the loss round: before the model is updated, within it, and at
 * the end of the ACK. */
static void bbr_rev_take_sample(struct bbr_rev *s, const struct cc_in *in);
static void bbr_rev_take_model_sample(struct bbr_rev *s,
				      const struct cc_in *in);
static void bbr_rev_end_model_sample(struct bbr_rev *s, const struct cc_in *in);
static void bbr_rev_end_sample(struct bbr_rev *s, const struct cc_in *in);
/* Short-term bounds after a round with loss or marks. */
static void bbr_rev_adapt_lower_bounds(struct bbr_rev *s,
				       const struct cc_out *out);
/* A probe was too much; a flight was not. The second returns 1 when there is
 * an upper bound to raise. */
static void bbr_rev_note_bad_probe(struct bbr_rev *s);
static u32 bbr_rev_note_good_flight(struct bbr_rev *s);
/* A packet was marked lost. */
static void bbr_rev_note_loss(struct bbr_rev *s, const struct cc_in *in);
/* inflight_hi when losses or marks end STARTUP at this bdp. */
static u32 bbr_rev_startup_inflight_hi(const struct bbr_rev *s, u32 bdp);
/* Does the bandwidth still grow? */
static void bbr_rev_check_full_bw(struct bbr_rev *s, const struct cc_in *in);
/* ACKs gathered in UP while the window did not limit sending. */
static void bbr_rev_keep_credit(struct bbr_rev *s);
/* inflight_hi was raised in UP. */
static void bbr_rev_note_raise(struct bbr_rev *s);
/* Probes at once, because marks have ceased? Returns 1 when it does. */
static u32 bbr_rev_probe_after_marks(struct bbr_rev *s, const struct cc_in *in);
/* Has UP pushed enough, with inflight_hi not in the way? */
static u32 bbr_rev_pipe_is_full(struct bbr_rev *s, const struct cc_in *in,
				const struct cc_out *out, u32 in_net);
/* A timeout; recovery begins; it was for nothing; a state is entered. */
static void bbr_rev_note_timeout(struct bbr_rev *s, const struct cc_out *out);
static void bbr_rev_note_recovery(struct bbr_rev *s);
static void bbr_rev_note_undo(struct bbr_rev *s, const struct cc_in *in);
static void bbr_rev_note_state(struct bbr_rev *s, const struct cc_in *in,
			       struct cc_out *out);

#endif
