/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * sender.c - what the sender sends, and how it recovers (world.h).
 */
#include "world.h"

/* ---- sending ------------------------------------------------------------ */

static u64 rto_length_ns(void)
{
	u64 rto = TP->srtt_us ? 1000ull * ((TP->srtt_us >> 3) * 2)
			      : 1000 * MSEC_NS;

	return max(rto, (u64)MIN_RTO_NS) << min(w.rto_backoff, 6u);
}

void world_arm_timers(void)
{
	w.rto_ns = TP->packets_out ? w.now_ns + rto_length_ns() : NEVER;
	w.tlp_ns = NEVER;
	if (w.s->tlp && TP->packets_out && STATE == CC_CA_OPEN &&
	    !TP->sacked_out && TP->srtt_us && !w.tlp_is_active)
		w.tlp_ns = w.now_ns + 1000ull * ((TP->srtt_us >> 3) * 2) +
			   2 * MSEC_NS;
}

void world_transmit(u32 seq, u32 is_retrans)
{
	struct segment *g = world_at(seq);
	struct packet *cb = &g->packet;

	TP->tcp_wstamp_ns = max(TP->tcp_wstamp_ns, w.now_ns);
	if (!against_in_flight())
		against_event(CC_EVENT_TX_START);
	TP->lsndtime = TP->jiffies;
	if (!is_retrans) {
		memset(g, 0, sizeof(*g));
		cb->seq = seq * w.s->mss;
		cb->end_seq = cb->seq + w.s->mss;
	}
	if (!TP->packets_out) {
		w.first_tx_us = TP->tcp_mstamp;
		TP->delivered_mstamp = TP->tcp_mstamp;
	}
	cb->first_tx_mstamp = w.first_tx_us;
	cb->delivered_mstamp = TP->delivered_mstamp;
	cb->delivered = TP->delivered;
	cb->delivered_ce = TP->delivered_ce;
	cb->lost = TP->lost;
	cb->is_app_limited = TP->app_limited != 0;
	if (is_retrans) {
		g->is_retrans = g->was_retrans = 1;
		TP->retrans_out++;
	} else {
		TP->packets_out++;
		w.nxt++;
		TP->snd_nxt = w.nxt * w.s->mss;
	}
	cb->in_flight = against_in_flight();
	g->sent_ns = w.now_ns;
	g->order = ++w.last_order;
	w.sent[w.sent_tail++ & (WINDOW - 1)] =
		(struct transmission){ .seq = seq, .order = w.last_order };
	world_into_path(seq);
	if (FIRST.pacing_status != CC_PACING_NONE && FIRST.pacing_rate)
		TP->tcp_wstamp_ns +=
			1000000000ull * w.s->mss / FIRST.pacing_rate;
	if (w.rto_ns == NEVER || !is_retrans)
		world_arm_timers();
}

u32 world_next_lost(u32 *seq)
{
	while (w.lost_head != w.lost_tail) {
		*seq = w.lost_queue[w.lost_head & (WINDOW - 1)];
		if ((s32)(*seq - w.una) >= 0 && world_at(*seq)->is_lost &&
		    !world_at(*seq)->is_retrans &&
		    !world_at(*seq)->is_delivered)
			return 1;
		w.lost_head++;
	}
	return 0;
}

static void validate_cwnd(u32 is_limited)
{
	if ((s32)(w.una - w.cwnd_usage_seq) >= 0 || is_limited ||
	    (!TP->is_cwnd_limited && TP->packets_out > TP->max_packets_out)) {
		TP->is_cwnd_limited = is_limited;
		TP->max_packets_out = TP->packets_out;
		w.cwnd_usage_seq = w.nxt;
	}
}

/* Idle for longer than the RTO: window algorithms begin smaller (RFC 2861). */
static void restart_after_idle(void)
{
	u32 i, idle = TP->jiffies - TP->lsndtime;
	u32 rto = (u32)(rto_length_ns() / (1000000000ull / HZ));
	u32 *cwnds[2] = { &FIRST.snd_cwnd, &SECOND.snd_cwnd };
	u32 *thresholds[2] = { &FIRST.snd_ssthresh, &SECOND.snd_ssthresh };

	if (against_has_cong_control() || TP->packets_out ||
	    !w.last_order || idle <= rto)
		return;
	against_event(CC_EVENT_CWND_RESTART);
	for (i = 0; i < 2; i++) {
		u32 left = idle;

		if (!against_own_cwr_is_on(i))
			*thresholds[i] = max(*thresholds[i],
					     *cwnds[i] / 2 + *cwnds[i] / 4);
		while (left > rto && *cwnds[i] > w.s->init_cwnd) {
			*cwnds[i] = max(*cwnds[i] / 2, w.s->init_cwnd);
			left -= rto;
		}
	}
}

/* Everything that may be w.sent now. */
void world_send_all(void)
{
	u32 seq, burst = max(w.s->burst, 1u), n = 0, is_limited = 0;

	if (FIRST.pacing_status != CC_PACING_NONE &&
	    TP->tcp_wstamp_ns > w.now_ns)
		return;
	for (;;) {
		u32 is_retrans = world_next_lost(&seq);

		if (!is_retrans && !world_has_data()) {
			world_check_app_limited();
			break;
		}
		if (!is_retrans)
			restart_after_idle();
		if (against_in_flight() >= min(FIRST.snd_cwnd, MAX_CWND)) {
			is_limited = 1;
			break;
		}
		if (!is_retrans && w.s->receive_window &&
		    TP->packets_out >= w.s->receive_window)
			break;
		if (!is_retrans && w.nxt - w.una >= WINDOW - 2)
			break;
		if (is_retrans) {
			w.lost_head++;
			world_transmit(seq, 1);
		} else {
			world_transmit(w.nxt, 0);
		}
		if (FIRST.pacing_status != CC_PACING_NONE && ++n >= burst)
			break;
	}
	validate_cwnd(is_limited || against_in_flight() >= FIRST.snd_cwnd);
}

