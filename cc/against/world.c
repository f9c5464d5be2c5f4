/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * world.c - what an ACK does, and the loop (world.h).
 */
#include "world.h"

/* ---- an ACK ------------------------------------------------------------- */

static void note_rtt(struct sample *rs, u32 us)
{
	u32 had = TP->srtt_us;

	rs->rtt_us = us;
	if (!had) {
		TP->srtt_us = us << 3;
	} else {
		TP->srtt_us += us - (TP->srtt_us >> 3);
	}
	TP->srtt_us = max(TP->srtt_us, 1u);
	TP->min_rtt_us = min(TP->min_rtt_us, us);
	TP->rcv_tsval = (u32)(TP->tcp_mstamp / 1000);
	TP->rcv_tsecr = (u32)((TP->tcp_mstamp - us) / 1000);
}

static void deliver(struct arrival a, struct sample *rs, u32 *has_sample)
{
	struct segment *g = world_at(a.seq);
	struct packet *cb = &g->packet;
	u64 sent_us = g->sent_ns / 1000;

	g->is_delivered = 1;
	TP->delivered++;
	TP->delivered_ce += a.is_marked;
	rs->is_ece |= a.is_marked;
	if (g->is_lost)
		TP->lost_out--;
	if (g->is_retrans)
		TP->retrans_out--;
	g->is_lost = g->is_retrans = 0;
	TP->sacked_out++; /* until the cumulative ACK passes it */
	if ((s32)(a.order - w.highest_order) > 0)
		w.highest_order = a.order;
	if (!*has_sample || (s32)(cb->delivered - rs->prior_delivered) > 0 ||
	    cb->delivered == rs->prior_delivered) {
		*has_sample = 1;
		rs->prior_delivered = cb->delivered;
		rs->prior_delivered_ce = cb->delivered_ce;
		rs->prior_mstamp = cb->delivered_mstamp;
		rs->prior_lost = cb->lost;
		rs->is_app_limited = cb->is_app_limited;
		rs->is_retrans = g->was_retrans;
		rs->tx_in_flight = cb->in_flight;
		rs->last_end_seq = cb->end_seq;
		rs->snd_interval_us = (u32)(sent_us - cb->first_tx_mstamp);
		w.first_tx_us = sent_us;
	}
	if (!g->was_retrans && !w.s->no_rtt)
		rs->rtt_us = (s64)(TP->tcp_mstamp - sent_us);
	/* The transmission before the last one arrived: that one was in vain. */
	if (TP->undo_marker && g->was_retrans && a.order != g->order &&
	    (s32)(a.order - w.undo_order) <= 0 &&
	    (STATE == CC_CA_RECOVERY || STATE == CC_CA_LOSS))
		TP->undo_marker = 2;
}

static u32 advance_una(void)
{
	u32 was = w.una;

	while (w.una != w.nxt && world_at(w.una)->is_delivered) {
		w.una++;
		TP->packets_out--;
		TP->sacked_out--;
	}
	TP->snd_una = w.una * w.s->mss;
	return w.una - was;
}

static void finish_sample(struct sample *rs, u32 has_sample,
			  u32 prior_lost)
{
	u32 ack_us;

	if (TP->app_limited && (s32)(TP->delivered - TP->app_limited) > 0)
		TP->app_limited = 0;
	if (rs->acked_sacked)
		TP->delivered_mstamp = TP->tcp_mstamp;
	rs->losses = TP->lost - prior_lost;
	if (!has_sample || !rs->prior_mstamp) {
		rs->delivered = -1;
		rs->interval_us = -1;
		return;
	}
	rs->delivered = (s32)(TP->delivered - rs->prior_delivered);
	rs->delivered_ce = (s32)(TP->delivered_ce - rs->prior_delivered_ce);
	rs->lost = (s32)(TP->lost - rs->prior_lost);
	ack_us = (u32)cc_elapsed(TP->tcp_mstamp, rs->prior_mstamp);
	rs->rcv_interval_us = ack_us;
	rs->interval_us = max(ack_us, rs->snd_interval_us);
	if ((u32)rs->interval_us < TP->min_rtt_us)
		rs->interval_us = -1;
}

static void process_tlp(u32 is_duplicate, u32 acked, struct sample *rs)
{
	if (!w.tlp_is_active || (s32)(w.una - w.tlp_high) < 0)
		return;
	if (is_duplicate) {
		w.tlp_is_active = 0;
	} else if (w.una != w.tlp_high) {
		/* It filled a hole: one packet was lost. */
		w.tlp_is_active = 0;
		against_hold_random(1);
		against_event(KNEE_EVENT_TLP_RECOVERY);
		world_note_reduction(0);
		against_set_state(CC_CA_CWR);
		world_end_reduction();
		against_set_state(CC_CA_OPEN);
		against_hold_random(0);
	} else if (acked) {
		rs->is_acking_tlp_retrans_seq = 1;
	}
}

