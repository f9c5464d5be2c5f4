/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * world.c - a sender, a bottleneck and a receiver, as small as they can be and
 * still bring a congestion control everywhere it can go. The kernel's algorithm
 * closes the loop: its window and its rate decide what is sent.
 *
 *	application -> window, pacer -> queue -> delay -> receiver -> ACK -> sender
 *
 * The sender follows Linux where an algorithm can see it: what is counted when,
 * the rate samples, the order of ops in an ACK, recovery, timeouts, tail loss
 * probes and undo. It is not the simulator's (crates/sim), which is exact where
 * this is quick.
 */
#include "against.h"

#define TP (&against_socket)
#define SK ((struct sock *)&against_socket)
#define STATE (inet_csk(SK)->icsk_ca_state)

#define WINDOW 65536u /* segments remembered; a power of two */
#define MAX_CWND 20000u /* so that a scenario ends */
#define HEADER_BYTES 52u
#define REORDERING 3u
#define MSEC_NS 1000000ull
#define MIN_RTO_NS (200 * MSEC_NS)
#define NEVER (~0ull)

struct segment {
	struct sk_buff skb;
	u64 sent_ns;
	u32 order; /* of its last transmission */
	u8 is_delivered, is_lost, is_retrans, was_retrans;
};

struct transmission { /* in the order they were sent */
	u32 seq, order;
};

struct arrival { /* of an ACK */
	u64 at_ns;
	u32 seq, order;
	u8 is_marked;
};

static struct segment segments[WINDOW];
static struct transmission sent[WINDOW];
static u32 sent_head, sent_tail;
static u32 lost_queue[WINDOW];
static u32 lost_head, lost_tail;
static struct arrival heap[WINDOW];
static u32 n_heap;

static const struct scenario *s;
static u64 now_ns, free_ns, random_state;
static u32 una, nxt; /* segments */
static u32 order, highest_order; /* of transmissions: last, last delivered */
static u64 first_tx_us;
static u64 rto_ns, tlp_ns; /* when the timers fire */
static u32 rto_backoff;
static u32 cwnd_usage_seq;
static u32 undo_order; /* transmissions up to here were not spurious */
static u32 tlp_is_active, tlp_high, tlp_order;
static u64 next_cwr_ns, lumped_ns;
static u32 run_left; /* of lost packets */

static u32 chance(u64 limit, u64 of)
{
	return against_next(&random_state) % of < limit;
}

static struct segment *at(u32 seq)
{
	return &segments[seq & (WINDOW - 1)];
}

/* ---- clock -------------------------------------------------------------- */

static void set_clock(u64 ns)
{
	now_ns = ns;
	against_clock_ns = ns;
	against_jiffies = 1000 + (u32)(ns / (1000000000ull / HZ));
	TP->tcp_mstamp = ns / 1000;
	TP->tcp_clock_cache = ns;
}

/* ---- the path ----------------------------------------------------------- */

static u32 is_later(void)
{
	u64 ms = now_ns / MSEC_NS;

	return s->change_ms && ms >= s->change_ms &&
	       (!s->change_back_ms || ms < s->change_back_ms);
}

static u64 rate_now(void)
{
	return s->rate_later && is_later() ? s->rate_later : s->rate;
}

static u64 rtt_now_ns(void)
{
	return 1000ull * (s->rtt_later_us && is_later() ? s->rtt_later_us :
							   s->rtt_us);
}

static u32 is_black(void)
{
	u64 ms = now_ns / MSEC_NS;

	if (!s->blackout_for_ms || ms < s->blackout_ms)
		return 0;
	ms -= s->blackout_ms;
	if (s->blackout_every_ms)
		ms %= s->blackout_every_ms;
	return ms < s->blackout_for_ms;
}

static u32 is_lost_at_random(void)
{
	if (run_left) {
		run_left--;
		return 1;
	}
	if (!s->loss_ppm || now_ns < s->loss_after_ms * MSEC_NS ||
	    !chance(s->loss_ppm, 1000000))
		return 0;
	run_left = s->loss_run ? s->loss_run - 1 : 0;
	return 1;
}

static void push(struct arrival a)
{
	u32 i = n_heap++;

	while (i && heap[(i - 1) / 2].at_ns > a.at_ns) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = a;
}

