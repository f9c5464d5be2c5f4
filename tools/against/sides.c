/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * sides.c - both algorithms side by side. Each op runs the kernel's function on
 * the socket and ours on the blocks of cc.h, which are filled from the same
 * socket before; windows, thresholds and rates are each side's own.
 */
#include "against.h"

struct tcp_sock against_socket;
struct decided against_ours;
struct tcp_congestion_ops *against_kernel_ops;
static struct tcp_congestion_ops *registered_ops;
struct net against_net = { .ipv4 = { .sysctl_tcp_min_tso_segs = 2 } };
struct net init_net;
u32 against_jiffies, against_random;
u64 against_clock_ns;

const char *const against_kinds[N_KINDS] = { "snd_cwnd", "pacing_rate",
					     "snd_ssthresh", "phase" };

static u64 state[CC_STATE_MAX_BYTES / 8];
static struct cc_in in; /* of the op under way */
static u64 random_state;
static int random_is_held;
static struct decided ours_before; /* of the ACK under way: ours */
static u32 phase_kernel_before, phase_ours_before;
static struct cc_in in_control;

#define TP (&against_socket)
#define SK ((struct sock *)&against_socket)

/* ---- parameters --------------------------------------------------------- */

#define MAX_MODULE_PARAMS 64
static struct {
	const char *name;
	void *where;
	size_t bytes;
	u64 dflt;
} module_params[MAX_MODULE_PARAMS];
static u32 n_module_params;

void against_add_param(const char *name, void *where, size_t bytes)
{
	u64 dflt = 0;

	if (n_module_params == MAX_MODULE_PARAMS || bytes > sizeof(dflt))
		return;
	memcpy(&dflt, where, bytes);
	module_params[n_module_params].name = name;
	module_params[n_module_params].where = where;
	module_params[n_module_params].bytes = bytes;
	module_params[n_module_params++].dflt = dflt;
}

/* "name=value"; 0 when there is no such name. */
static int split(const char *set, const char *name, u64 *value)
{
	size_t n = strlen(name);

	if (strncmp(set, name, n) || set[n] != '=')
		return 0;
	*value = strtoull(set + n + 1, NULL, 0);
	return 1;
}

static int set_module(const char *set)
{
	u32 i;
	u64 value;

	for (i = 0; i < n_module_params; i++)
		if (split(set, module_params[i].name, &value)) {
			memcpy(module_params[i].where, &value,
			       module_params[i].bytes);
			return 1;
		}
	return 0;
}

static int set_ours(const char *set)
{
	u32 i;
	u64 value;

	for (i = 0; i < against_algorithm->n_params; i++)
		if (split(set, against_algorithm->params[i].name, &value)) {
			((u32 *)state)[i] = (u32)value;
			return 1;
		}
	return 0;
}

int against_sides_begin(const struct scenario *s, const char *const *sets,
			int n_sets, const char *const *kernel_sets,
			int n_kernel_sets)
{
	int i;
	u32 p;

	memset(TP, 0, sizeof(*TP));
	memset(state, 0, sizeof(state));
	memset(&against_ours, 0, sizeof(against_ours));
	for (p = 0; p < n_module_params; p++)
		memcpy(module_params[p].where, &module_params[p].dflt,
		       module_params[p].bytes);
	for (p = 0; p < against_algorithm->n_params; p++)
		((u32 *)state)[p] = against_algorithm->params[p].dflt;
	if (s->ecn) {
		/* Each has its own way to say that marks may be used. */
		set_ours("ecn=1");
		set_module("ecn_enable=1");
		TP->ecn_flags = TCP_ECN_OK | TCP_ECN_LOW;
	}
	for (i = 0; i < n_sets; i++)
		if (!set_ours(sets[i])) {
			fprintf(stderr,
				"against: %s has no parameter for --set %s\n",
				against_algorithm->name, sets[i]);
			return 0;
		}
	for (i = 0; i < n_kernel_sets; i++)
		if (!set_module(kernel_sets[i])) {
			fprintf(stderr,
				"against: the kernel's file has no parameter for --kernel %s\n",
				kernel_sets[i]);
			return 0;
		}
	random_state = s->seed;
	random_is_held = 0;
	against_own_cwr_reset();
	return 1;
}