/* ---- recovery ----------------------------------------------------------- */

static void mark_lost(u32 seq)
{
	struct segment *g = world_at(seq);

	if (!g->is_lost) {
		g->is_lost = 1;
		TP->lost_out++;
	}
	if (g->is_retrans) {
		g->is_retrans = 0;
		TP->retrans_out--;
	}
	TP->lost++;
	w.lost_queue[w.lost_tail++ & (WINDOW - 1)] = seq;
	against_marked_lost(&g->packet);
}

/* A transmission is lost when three later ones have arrived. */
void world_find_losses(void)
{
	while (w.sent_head != w.sent_tail) {
		struct transmission *t = &w.sent[w.sent_head & (WINDOW - 1)];
		struct segment *g = world_at(t->seq);

		if ((s32)(t->order + REORDERING - w.highest_order) > 0)
			break;
		w.sent_head++;
		if ((s32)(t->seq - w.una) < 0 || g->is_delivered ||
		    g->order != t->order || (g->is_lost && !g->is_retrans))
			continue;
		mark_lost(t->seq);
	}
}

void world_note_reduction(u32 is_undoable)
{
	FIRST.prior_cwnd = FIRST.snd_cwnd;
	SECOND.prior_cwnd = SECOND.snd_cwnd;
	FIRST.prior_ssthresh = is_undoable
				     ? max(FIRST.snd_ssthresh,
					   FIRST.snd_cwnd / 2 + FIRST.snd_cwnd / 4)
				     : 0;
	SECOND.prior_ssthresh =
		is_undoable ? max(SECOND.snd_ssthresh,
				  SECOND.snd_cwnd / 2 +
					  SECOND.snd_cwnd / 4)
			    : 0;
	TP->undo_marker = is_undoable;
	w.tlp_is_active = 0; /* it decides nothing any more */
	w.undo_order = w.last_order;
	against_take_ssthresh();
}

void world_enter_recovery(void)
{
	world_note_reduction(1);
	TP->high_seq = w.nxt;
	against_set_state(CC_CA_RECOVERY);
}

void world_enter_cwr(void)
{
	if (STATE >= CC_CA_CWR)
		return;
	world_note_reduction(0);
	TP->high_seq = w.nxt;
	against_set_state(CC_CA_CWR);
}

/* For algorithms without cong_control() the stack sets the window. */
void world_end_reduction(void)
{
	if (against_has_cong_control())
		return;
	if (FIRST.snd_ssthresh < CC_INFINITE_SSTHRESH)
		FIRST.snd_cwnd = FIRST.snd_ssthresh;
	if (SECOND.snd_ssthresh < CC_INFINITE_SSTHRESH)
		SECOND.snd_cwnd = SECOND.snd_ssthresh;
	against_event(CC_EVENT_COMPLETE_CWR);
}

void world_undo(void)
{
	u32 seq;

	if (STATE == CC_CA_LOSS || STATE == CC_CA_RECOVERY) {
		if (STATE == CC_CA_LOSS)
			for (seq = w.una; seq != w.nxt; seq++)
				if (world_at(seq)->is_lost &&
				    !world_at(seq)->is_retrans) {
					world_at(seq)->is_lost = 0;
					TP->lost_out--;
				}
		against_take_undo();
		TP->undo_marker = 0;
		against_set_state(CC_CA_OPEN);
	}
}

void world_timeout(void)
{
	u32 seq;

	for (seq = w.una; seq != w.nxt; seq++)
		if (!world_at(seq)->is_delivered &&
		    (!world_at(seq)->is_lost || world_at(seq)->is_retrans))
			mark_lost(seq);
	w.sent_head = w.sent_tail;
	if (STATE <= CC_CA_DISORDER || (s32)(TP->high_seq - w.una) <= 0 ||
	    (STATE == CC_CA_LOSS && !w.rto_backoff)) {
		world_note_reduction(1);
		against_event(CC_EVENT_LOSS);
	}
	FIRST.snd_cwnd = against_in_flight() + 1;
	SECOND.snd_cwnd = FIRST.snd_cwnd;
	FIRST.snd_cwnd_cnt = SECOND.snd_cwnd_cnt = 0;
	against_set_state(CC_CA_LOSS);
	TP->high_seq = w.nxt;
	w.tlp_is_active = 0;
	w.rto_backoff++;
	world_arm_timers();
	/* The first retransmission does not wait. */
	if (world_next_lost(&seq)) {
		w.lost_head++;
		world_transmit(seq, 1);
	}
}

void world_probe_tail(void)
{
	struct segment *g = world_at(w.nxt - 1);

	w.tlp_ns = NEVER;
	if (g->is_delivered || g->is_retrans || g->is_lost)
		return;
	w.tlp_is_active = 1;
	w.tlp_high = w.nxt;
	world_transmit(w.nxt - 1, 1);
}