static void change_state(u32 has_ece)
{
	if (TP->undo_marker == 2)
		world_undo();
	switch (STATE) {
	case CC_CA_CWR:
		if ((s32)(w.una - TP->high_seq) > 0) {
			world_end_reduction();
			against_set_state(CC_CA_OPEN);
		}
		break;
	case CC_CA_RECOVERY:
	case CC_CA_LOSS:
		if ((s32)(w.una - TP->high_seq) >= 0) {
			if (STATE == CC_CA_RECOVERY)
				world_end_reduction();
			TP->undo_marker = 0;
			against_set_state(CC_CA_OPEN);
		}
		break;
	default:
		break;
	}
	world_find_losses();
	/* Also when a recovery has just ended and later packets are lost. */
	if (TP->lost_out && STATE < CC_CA_RECOVERY)
		world_enter_recovery();
	if (has_ece && STATE < CC_CA_CWR)
		world_enter_cwr();
	if (STATE <= CC_CA_DISORDER)
		against_set_state(TP->sacked_out ? CC_CA_DISORDER
						 : CC_CA_OPEN);
}

/* What Linux does to the window of an algorithm without cong_control(). */
static void reduce(u32 acked)
{
	u32 in_flight = against_in_flight();
	u32 *cwnds[2] = { &FIRST.snd_cwnd, &SECOND.snd_cwnd };
	u32 thresholds[2] = { FIRST.snd_ssthresh, SECOND.snd_ssthresh };
	u32 i;

	for (i = 0; i < 2; i++)
		*cwnds[i] = max(min(*cwnds[i],
				    max(in_flight + (acked + 1) / 2,
					min(thresholds[i], in_flight + acked))),
				1u);
}

static void control(u32 acked, u32 newly, struct sample *rs)
{
	u32 flags = (rs->is_ece ? CC_ACK_ECE : 0) |
		    (acked ? CC_ACK_SND_UNA_ADVANCED : 0) |
		    (rs->is_ack_delayed ? CC_ACK_MAYBE_DELAYED : 0) |
		    (rs->is_acking_tlp_retrans_seq ? KNEE_ACK_OF_TLP : 0);

	if (against_has_cong_control()) {
		against_cong_control(flags, rs);
		return;
	}
	if (STATE == CC_CA_CWR || STATE == CC_CA_RECOVERY)
		reduce(newly);
	else if (acked)
		against_cong_avoid(newly);
	/* Twice the window per RTT in slow start, 1.2 times it afterwards. */
	FIRST.pacing_rate = (u64)FIRST.snd_cwnd * w.s->mss * 1000000 /
			     max(TP->srtt_us >> 3, 1u) *
			     ((FIRST.snd_cwnd < FIRST.snd_ssthresh) ? 20 : 12) / 10;
	FIRST.pacing_rate = max(FIRST.pacing_rate, 1ull);
	SECOND.pacing_rate = FIRST.pacing_rate;
}

static void on_ack(struct score *score, struct difference *first)
{
	struct sample rs;
	u32 has_sample = 0, prior_delivered = TP->delivered;
	u32 prior_lost = TP->lost, acked, n = 0, is_duplicate = 0;

	memset(&rs, 0, sizeof(rs));
	rs.rtt_us = -1;
	rs.prior_in_flight = against_in_flight();
	while (w.n_heap && w.heap[0].at_ns <= w.now_ns &&
	       (!w.s->ack_every || n < w.s->ack_every)) {
		struct arrival a = world_pop();
		struct segment *g = world_at(a.seq);

		n++;
		if ((s32)(a.seq - w.una) < 0 || (s32)(a.seq - w.nxt) >= 0 ||
		    g->is_delivered) {
			is_duplicate = 1;
			continue;
		}
		deliver(a, &rs, &has_sample);
	}
	acked = advance_una();
	rs.acked_sacked = TP->delivered - prior_delivered;
	rs.is_ack_delayed =
		w.s->delayed_pct && world_chance(w.s->delayed_pct, 100);
	if (rs.rtt_us >= 0)
		note_rtt(&rs, (u32)rs.rtt_us);
	if (acked) {
		w.rto_backoff = 0;
		world_arm_timers();
	}
	/* An ACK with SACK blocks does not take the fast path of Linux. */
	against_ack_event((acked && !TP->sacked_out && STATE == CC_CA_OPEN
				   ? 0
				   : CC_ACK_SLOWPATH) |
			  (rs.is_ece ? CC_ACK_ECE : 0));
	against_pkts_acked(
		acked, rs.rtt_us,
		w.s->mss * (rs.acked_sacked ? TP->delivered - rs.prior_delivered
					    : 0));
	process_tlp(is_duplicate, acked, &rs);
	change_state(rs.is_ece);
	finish_sample(&rs, has_sample, prior_lost);
	control(acked, rs.acked_sacked, &rs);
	against_compare(score, first);
}