/* ---- what ours is shown ------------------------------------------------- */

void against_fill(struct cc_in *i, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	i->now_us = tp->tcp_mstamp;
	i->clock_ns = tp->tcp_clock_cache;
	i->wstamp_ns = tp->tcp_wstamp_ns;
	i->pacing_rate = sk->sk_pacing_rate;
	i->max_pacing_rate = sk->sk_max_pacing_rate;
	i->jiffies = against_jiffies;
	i->hz = HZ;
	i->lsndtime = tp->lsndtime;
	i->snd_cwnd = tp->snd_cwnd;
	i->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	i->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	i->snd_ssthresh = tp->snd_ssthresh;
	i->prior_cwnd = tp->prior_cwnd;
	i->snd_una = tp->snd_una;
	i->snd_nxt = tp->snd_nxt;
	i->rcv_tsval = tp->rx_opt.rcv_tsval;
	i->rcv_tsecr = tp->rx_opt.rcv_tsecr;
	i->packets_out = tp->packets_out;
	i->sacked_out = tp->sacked_out;
	i->lost_out = tp->lost_out;
	i->retrans_out = tp->retrans_out;
	i->max_packets_out = tp->max_packets_out;
	i->delivered = tp->delivered;
	i->delivered_ce = tp->delivered_ce;
	i->lost = tp->lost;
	i->app_limited = tp->app_limited;
	i->srtt_us = tp->srtt_us >> 3;
	i->min_rtt_us = tp->min_rtt_us;
	i->mss_bytes = tp->mss_cache;
	i->gso_max_bytes = sk->sk_gso_max_size;
	i->reordering = tp->reordering;
	i->pacing_status = sk->sk_pacing_status;
	i->ca_state = inet_csk(sk)->icsk_ca_state;
	i->is_cwnd_limited = tp->is_cwnd_limited;
	i->random = against_random;
	i->ecn_mode = tp->ecn_flags & TCP_ECN_OK ? CC_ECN_CLASSIC : CC_ECN_NONE;
	i->rcv_nxt = tp->rcv_nxt;
}

u32 against_ack_flags(u32 flags)
{
	return (flags & CA_ACK_ECE ? CC_ACK_ECE : 0) |
	       (flags & CA_ACK_SLOWPATH ? CC_ACK_SLOWPATH : 0);
}

void against_fill_sample(struct cc_in *i, const struct rate_sample *rs,
			 u32 flags)
{
	i->ack_flags = flags;
	i->rs_interval_us = rs->interval_us;
	i->rs_rtt_us = rs->rtt_us;
	i->rs_prior_mstamp_us = rs->prior_mstamp;
	i->rs_prior_delivered = rs->prior_delivered;
	i->rs_delivered = rs->delivered;
	i->rs_delivered_ce = rs->delivered_ce;
	i->rs_acked_sacked = rs->acked_sacked;
	i->rs_losses = (u32)rs->losses;
	i->rs_prior_in_flight = rs->prior_in_flight;
	i->rs_snd_interval_us = rs->snd_interval_us;
	i->rs_rcv_interval_us = rs->rcv_interval_us;
	i->rs_last_end_seq = rs->last_end_seq;
	i->rs_is_app_limited = rs->is_app_limited;
	i->rs_is_retrans = rs->is_retrans;
	i->rs_is_ack_delayed = rs->is_ack_delayed;
	i->rs_has_tx = 1;
	i->rs_tx_in_flight = rs->tx_in_flight;
	i->rs_lost = (u32)rs->lost;
}

void against_hold_random(int hold)
{
	if (hold)
		against_random = (u32)(against_next(&random_state) >> 32);
	random_is_held = hold;
}

/* Begins an op: chance, and `in`, before the kernel's function changes the
 * socket. */
static void prepare(void)
{
	if (!random_is_held)
		against_random = (u32)(against_next(&random_state) >> 32);
	memset(&in, 0, sizeof(in));
	against_fill(&in, SK);
	in.snd_cwnd = against_ours.snd_cwnd;
	in.snd_cwnd_cnt = against_ours.snd_cwnd_cnt;
	in.snd_ssthresh = against_ours.snd_ssthresh;
	in.prior_cwnd = against_ours.prior_cwnd;
	in.pacing_rate = against_ours.pacing_rate;
	in.pacing_status = against_ours.pacing_status;
}