static struct arrival pop(void)
{
	struct arrival first = heap[0], last = heap[--n_heap];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < n_heap) {
		if (child + 1 < n_heap &&
		    heap[child + 1].at_ns < heap[child].at_ns)
			child++;
		if (heap[child].at_ns >= last.at_ns)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

static void into_path(u32 seq)
{
	u64 bits = 8ull * (s->mss + HEADER_BYTES);
	u64 packet_ns = bits * 1000000000ull / rate_now();
	u64 bdp_ns = rtt_now_ns();
	u64 room_ns = max(bdp_ns * s->buffer_pct / 100,
			  packet_ns * s->buffer_packets);
	u64 wait_ns = free_ns > now_ns ? free_ns - now_ns : 0;
	struct arrival a = { .seq = seq, .order = at(seq)->order };

	if (is_black() || is_lost_at_random() || wait_ns > room_ns ||
	    n_heap == WINDOW)
		return;
	if (s->mark_pct && wait_ns > room_ns * s->mark_pct / 100)
		a.is_marked = 1;
	free_ns = now_ns + wait_ns + packet_ns;
	a.at_ns = free_ns + rtt_now_ns();
	if (s->jitter_us && chance(s->jitter_ppm, 1000000))
		a.at_ns += 1000ull * (against_next(&random_state) % s->jitter_us);
	if (s->ack_us) {
		u64 lump_ns = 1000ull * s->ack_us;

		a.at_ns = (a.at_ns / lump_ns + 1) * lump_ns;
	}
	push(a);
}

/* ---- the application ---------------------------------------------------- */

/* Segments that it has written so far. */
static u64 written(void)
{
	u64 ms = now_ns / MSEC_NS, n = ~0ull, period;

	if (ms < s->app_from_ms)
		return ~0ull >> 1;
	if (s->app_rate)
		n = now_ns / 1000 * (s->app_rate / 1000) / 8 / 1000 / s->mss +
		    (s->app_from_ms ? 0 : 1);
	if (s->app_segments) {
		period = s->app_on_ms + s->app_off_ms;
		n = min(n, (ms / max(period, 1ull) + 1) * s->app_segments);
	}
	return n;
}

static u64 base_written; /* sent in bulk before app_from_ms */

static u32 has_data(void)
{
	u64 ms = now_ns / MSEC_NS;

	if (ms < s->app_from_ms) {
		base_written = nxt;
		return 1;
	}
	if (s->app_off_ms && !s->app_segments &&
	    ms % (s->app_on_ms + s->app_off_ms) >= s->app_on_ms)
		return 0;
	if (!s->app_rate && !s->app_segments)
		return 1;
	if (base_written) {
		u64 since = 1000 * MSEC_NS / 1000 * s->app_from_ms, keep = now_ns;
		u64 n;

		now_ns -= since;
		n = written();
		now_ns = keep;
		if (n == ~0ull >> 1)
			n = (keep - since) / 1000 * (s->app_rate / 1000) / 8 /
			    1000 / s->mss;
		return nxt < base_written + n;
	}
	return nxt < written();
}

static void check_app_limited(void)
{
	u32 in_flight = tcp_packets_in_flight(TP);

	if (in_flight < TP->snd_cwnd && TP->lost_out <= TP->retrans_out)
		TP->app_limited = max(TP->delivered + in_flight, 1u);
}

/* ---- sending ------------------------------------------------------------ */

static u64 rto_length_ns(void)
{
	u64 rto = TP->srtt_us ? 1000ull * ((TP->srtt_us >> 3) * 2) : 1000 * MSEC_NS;

	return max(rto, (u64)MIN_RTO_NS) << min(rto_backoff, 6u);
}

static void arm_timers(void)
{
	rto_ns = TP->packets_out ? now_ns + rto_length_ns() : NEVER;
	tlp_ns = NEVER;
	if (s->tlp && TP->packets_out && STATE == TCP_CA_Open &&
	    !TP->sacked_out && TP->srtt_us && !tlp_is_active)
		tlp_ns = now_ns + 1000ull * ((TP->srtt_us >> 3) * 2) +
			 2 * MSEC_NS;
}

static void transmit(u32 seq, u32 is_retrans)
{
	struct segment *g = at(seq);
	struct tcp_skb_cb *cb = &g->skb.cb;

	if (!tcp_packets_in_flight(TP))
		against_event(CA_EVENT_TX_START);
	TP->lsndtime = against_jiffies;
	if (!is_retrans) {
		memset(g, 0, sizeof(*g));
		cb->seq = seq * s->mss;
		cb->end_seq = cb->seq + s->mss;
	}
	if (!TP->packets_out) {
		first_tx_us = TP->tcp_mstamp;
		TP->delivered_mstamp = TP->tcp_mstamp;
	}
	cb->tx.first_tx_mstamp = first_tx_us;
	cb->tx.delivered_mstamp = TP->delivered_mstamp;
	cb->tx.delivered = TP->delivered;
	cb->tx.delivered_ce = TP->delivered_ce;
	cb->tx.lost = TP->lost;
	cb->tx.is_app_limited = TP->app_limited != 0;
	if (is_retrans) {
		g->is_retrans = g->was_retrans = 1;
		TP->retrans_out++;
	} else {
		TP->packets_out++;
		nxt++;
		TP->snd_nxt = nxt * s->mss;
	}
	cb->tx.in_flight = tcp_packets_in_flight(TP);
	g->sent_ns = now_ns;
	g->order = ++order;
	sent[sent_tail++ & (WINDOW - 1)] =
		(struct transmission){ .seq = seq, .order = order };
	into_path(seq);
	if (SK->sk_pacing_status != SK_PACING_NONE && SK->sk_pacing_rate)
		TP->tcp_wstamp_ns = max(TP->tcp_wstamp_ns, now_ns) +
				    1000000000ull * s->mss / SK->sk_pacing_rate;
	if (rto_ns == NEVER || !is_retrans)
		arm_timers();
}

static u32 next_lost(u32 *seq)
{
	while (lost_head != lost_tail) {
		*seq = lost_queue[lost_head & (WINDOW - 1)];
		if ((s32)(*seq - una) >= 0 && at(*seq)->is_lost &&
		    !at(*seq)->is_retrans && !at(*seq)->is_delivered)
			return 1;
		lost_head++;
	}
	return 0;
}

static void validate_cwnd(u32 is_limited)
{
	if ((s32)(una - cwnd_usage_seq) >= 0 || is_limited ||
	    (!TP->is_cwnd_limited && TP->packets_out > TP->max_packets_out)) {
		TP->is_cwnd_limited = is_limited;
		TP->max_packets_out = TP->packets_out;
		cwnd_usage_seq = nxt;
	}
}

/* Idle for longer than the RTO: window algorithms begin smaller (RFC 2861). */
static void restart_after_idle(void)
{
	u32 i, idle = against_jiffies - TP->lsndtime;
	u32 rto = (u32)(rto_length_ns() / (1000000000ull / HZ));
	u32 *cwnds[2] = { &TP->snd_cwnd, &against_ours.snd_cwnd };
	u32 *thresholds[2] = { &TP->snd_ssthresh, &against_ours.snd_ssthresh };

	if (against_kernel_ops->cong_control || TP->packets_out || !order ||
	    idle <= rto)
		return;
	against_event(CA_EVENT_CWND_RESTART);
	for (i = 0; i < 2; i++) {
		u32 left = idle;

		*thresholds[i] = max(*thresholds[i], *cwnds[i] / 2 + *cwnds[i] / 4);
		while (left > rto && *cwnds[i] > s->init_cwnd) {
			*cwnds[i] = max(*cwnds[i] / 2, s->init_cwnd);
			left -= rto;
		}
	}
}

/* Everything that may be sent now. */
static void send_all(void)
{
	u32 seq, burst = max(s->burst, 1u), n = 0, is_limited = 0;

	if (SK->sk_pacing_status != SK_PACING_NONE && TP->tcp_wstamp_ns > now_ns)
		return;
	for (;;) {
		u32 is_retrans = next_lost(&seq);

		if (!is_retrans && !has_data()) {
			check_app_limited();
			break;
		}
		if (!is_retrans)
			restart_after_idle();
		if (tcp_packets_in_flight(TP) >= min(TP->snd_cwnd, MAX_CWND)) {
			is_limited = 1;
			break;
		}
		if (!is_retrans && s->receive_window &&
		    TP->packets_out >= s->receive_window)
			break;
		if (!is_retrans && nxt - una >= WINDOW - 2)
			break;
		if (is_retrans) {
			lost_head++;
			transmit(seq, 1);
		} else {
			transmit(nxt, 0);
		}
		if (SK->sk_pacing_status != SK_PACING_NONE && ++n >= burst)
			break;
	}
	validate_cwnd(is_limited ||
		      tcp_packets_in_flight(TP) >= TP->snd_cwnd);
}

/* ---- recovery ----------------------------------------------------------- */

static void mark_lost(u32 seq)
{
	struct segment *g = at(seq);

	if (!g->is_lost) {
		g->is_lost = 1;
		TP->lost_out++;
	}
	if (g->is_retrans) {
		g->is_retrans = 0;
		TP->retrans_out--;
	}
	TP->lost++;
	lost_queue[lost_tail++ & (WINDOW - 1)] = seq;
	against_marked_lost(&g->skb);
}

/* A transmission is lost when three later ones have arrived. */
static void find_losses(void)
{
	while (sent_head != sent_tail) {
		struct transmission *t = &sent[sent_head & (WINDOW - 1)];
		struct segment *g = at(t->seq);

		if ((s32)(t->order + REORDERING - highest_order) > 0)
			break;
		sent_head++;
		if ((s32)(t->seq - una) < 0 || g->is_delivered ||
		    g->order != t->order || (g->is_lost && !g->is_retrans))
			continue;
		mark_lost(t->seq);
	}
}

static void note_reduction(u32 is_undoable)
{
	TP->prior_cwnd = TP->snd_cwnd;
	against_ours.prior_cwnd = against_ours.snd_cwnd;
	TP->prior_ssthresh = is_undoable ? max(TP->snd_ssthresh,
					       TP->snd_cwnd / 2 + TP->snd_cwnd / 4) :
					   0;
	against_ours.prior_ssthresh =
		is_undoable ? max(against_ours.snd_ssthresh,
				  against_ours.snd_cwnd / 2 +
					  against_ours.snd_cwnd / 4) :
			      0;
	TP->undo_marker = is_undoable;
	undo_order = order;
	against_take_ssthresh();
}

static void enter_recovery(void)
{
	note_reduction(1);
	TP->high_seq = nxt;
	against_set_state(TCP_CA_Recovery);
}

static void enter_cwr(void)
{
	if (STATE >= TCP_CA_CWR)
		return;
	note_reduction(0);
	TP->high_seq = nxt;
	against_set_state(TCP_CA_CWR);
}

/* For algorithms without cong_control() the stack sets the window. */
static void end_reduction(void)
{
	if (against_kernel_ops->cong_control)
		return;
	if (TP->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		TP->snd_cwnd = TP->snd_ssthresh;
	if (against_ours.snd_ssthresh < TCP_INFINITE_SSTHRESH)
		against_ours.snd_cwnd = against_ours.snd_ssthresh;
	against_event(CA_EVENT_COMPLETE_CWR);
}

static void undo(void)
{
	u32 seq;

	if (STATE == TCP_CA_Loss || STATE == TCP_CA_Recovery) {
		if (STATE == TCP_CA_Loss)
			for (seq = una; seq != nxt; seq++)
				if (at(seq)->is_lost && !at(seq)->is_retrans) {
					at(seq)->is_lost = 0;
					TP->lost_out--;
				}
		if (TP->prior_ssthresh)
			against_take_undo();
		TP->undo_marker = 0;
		against_set_state(TCP_CA_Open);
	}
}

static void timeout(void)
{
	u32 seq;

	for (seq = una; seq != nxt; seq++)
		if (!at(seq)->is_delivered &&
		    (!at(seq)->is_lost || at(seq)->is_retrans))
			mark_lost(seq);
	sent_head = sent_tail;
	if (STATE <= TCP_CA_Disorder || (s32)(TP->high_seq - una) <= 0 ||
	    (STATE == TCP_CA_Loss && !rto_backoff)) {
		note_reduction(1);
		against_event(CA_EVENT_LOSS);
	}
	TP->snd_cwnd = tcp_packets_in_flight(TP) + 1;
	against_ours.snd_cwnd = TP->snd_cwnd;
	TP->snd_cwnd_cnt = against_ours.snd_cwnd_cnt = 0;
	against_set_state(TCP_CA_Loss);
	TP->high_seq = nxt;
	tlp_is_active = 0;
	rto_backoff++;
	arm_timers();
	/* The first retransmission does not wait. */
	if (next_lost(&seq)) {
		lost_head++;
		transmit(seq, 1);
	}
}

static void probe_tail(void)
{
	struct segment *g = at(nxt - 1);

	tlp_ns = NEVER;
	if (g->is_delivered || g->is_retrans || g->is_lost)
		return;
	tlp_is_active = 1;
	tlp_high = nxt;
	TP->tlp_orig_data_app_limited = g->skb.cb.tx.is_app_limited;
	transmit(nxt - 1, 1);
	tlp_order = order;
}

/* ---- an ACK ------------------------------------------------------------- */

static void note_rtt(struct rate_sample *rs, u32 us)
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
	TP->rtt_min.s[0].v = TP->min_rtt_us;
	TP->rx_opt.rcv_tsval = (u32)(TP->tcp_mstamp / 1000);
	TP->rx_opt.rcv_tsecr = (u32)((TP->tcp_mstamp - us) / 1000);
}

static void deliver(struct arrival a, struct rate_sample *rs, u32 *has_sample)
{
	struct segment *g = at(a.seq);
	struct tcp_skb_cb *cb = &g->skb.cb;
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
	if ((s32)(a.order - highest_order) > 0)
		highest_order = a.order;
	if (!*has_sample || (s32)(cb->tx.delivered - rs->prior_delivered) > 0 ||
	    cb->tx.delivered == rs->prior_delivered) {
		*has_sample = 1;
		rs->prior_delivered = cb->tx.delivered;
		rs->prior_delivered_ce = cb->tx.delivered_ce;
		rs->prior_mstamp = cb->tx.delivered_mstamp;
		rs->prior_lost = cb->tx.lost;
		rs->is_app_limited = cb->tx.is_app_limited;
		rs->is_retrans = g->was_retrans;
		rs->tx_in_flight = cb->tx.in_flight;
		rs->last_end_seq = cb->end_seq;
		rs->snd_interval_us = (u32)(sent_us - cb->tx.first_tx_mstamp);
		first_tx_us = sent_us;
	}
	if (!g->was_retrans && !s->no_rtt)
		rs->rtt_us = (long)(TP->tcp_mstamp - sent_us);
	/* The transmission before the last one arrived: that one was in vain. */
	if (TP->undo_marker && g->was_retrans && a.order != g->order &&
	    (s32)(a.order - undo_order) <= 0 &&
	    (STATE == TCP_CA_Recovery || STATE == TCP_CA_Loss))
		TP->undo_marker = 2;
}

static u32 advance_una(void)
{
	u32 was = una;

	while (una != nxt && at(una)->is_delivered) {
		una++;
		TP->packets_out--;
		TP->sacked_out--;
	}
	TP->snd_una = una * s->mss;
	return una - was;
}

static void finish_sample(struct rate_sample *rs, u32 has_sample,
			  u32 prior_lost)
{
	u32 ack_us;

	if (TP->app_limited && (s32)(TP->delivered - TP->app_limited) > 0)
		TP->app_limited = 0;
	if (rs->acked_sacked)
		TP->delivered_mstamp = TP->tcp_mstamp;
	rs->losses = (int)(TP->lost - prior_lost);
	if (!has_sample || !rs->prior_mstamp) {
		rs->delivered = -1;
		rs->interval_us = -1;
		return;
	}
	rs->delivered = (s32)(TP->delivered - rs->prior_delivered);
	rs->delivered_ce = (s32)(TP->delivered_ce - rs->prior_delivered_ce);
	rs->lost = (s32)(TP->lost - rs->prior_lost);
	ack_us = tcp_stamp_us_delta(TP->tcp_mstamp, rs->prior_mstamp);
	rs->rcv_interval_us = ack_us;
	rs->interval_us = max(ack_us, rs->snd_interval_us);
	if ((u32)rs->interval_us < TP->min_rtt_us)
		rs->interval_us = -1;
}

static void process_tlp(u32 is_duplicate, u32 acked, struct rate_sample *rs)
{
	if (!tlp_is_active || (s32)(una - tlp_high) < 0)
		return;
	if (is_duplicate) {
		tlp_is_active = 0;
	} else if (una != tlp_high) {
		/* It filled a hole: one packet was lost. */
		tlp_is_active = 0;
		against_hold_random(1);
		against_event(CA_EVENT_TLP_RECOVERY);
		note_reduction(0);
		against_set_state(TCP_CA_CWR);
		end_reduction();
		against_set_state(TCP_CA_Open);
		against_hold_random(0);
	} else if (acked) {
		rs->is_acking_tlp_retrans_seq = 1;
	}
}

static void change_state(u32 has_ece)
{
	if (TP->undo_marker == 2)
		undo();
	switch (STATE) {
	case TCP_CA_CWR:
		if ((s32)(una - TP->high_seq) > 0) {
			end_reduction();
			against_set_state(TCP_CA_Open);
		}
		break;
	case TCP_CA_Recovery:
	case TCP_CA_Loss:
		if ((s32)(una - TP->high_seq) >= 0) {
			if (STATE == TCP_CA_Recovery)
				end_reduction();
			TP->undo_marker = 0;
			against_set_state(TCP_CA_Open);
		}
		break;
	default:
		break;
	}
	find_losses();
	/* Also when a recovery has just ended and later packets are lost. */
	if (TP->lost_out && STATE < TCP_CA_Recovery)
		enter_recovery();
	if (has_ece && STATE < TCP_CA_CWR)
		enter_cwr();
	if (STATE <= TCP_CA_Disorder)
		against_set_state(TP->sacked_out ? TCP_CA_Disorder : TCP_CA_Open);
}

/* What Linux does to the window of an algorithm without cong_control(). */
static void reduce(u32 acked)
{
	u32 in_flight = tcp_packets_in_flight(TP);
	u32 *cwnds[2] = { &TP->snd_cwnd, &against_ours.snd_cwnd };
	u32 thresholds[2] = { TP->snd_ssthresh, against_ours.snd_ssthresh };
	u32 i;

	for (i = 0; i < 2; i++)
		*cwnds[i] = max(min(*cwnds[i],
				    max(in_flight + (acked + 1) / 2,
					min(thresholds[i], in_flight + acked))),
				1u);
}

static void control(u32 acked, u32 newly, struct rate_sample *rs)
{
	u32 flags = (rs->is_ece ? FLAG_ECE : 0) |
		    (acked ? FLAG_SND_UNA_ADVANCED : 0) |
		    (rs->is_ack_delayed ? FLAG_ACK_MAYBE_DELAYED : 0);

	if (against_kernel_ops->cong_control) {
		against_cong_control(TP->snd_una, (int)flags, rs);
		return;
	}
	if (STATE == TCP_CA_CWR || STATE == TCP_CA_Recovery)
		reduce(newly);
	else if (acked)
		against_cong_avoid(TP->snd_una, newly);
	/* Twice the window per RTT in slow start, 1.2 times it afterwards. */
	SK->sk_pacing_rate = (u64)TP->snd_cwnd * s->mss * 1000000 /
			     max(TP->srtt_us >> 3, 1u) *
			     (tcp_in_slow_start(TP) ? 20 : 12) / 10;
	SK->sk_pacing_rate = max(SK->sk_pacing_rate, 1ul);
	against_ours.pacing_rate = SK->sk_pacing_rate;
}

static void on_ack(struct score *score, struct difference *first)
{
	struct rate_sample rs;
	struct ack_sample sample;
	u32 has_sample = 0, prior_delivered = TP->delivered;
	u32 prior_lost = TP->lost, acked, n = 0, is_duplicate = 0;

	memset(&rs, 0, sizeof(rs));
	rs.rtt_us = -1;
	rs.prior_in_flight = tcp_packets_in_flight(TP);
	while (n_heap && heap[0].at_ns <= now_ns &&
	       (!s->ack_every || n < s->ack_every)) {
		struct arrival a = pop();
		struct segment *g = at(a.seq);

		n++;
		if ((s32)(a.seq - una) < 0 || (s32)(a.seq - nxt) >= 0 ||
		    g->is_delivered) {
			is_duplicate = 1;
			continue;
		}
		deliver(a, &rs, &has_sample);
	}
	acked = advance_una();
	rs.acked_sacked = TP->delivered - prior_delivered;
	rs.is_ack_delayed = s->delayed_pct && chance(s->delayed_pct, 100);
	if (rs.rtt_us >= 0)
		note_rtt(&rs, (u32)rs.rtt_us);
	if (acked) {
		rto_backoff = 0;
		TP->bytes_acked += (u64)acked * s->mss;
		arm_timers();
	}
	against_ack_event((acked ? 0 : CA_ACK_SLOWPATH) |
			  (rs.is_ece ? CA_ACK_ECE : 0));
	sample.pkts_acked = acked;
	sample.rtt_us = (s32)rs.rtt_us;
	sample.in_flight =
		s->mss * (rs.acked_sacked ?
				  TP->delivered - rs.prior_delivered : 0);
	if (against_kernel_ops->pkts_acked)
		against_pkts_acked(&sample);
	process_tlp(is_duplicate, acked, &rs);
	change_state(rs.is_ece);
	finish_sample(&rs, has_sample, prior_lost);
	control(acked, rs.acked_sacked, &rs);
	against_compare(score, first);
}

/* ---- the loop ----------------------------------------------------------- */

static void begin(void)
{
	n_heap = sent_head = sent_tail = lost_head = lost_tail = 0;
	una = nxt = order = highest_order = 0;
	rto_ns = tlp_ns = NEVER;
	rto_backoff = cwnd_usage_seq = undo_order = 0;
	tlp_is_active = run_left = 0;
	base_written = 0;
	free_ns = lumped_ns = 0;
	next_cwr_ns = s->local_cwr_ms ? s->local_cwr_ms * MSEC_NS : NEVER;
	random_state = s->seed ^ 0x5eed;
	set_clock(50 * MSEC_NS);
	TP->snd_cwnd = against_ours.snd_cwnd = s->init_cwnd;
	TP->snd_ssthresh = against_ours.snd_ssthresh = TCP_INFINITE_SSTHRESH;
	TP->snd_cwnd_clamp = s->clamp ? s->clamp : ~0u;
	TP->mss_cache = TP->advmss = s->mss;
	TP->min_rtt_us = ~0u;
	TP->rtt_min.s[0].v = ~0u;
	TP->reordering = REORDERING;
	TP->app_limited = ~0u;
	TP->lsndtime = against_jiffies;
	/* The handshake: one segment of nothing, and an RTT. */
	TP->delivered = 1;
	TP->delivered_mstamp = TP->tcp_mstamp;
	if (!s->no_rtt) {
		TP->srtt_us = max(s->rtt_us, 1u) << 3;
		TP->min_rtt_us = s->rtt_us;
		TP->rtt_min.s[0].v = s->rtt_us;
	}
	SK->sk_max_pacing_rate = s->max_pacing ? s->max_pacing : ~0ul;
	SK->sk_pacing_rate = against_ours.pacing_rate = ~0ul;
	SK->sk_pacing_shift = 10;
	SK->sk_gso_max_size = 65536;
	SK->sk_state = 1;
	against_sides_init();
}

void against_run(const struct scenario *scenario, struct score *score,
		 struct difference *first)
{
	u64 end_ns, acks = score->acks;
	u32 was_set[N_KINDS], k;

	s = scenario;
	for (k = 0; k < N_KINDS; k++)
		was_set[k] = (u32)first[k].is_set;
	begin();
	end_ns = now_ns + s->ms * MSEC_NS;
	while (now_ns < end_ns && score->acks - acks < s->acks) {
		u64 next = now_ns + MSEC_NS; /* the application may have data */

		send_all();
		if (SK->sk_pacing_status != SK_PACING_NONE &&
		    TP->tcp_wstamp_ns > now_ns)
			next = min(next, TP->tcp_wstamp_ns);
		else if (SK->sk_pacing_status != SK_PACING_NONE &&
			 tcp_packets_in_flight(TP) < min(TP->snd_cwnd, MAX_CWND) &&
			 has_data() && nxt - una < WINDOW - 2 &&
			 (!s->receive_window ||
			  TP->packets_out < s->receive_window))
			next = now_ns + 1000;
		if (n_heap)
			next = min(next, max(heap[0].at_ns, now_ns));
		next = min(next, rto_ns);
		next = min(next, tlp_ns);
		next = min(next, next_cwr_ns);
		set_clock(next);
		if (n_heap && heap[0].at_ns <= now_ns) {
			on_ack(score, first);
		} else if (now_ns >= rto_ns) {
			timeout();
		} else if (now_ns >= tlp_ns) {
			probe_tail();
		} else if (now_ns >= next_cwr_ns) {
			next_cwr_ns = now_ns + s->local_cwr_ms * MSEC_NS;
			if (TP->packets_out)
				enter_cwr();
		}
	}
	for (k = 0; k < N_KINDS; k++)
		if (first[k].is_set && !was_set[k]) {
			first[k].scenario = *s;
			first[k].ack -= acks;
		}
}