/* ---- the loop ----------------------------------------------------------- */

static void begin(void)
{
	w.n_heap = w.sent_head = w.sent_tail = w.lost_head = w.lost_tail = 0;
	w.una = w.nxt = w.last_order = w.highest_order = 0;
	w.rto_ns = w.tlp_ns = NEVER;
	w.rto_backoff = w.cwnd_usage_seq = w.undo_order = 0;
	w.tlp_is_active = w.run_left = 0;
	w.base_written = 0;
	w.free_ns = 0;
	w.next_cwr_ns = w.s->local_cwr_ms ? w.s->local_cwr_ms * MSEC_NS : NEVER;
	w.random_state = w.s->seed ^ 0x5eed;
	world_set_clock(50 * MSEC_NS);
	FIRST.snd_cwnd = SECOND.snd_cwnd = w.s->init_cwnd;
	FIRST.snd_ssthresh = SECOND.snd_ssthresh = CC_INFINITE_SSTHRESH;
	TP->snd_cwnd_clamp = w.s->clamp ? w.s->clamp : ~0u;
	TP->mss_cache = w.s->mss;
	TP->min_rtt_us = ~0u;
	TP->reordering = REORDERING;
	TP->app_limited = ~0u;
	TP->lsndtime = TP->jiffies;
	/* The handshake: one segment of nothing, and an RTT. */
	TP->delivered = 1;
	TP->delivered_mstamp = TP->tcp_mstamp;
	if (!w.s->no_rtt) {
		TP->srtt_us = max(w.s->rtt_us, 1u) << 3;
		TP->min_rtt_us = w.s->rtt_us;
	}
	TP->max_pacing_rate = w.s->max_pacing ? w.s->max_pacing : ~0ull;
	FIRST.pacing_rate = SECOND.pacing_rate = ~0ull;
	TP->gso_max_size = 65536;
	against_sides_init();
}

void against_run(const struct scenario *scenario, struct score *score,
		 struct difference *first)
{
	u64 end_ns, acks = score->acks;
	u32 was_set[N_KINDS], k;

	w.s = scenario;
	for (k = 0; k < N_KINDS; k++)
		was_set[k] = (u32)first[k].is_set;
	begin();
	end_ns = w.now_ns + w.s->ms * MSEC_NS;
	while (w.now_ns < end_ns && score->acks - acks < w.s->acks) {
		u64 next =
			w.now_ns + MSEC_NS; /* the application may have data */

		world_send_all();
		if (FIRST.pacing_status != CC_PACING_NONE &&
		    TP->tcp_wstamp_ns > w.now_ns)
			next = min(next, TP->tcp_wstamp_ns);
		else if (FIRST.pacing_status != CC_PACING_NONE &&
			 against_in_flight() <
				 min(FIRST.snd_cwnd, MAX_CWND) &&
			 world_has_data() && w.nxt - w.una < WINDOW - 2 &&
			 (!w.s->receive_window ||
			  TP->packets_out < w.s->receive_window))
			next = w.now_ns + 1000;
		if (w.n_heap)
			next = min(next, max(w.heap[0].at_ns, w.now_ns));
		next = min(next, w.rto_ns);
		next = min(next, w.tlp_ns);
		next = min(next, w.next_cwr_ns);
		world_set_clock(max(next, w.now_ns));
		if (w.n_heap && w.heap[0].at_ns <= w.now_ns) {
			on_ack(score, first);
		} else if (w.now_ns >= w.rto_ns) {
			world_timeout();
		} else if (w.now_ns >= w.tlp_ns) {
			world_probe_tail();
		} else if (w.now_ns >= w.next_cwr_ns) {
			w.next_cwr_ns = w.now_ns + w.s->local_cwr_ms * MSEC_NS;
			if (TP->packets_out)
				world_enter_cwr();
		}
	}
	for (k = 0; k < N_KINDS; k++)
		if (first[k].is_set && !was_set[k]) {
			first[k].scenario = *w.s;
			first[k].ack -= acks;
		}
}