/* Our op, if there is one; its result. */
static u32 ours(u32 op)
{
	struct decided *d = &against_ours;
	struct cc_out out;

	if (!against_algorithm->ops[op])
		return 0;
	memset(&out, 0, sizeof(out));
	out.pacing_rate = d->pacing_rate;
	out.pacing_status = d->pacing_status;
	out.snd_cwnd = d->snd_cwnd;
	out.snd_cwnd_cnt = d->snd_cwnd_cnt;
	out.snd_ssthresh = d->snd_ssthresh;
	out.app_limited = in.app_limited;
	against_algorithm->ops[op](state, &in, &out);
	d->pacing_rate = out.pacing_rate;
	d->pacing_status = out.pacing_status;
	d->snd_cwnd = out.snd_cwnd;
	d->snd_cwnd_cnt = out.snd_cwnd_cnt;
	d->snd_ssthresh = out.snd_ssthresh;
	return out.ret;
}

/* ---- ops ---------------------------------------------------------------- */

void against_sides_init(void)
{
	struct ack_sample handshake = { .pkts_acked = 1 };

	against_kernel_ops = registered_ops;
	/* The end that connects is told of the handshake before its init(), and
	 * the initial window is set in between. Ours finds the RTT in srtt_us. */
	handshake.rtt_us = (s32)(TP->srtt_us >> 3);
	if (handshake.rtt_us && against_kernel_ops->pkts_acked) {
		against_kernel_ops->pkts_acked(SK, &handshake);
		TP->snd_cwnd = against_ours.snd_cwnd;
	}
	prepare();
	if (against_kernel_ops->init)
		against_kernel_ops->init(SK);
	/* It may give way to another (dctcp without ECN). */
	if (inet_csk(SK)->icsk_ca_ops)
		against_kernel_ops =
			(struct tcp_congestion_ops *)inet_csk(SK)->icsk_ca_ops;
	ours(CC_OP_init);
}

void against_set_state(u8 new_state)
{
	if (new_state == inet_csk(SK)->icsk_ca_state && new_state < TCP_CA_Loss)
		return;
	prepare();
	in.state = new_state;
	if (against_kernel_ops->set_state)
		against_kernel_ops->set_state(SK, new_state);
	ours(CC_OP_set_state);
	inet_csk(SK)->icsk_ca_state = new_state;
}

void against_event(enum tcp_ca_event event)
{
	prepare();
	in.event = event;
	/* Since Linux 7.1 it is an op of its own. */
	if (event == CA_EVENT_TX_START &&
	    against_kernel_ops->cwnd_event_tx_start)
		against_kernel_ops->cwnd_event_tx_start(SK);
	else if (against_kernel_ops->cwnd_event)
		against_kernel_ops->cwnd_event(SK, event);
	/* Ours has no op for the event of Google's kernels: it sees the states. */
	if (event != CA_EVENT_TLP_RECOVERY)
		ours(CC_OP_cwnd_event);
}

void against_take_ssthresh(void)
{
	u32 ssthresh;

	prepare();
	if (!against_own_cwr_is_taken_over()) {
		ssthresh = against_kernel_ops->ssthresh(SK);
		TP->snd_ssthresh = ssthresh;
	}
	ssthresh = ours(CC_OP_ssthresh);
	against_ours.snd_ssthresh = ssthresh;
}

/* The reduction was spurious. Without a threshold to return to, nothing is
 * undone. */
void against_take_undo(void)
{
	u32 cwnd;

	prepare();
	if (TP->prior_ssthresh) {
		cwnd = against_kernel_ops->undo_cwnd(SK);
		TP->snd_cwnd = cwnd;
		TP->snd_ssthresh = max(TP->snd_ssthresh, TP->prior_ssthresh);
	}
	if (against_ours.prior_ssthresh) {
		cwnd = ours(CC_OP_undo_cwnd);
		against_ours.snd_cwnd = cwnd;
		against_ours.snd_ssthresh = max(against_ours.snd_ssthresh,
						against_ours.prior_ssthresh);
	}
}

void against_marked_lost(struct sk_buff *skb)
{
	if (!against_kernel_ops->skb_marked_lost &&
	    !against_algorithm->ops[CC_OP_skb_marked_lost])
		return;
	prepare();
	in.lost_tx_in_flight = skb->cb.tx.in_flight;
	in.lost_tx_lost = skb->cb.tx.lost;
	in.lost_is_app_limited = skb->cb.tx.is_app_limited;
	if (against_kernel_ops->skb_marked_lost)
		against_kernel_ops->skb_marked_lost(SK, skb);
	ours(CC_OP_skb_marked_lost);
}

void against_ack_event(u32 flags)
{
	prepare();
	in.ack_flags = against_ack_flags(flags);
	if (against_kernel_ops->in_ack_event)
		against_kernel_ops->in_ack_event(SK, flags);
	ours(CC_OP_in_ack_event);
}

void against_pkts_acked(const struct ack_sample *sample)
{
	prepare();
	in.acked = sample->pkts_acked;
	in.ack_rtt_us = sample->rtt_us;
	in.ack_in_flight_bytes = sample->in_flight;
	if (against_kernel_ops->pkts_acked)
		against_kernel_ops->pkts_acked(SK, sample);
	ours(CC_OP_pkts_acked);
}

static u32 phase_of_kernel(void)
{
	union tcp_cc_info info;
	int attr = 0;

	if (!against_kernel_ops->get_info)
		return 0;
	memset(&info, 0, sizeof(info));
	against_kernel_ops->get_info(SK, ~0u, &attr, &info);
	if (attr != INET_DIAG_BBRINFO)
		return 0;
	return info.bbr.bbr_phase;
}

static u32 phase_of_ours(void)
{
	struct cc_info info;

	if (!against_algorithm->get_info)
		return 0;
	memset(&info, 0, sizeof(info));
	against_algorithm->get_info(state, &in, &info);
	return info.phase + 1;
}

/* Where one of them does not tell its phase, there is nothing to compare. */
static int phases_are_told(void)
{
	return phase_of_kernel() && phase_of_ours();
}

static void note_before(void)
{
	ours_before = against_ours;
	phase_kernel_before = phase_of_kernel();
	phase_ours_before = phase_of_ours();
	in_control = in;
}

void against_cong_avoid(u32 ack, u32 acked)
{
	prepare();
	in.acked = acked;
	note_before();
	if (!against_own_cwr_reduces(acked))
		against_kernel_ops->cong_avoid(SK, ack, acked);
	ours(CC_OP_cong_avoid);
}

void against_cong_control(u32 ack, int flag, const struct rate_sample *rs)
{
	prepare();
	against_fill_sample(&in, rs, (u32)flag);
	note_before();
#ifdef AGAINST_CONG_CONTROL_2
	(void)ack;
	against_kernel_ops->cong_control(SK, rs);
#else
	against_kernel_ops->cong_control(SK, ack, flag, rs);
#endif
	ours(CC_OP_cong_control);
}

/* ---- are they equal? ---------------------------------------------------- */

void against_compare(struct score *score, struct difference *first)
{
	struct decided *d = &against_ours;
	u64 kernel[N_KINDS] = { TP->snd_cwnd, SK->sk_pacing_rate,
				TP->snd_ssthresh, 0 };
	u64 mine[N_KINDS] = { d->snd_cwnd, d->pacing_rate, d->snd_ssthresh, 0 };
	u32 k, equal = 1;

	if (phases_are_told()) {
		kernel[PHASE] = phase_of_kernel();
		mine[PHASE] = phase_of_ours();
	}
	score->acks++;
	for (k = 0; k < N_KINDS; k++) {
		if (kernel[k] == mine[k])
			continue;
		equal = 0;
		score->differ[k]++;
		if (first[k].is_set)
			continue;
		first[k].is_set = 1;
		first[k].ack = score->acks;
		first[k].kernel = kernel[k];
		first[k].ours = mine[k];
		first[k].phase_kernel = phase_kernel_before;
		first[k].phase_ours = phase_ours_before;
		first[k].in = in_control;
		first[k].before = ours_before;
	}
	score->equal += equal;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	/* A file may register two (dctcp); the first is the algorithm. */
	if (!registered_ops)
		against_kernel_ops = registered_ops = ops;
	return 0;
}
