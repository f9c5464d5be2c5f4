/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * adapter.c - a congestion control of the kernel as an algorithm of the
 * contract (cc.h). Compiled with the kernel's file into one shared object.
 *
 * A connection's state is the parameters and a socket. Before each op the
 * socket's fields are filled from `in`; the op is the kernel's function on that
 * socket; after it, what an algorithm decides is taken from the socket into
 * `out`. What the file keeps in fields that only it reads stays in the socket.
 *
 * A module has one set of parameters, a connection here its own. So they are
 * set, and module_init() runs again, when another set than the last one's is
 * asked for: a file may compute of its parameters when it is loaded.
 */
#include "cc_algorithm.h" /* with CC_FILE: cc_file.h */
#define KNEE_ADAPTER
#include "kernel.h"
#include "tlp.h"

#ifndef KNEE_HEAP_BYTES /* asked for where the file allocates */
#define KNEE_HEAP_BYTES 0
#endif
#define MAX_PARAMS 64
#define GUARD 0x6b6e65656b6e6565ull

KNEE_OF_PROCESS int vsnprintf(char *where, size_t n, const char *text,
			      __builtin_va_list values);
KNEE_OF_PROCESS long write(int file, const void *what, unsigned long n);
KNEE_OF_PROCESS void *calloc(size_t n, size_t bytes);

struct connection {
	struct tcp_sock tp;
	u32 last_una, last_clamp, last_delivered;
	u32 heap_used;
	u64 heap[KNEE_HEAP_BYTES / 8];
};

/* ---- the op under way ---------------------------------------------------- */

struct net knee_net = { .ipv4 = { .sysctl_tcp_min_tso_segs = 2 } };
int knee_hz = 250;
unsigned long jiffies;
u32 tcp_time_stamp;
u64 knee_clock_ns;

static int is_running; /* one op at a time: the module's data is one */
static struct connection *connection; /* 0: module_init() */
static const struct cc_in *shown;
static struct cc_out *decided;
static u32 n_drawn;
static struct tcp_congestion_ops *registered;
static struct cc_algorithm algorithm;

static void begin_alone(void)
{
	while (__atomic_test_and_set(&is_running, __ATOMIC_ACQUIRE))
		;
}

static void end_alone(void)
{
	__atomic_clear(&is_running, __ATOMIC_RELEASE);
}

/* ---- what it prints ------------------------------------------------------ */

#define MAX_LINES 20
static u32 n_lines;
static int is_reloading;

/* In module_init() nobody knows it yet. */
static const char *name(void)
{
	return algorithm.name ? algorithm.name : "module_init()";
}

static void say(const char *line, int n)
{
	if (n > 0 && write(2, line, (unsigned long)n) < 0)
		return;
}

int knee_printk(const char *text, ...)
{
	char line[400];
	__builtin_va_list values;
	int at, n, i;

	if (is_reloading || n_lines > MAX_LINES)
		return 0;
	if (n_lines++ == MAX_LINES) {
		at = snprintf(line, sizeof(line),
			      "%s: prints more, which is not shown\n",
			      name());
		say(line, at);
		return 0;
	}
	at = snprintf(line, sizeof(line), "%s: [%llu.%06llu] ",
		      name(),
		      knee_clock_ns / 1000000000, knee_clock_ns / 1000 % 1000000);
	__builtin_va_start(values, text);
	n = vsnprintf(line + at, sizeof(line) - (size_t)at - 1, text, values);
	__builtin_va_end(values);
	n = min(at + max(n, 0), (int)sizeof(line) - 2);
	while (n > at && line[n - 1] == '\n')
		n--;
	for (i = at; i < n; i++) /* nothing that a terminal obeys */
		if ((u8)line[i] < ' ' || (u8)line[i] == 0x7f)
			line[i] = ' ';
	line[n++] = '\n';
	say(line, n);
	return n - at;
}

/* ---- memory -------------------------------------------------------------- */

/* Blocks one behind the other, each behind a word with its size and whether it
 * is in use. */
#define IN_USE 1u

void *knee_allocate(size_t bytes)
{
	u32 at, size = (u32)((bytes + 7) / 8 * 8);
	u64 *word;

	if (!connection)
		return calloc(1, bytes);
	if (bytes > KNEE_HEAP_BYTES)
		return NULL;
	for (at = 0; at < connection->heap_used; at += 8 + (u32)(*word & ~7ull)) {
		word = &connection->heap[at / 8];
		if (!(*word & IN_USE) && *word >= size) {
			*word |= IN_USE;
			return memset(word + 1, 0, bytes);
		}
	}
	if (at + 8 + size > KNEE_HEAP_BYTES)
		return NULL;
	word = &connection->heap[at / 8];
	*word = size | IN_USE;
	connection->heap_used = at + 8 + size;
	return memset(word + 1, 0, bytes);
}

void knee_free(const void *p)
{
	if (p && connection)
		((u64 *)p)[-1] &= ~(u64)IN_USE;
}

/* ---- chance -------------------------------------------------------------- */

/*
 * The contract gives 32 random bits per op. The first draw gets them as they
 * are, as the first of ours does; further ones are drawn from them. A toss of a
 * coin gets the low half: so ours do where they also draw another number.
 */
u32 get_random_u32(void)
{
	u64 x;

	if (!shown)
		return 0;
	decided->random_drawn = 1;
	if (!n_drawn++)
		return shown->random;
	x = ((u64)shown->random << 32 | shown->random) +
	    n_drawn * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (u32)(x >> 32);
}

u32 get_random_u32_below(u32 n)
{
	if (n == 2 && shown) {
		decided->random_drawn = 1;
		return shown->random >> 15 & 1;
	}
	return (u32)((u64)get_random_u32() * n >> 32);
}

void get_random_bytes(void *where, size_t n)
{
	u8 *to = where;
	u32 random = 0;
	size_t i;

	for (i = 0; i < n; i++, random >>= 8) {
		if (i % 4 == 0)
			random = get_random_u32();
		to[i] = (u8)random;
	}
}

/* ---- what the stack does for it ------------------------------------------ */

void tcp_enter_cwr(struct sock *sk)
{
	(void)sk;
	if (decided)
		decided->enter_cwr = 1;
}

void tcp_enter_quickack_mode(struct sock *sk, unsigned int max_quickacks)
{
	(void)max_quickacks;
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

void knee_send_ack(struct sock *sk, u32 rcv_nxt)
{
	if (!decided)
		return;
	decided->ack_prior = tcp_sk(sk)->ecn_flags & TCP_ECN_DEMAND_CWR
				     ? CC_ACK_PRIOR_ECE
				     : CC_ACK_PRIOR_PLAIN;
	decided->ack_prior_seq = rcv_nxt;
}

/* A file may register two, as dctcp does; the first is the algorithm. */
int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	if (!registered)
		registered = ops;
	return 0;
}

/* ---- parameters ---------------------------------------------------------- */

extern const struct knee_param __start_knee_params[]
	__attribute__((weak, visibility("hidden")));
extern const struct knee_param __stop_knee_params[]
	__attribute__((weak, visibility("hidden")));
extern const struct knee_param_text __start_knee_param_texts[]
	__attribute__((weak, visibility("hidden")));
extern const struct knee_param_text __stop_knee_param_texts[]
	__attribute__((weak, visibility("hidden")));

static const struct knee_param *variables[MAX_PARAMS];
static struct cc_param params[MAX_PARAMS];
static u32 applied[MAX_PARAMS];

static u64 value_of(const struct knee_param *p)
{
	u64 value = 0;

	memcpy(&value, p->where, min(p->bytes, 8u));
	return value;
}

static const char *text_of(const char *name)
{
	const struct knee_param_text *t;

	for (t = __start_knee_param_texts; t < __stop_knee_param_texts; t++)
		if (!strcmp(t->name, name))
			return t->text;
	return "a parameter of the module";
}

static void list_params(void)
{
	const struct knee_param *p;

	for (p = __start_knee_params; p < __stop_knee_params; p++) {
		struct cc_param *of = &params[algorithm.n_params];
		u32 bits = 8 * p->bytes - p->is_signed;
		u64 value = value_of(p);

		/* A number of 32 bits; one that has more stays as it is. */
		if (!p->where || algorithm.n_params == MAX_PARAMS ||
		    (value > U32_MAX && !p->is_signed))
			continue;
		variables[algorithm.n_params] = p;
		applied[algorithm.n_params++] = (u32)value;
		of->name = p->name;
		of->dflt = (u32)value;
		of->max = p->is_bool ? 1 : bits > 31 ? U32_MAX : (1u << bits) - 1;
		if (of->dflt > of->max) /* negative: its 32 bits */
			of->max = U32_MAX;
		of->unit = "";
		of->doc = text_of(p->name);
	}
	algorithm.params = params;
}

static void apply(const u32 *asked)
{
	u32 i;

	for (i = 0; i < algorithm.n_params; i++) {
		const struct knee_param *p = variables[i];
		u64 value = asked[i];

		if (p->is_signed && asked[i] > S32_MAX)
			value = (u64)(s64)(s32)asked[i];
		memcpy(p->where, &value, min(p->bytes, 8u));
		applied[i] = asked[i];
	}
	is_reloading = 1;
	knee_module_init();
	is_reloading = 0;
}

/* ---- the socket ---------------------------------------------------------- */

static u32 at_offset(void)
{
	return (algorithm.n_params * (u32)sizeof(u32) + 7) / 8 * 8;
}

#ifdef KNEE_HZ
/* A clock of other jiffies than it was built for. */
static u32 in_ticks(u32 at, u32 hz)
{
	return hz && hz != KNEE_HZ ? (u32)((u64)at * KNEE_HZ / hz) : at;
}
#else
#define in_ticks(at, hz) (at)
#endif

static void fill(struct connection *c, const struct cc_in *in,
		 const struct cc_out *out)
{
	struct tcp_sock *tp = &c->tp;
	struct sock *sk = (struct sock *)tp;
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (!icsk->icsk_ca_ops) { /* the first op */
		icsk->icsk_ca_ops = registered;
		icsk->knee_guard = GUARD;
		sk->sk_state = TCP_ESTABLISHED;
		sk->sk_family = AF_INET;
		sk->sk_pacing_shift = 10;
		c->last_una = in->snd_una;
		c->last_delivered = in->delivered;
		tp->delivered_mstamp = knee_mstamp_of(in->now_us);
	}
	sk->sk_pacing_rate = (unsigned long)out->pacing_rate;
	sk->sk_pacing_status = out->pacing_status;
	sk->sk_max_pacing_rate = (unsigned long)in->max_pacing_rate;
	sk->sk_gso_max_size = in->gso_max_bytes;
	icsk->icsk_ca_state = (u8)in->ca_state;
	icsk->icsk_ack.pending =
		in->ack_state & CC_ACK_STATE_DELAYED ? ICSK_ACK_TIMER : 0;
	tp->ecn_flags = (u8)((tp->ecn_flags & TCP_ECN_ECT_PERMANENT) |
			     (in->ecn_mode == CC_ECN_CLASSIC
				      ? TCP_ECN_OK | TCP_ECN_LOW
				      : 0) |
			     (in->ecn_mode == CC_ECN_ACCURATE
				      ? TCP_ECN_MODE_ACCECN | TCP_ECN_LOW
				      : 0) |
			     (in->ack_state & CC_ACK_STATE_ECHO
				      ? TCP_ECN_DEMAND_CWR
				      : 0));
	tp->snd_cwnd = out->snd_cwnd;
	tp->snd_cwnd_cnt = out->snd_cwnd_cnt;
	tp->snd_ssthresh = out->snd_ssthresh;
	tp->app_limited = out->app_limited;
	if (c->last_clamp != in->snd_cwnd_clamp)
		tp->snd_cwnd_clamp = c->last_clamp = in->snd_cwnd_clamp;
	tp->tcp_mstamp = knee_mstamp_of(in->now_us);
	tp->tcp_clock_cache = in->clock_ns;
	tp->tcp_wstamp_ns = in->wstamp_ns;
	tp->bytes_acked += in->snd_una - c->last_una;
	c->last_una = in->snd_una;
	tp->prior_cwnd = in->prior_cwnd;
	tp->snd_una = in->snd_una;
	tp->snd_nxt = in->snd_nxt;
	tp->rcv_nxt = in->rcv_nxt;
	tp->packets_out = in->packets_out;
	tp->sacked_out = in->sacked_out;
	tp->lost_out = in->lost_out;
	tp->retrans_out = in->retrans_out;
	tp->max_packets_out = in->max_packets_out;
	tp->delivered = in->delivered;
	tp->delivered_ce = in->delivered_ce;
	tp->lost = in->lost;
	tp->data_segs_out =
		in->delivered + in->lost + tcp_packets_in_flight(tp);
	tp->srtt_us = in->srtt_us << 3;
	tp->rtt_min.s[0].v = in->min_rtt_us;
	tp->mss_cache = tp->advmss = in->mss_bytes;
	tp->lsndtime = in_ticks(in->lsndtime, in->hz);
	tp->reordering = in->reordering;
	tp->is_cwnd_limited = !!in->is_cwnd_limited;
	tp->rx_opt.rcv_tsval = in->rcv_tsval;
	tp->rx_opt.rcv_tsecr = in->rcv_tsecr;
	tp->rx_opt.saw_tstamp = in->rcv_tsval || in->rcv_tsecr;
}

/* Begins an op: the socket as the stack shows it. */
static struct sock *enter(void *state, const struct cc_in *in,
			  struct cc_out *out)
{
	struct connection *c = (void *)((char *)state + at_offset());
	u32 i;

	begin_alone();
	connection = c;
	shown = in;
	decided = out;
	n_drawn = 0;
	knee_hz = (int)max(in->hz, 1u);
	jiffies = in_ticks(in->jiffies, in->hz);
	tcp_time_stamp = (u32)jiffies;
	knee_clock_ns = in->clock_ns;
	for (i = 0; i < algorithm.n_params; i++)
		if (applied[i] != ((const u32 *)state)[i]) {
			apply(state);
			break;
		}
	fill(c, in, out);
	return (struct sock *)&c->tp;
}

static const struct tcp_congestion_ops *ops_of(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_ops;
}

/* Ends it: what the algorithm decided. */
static void leave(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cc_out *out = decided;

	if (inet_csk(sk)->knee_guard != GUARD) {
		is_reloading = n_lines = 0;
		printk("writes beyond the %d bytes of its private area",
		       KNEE_PRIVATE_BYTES);
		__builtin_trap();
	}
	out->pacing_rate = sk->sk_pacing_rate;
	out->pacing_status = sk->sk_pacing_status;
	if (!tp->snd_cwnd) {
		WARN_ONCE(1, "sets snd_cwnd to 0, which is taken for 1");
		tp->snd_cwnd = 1;
	}
	out->snd_cwnd = tp->snd_cwnd;
	out->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	out->snd_ssthresh = tp->snd_ssthresh;
	out->app_limited = tp->app_limited;
	out->ecn_echo = !!(tp->ecn_flags & TCP_ECN_DEMAND_CWR);
	out->ack_now = !!(inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW);
	shown = NULL;
	decided = NULL;
	connection = NULL;
	end_alone();
}

/* ---- ops ----------------------------------------------------------------- */

#define OP(op)                                                      \
	static void run_##op(void *state, const struct cc_in *in,   \
			     struct cc_out *out)

OP(init)
{
	struct sock *sk = enter(state, in, out);

	if (ops_of(sk)->init)
		ops_of(sk)->init(sk);
	leave(sk);
}

OP(ssthresh)
{
	struct sock *sk = enter(state, in, out);

	out->ret = ops_of(sk)->ssthresh(sk);
	leave(sk);
}

OP(cong_avoid)
{
	struct sock *sk = enter(state, in, out);
	u32 n = in->acked;

#ifdef KNEE_OLD_CONG_AVOID
	n = tcp_packets_in_flight(tcp_sk(sk)) + in->acked;
#endif
	if (ops_of(sk)->cong_avoid)
		ops_of(sk)->cong_avoid(sk, in->snd_una, n);
	leave(sk);
}

OP(cong_control)
{
	struct sock *sk = enter(state, in, out);
	struct tcp_sock *tp = tcp_sk(sk);
	struct rate_sample rs = {
		.prior_mstamp = knee_mstamp_of(in->rs_prior_mstamp_us),
		.prior_delivered = in->rs_prior_delivered,
		.prior_delivered_ce =
			in->delivered_ce - (u32)in->rs_delivered_ce,
		.delivered = in->rs_delivered,
		.delivered_ce = in->rs_delivered_ce,
		.interval_us = (long)in->rs_interval_us,
		.snd_interval_us = in->rs_snd_interval_us,
		.rcv_interval_us = in->rs_rcv_interval_us,
		.rtt_us = (long)in->rs_rtt_us,
		.losses = (int)in->rs_losses,
		.acked_sacked = in->rs_acked_sacked,
		.prior_in_flight = in->rs_prior_in_flight,
		.last_end_seq = in->rs_last_end_seq,
		.is_app_limited = in->rs_is_app_limited,
		.is_retrans = in->rs_is_retrans,
		.is_ack_delayed = in->rs_is_ack_delayed,
		.prior_lost = in->lost - in->rs_lost,
		.tx_in_flight = in->rs_tx_in_flight,
		.lost = (s32)in->rs_lost,
		.is_ece = in->ack_flags & CC_ACK_ECE,
		.is_acking_tlp_retrans_seq = in->ack_flags & KNEE_ACK_OF_TLP,
	};

	if (in->rs_acked_sacked)
		tp->delivered_mstamp = knee_mstamp_of(in->now_us);
#ifdef KNEE_OLD_CONG_CONTROL
	if (ops_of(sk)->cong_control)
		ops_of(sk)->cong_control(sk, &rs);
#else
	if (ops_of(sk)->cong_control)
		ops_of(sk)->cong_control(
			sk, in->snd_una,
			(int)(in->ack_flags & ~KNEE_ACK_OF_TLP), &rs);
#endif
	leave(sk);
}

OP(undo_cwnd)
{
	struct sock *sk = enter(state, in, out);

	out->ret = ops_of(sk)->undo_cwnd(sk);
	leave(sk);
}

OP(set_state)
{
	struct sock *sk = enter(state, in, out);

	if (ops_of(sk)->set_state)
		ops_of(sk)->set_state(sk, (u8)in->state);
	leave(sk);
}

OP(cwnd_event)
{
	struct sock *sk = enter(state, in, out);
	struct tcp_sock *tp = tcp_sk(sk);

	/* Since Linux 7.1 it is an op of its own. */
	if (in->event == CC_EVENT_TX_START && ops_of(sk)->cwnd_event_tx_start)
		ops_of(sk)->cwnd_event_tx_start(sk);
	else if (ops_of(sk)->cwnd_event)
		ops_of(sk)->cwnd_event(sk, (enum tcp_ca_event)in->event);
	/* The stack's stamp moves when the packet has left, after the event. */
	if (in->event == CC_EVENT_TX_START && !in->packets_out)
		tp->delivered_mstamp =
			knee_mstamp_of(in->wstamp_ns / NSEC_PER_USEC);
	leave(sk);
}

OP(pkts_acked)
{
	struct sock *sk = enter(state, in, out);
#ifdef KNEE_OLD_PKTS_ACKED
	if (ops_of(sk)->pkts_acked)
		ops_of(sk)->pkts_acked(sk, in->acked, (s32)in->ack_rtt_us);
#else
	struct ack_sample sample = {
		.pkts_acked = in->acked,
		.rtt_us = (s32)in->ack_rtt_us,
		.in_flight = in->ack_in_flight_bytes,
	};

	if (ops_of(sk)->pkts_acked)
		ops_of(sk)->pkts_acked(sk, &sample);
#endif
	leave(sk);
}

/* Kernels that have tso_segs() ask it for the whole burst, and the contract
 * for the least of one; the stack takes the larger of it and its own. */
OP(min_tso_segs)
{
	struct sock *sk = enter(state, in, out);
	const struct tcp_congestion_ops *ops = ops_of(sk);

	if (ops->tso_segs)
		out->ret = ops->tso_segs(sk, in->mss_bytes);
	else if (ops->tso_segs_goal)
		out->ret = ops->tso_segs_goal(sk);
	else if (ops->min_tso_segs)
		out->ret = ops->min_tso_segs(sk);
	/* 0 leaves it to the stack. */
	if (!out->ret)
		out->ret = knee_net.ipv4.sysctl_tcp_min_tso_segs;
	leave(sk);
}

OP(sndbuf_expand)
{
	struct sock *sk = enter(state, in, out);

	out->ret = ops_of(sk)->sndbuf_expand ? ops_of(sk)->sndbuf_expand(sk) : 2;
	leave(sk);
}

OP(in_ack_event)
{
	struct sock *sk = enter(state, in, out);

	if (ops_of(sk)->in_ack_event)
		ops_of(sk)->in_ack_event(
			sk, (in->ack_flags & CC_ACK_ECE ? CA_ACK_ECE : 0) |
				    (in->ack_flags & CC_ACK_SLOWPATH
					     ? CA_ACK_SLOWPATH
					     : 0));
	leave(sk);
}

OP(skb_marked_lost)
{
	struct sock *sk = enter(state, in, out);
	struct sk_buff skb = {
		.cb.tx = { .delivered_mstamp = knee_mstamp_of(in->now_us),
			   .in_flight = in->lost_tx_in_flight,
			   .lost = in->lost_tx_lost,
			   .is_app_limited = in->lost_is_app_limited },
	};

	if (ops_of(sk)->skb_marked_lost)
		ops_of(sk)->skb_marked_lost(sk, &skb);
	leave(sk);
}

#ifdef KNEE_TELLS_BBR
/* The first stands for an algorithm that says no phase, as in Linux. */
static const char *const phases[] = {
	"",
	"Startup",
	"Drain",
	"ProbeBwDown",
	"ProbeBwCruise",
	"ProbeBwRefill",
	"ProbeBwUp",
	"ProbeRtt",
};

static void run_get_info(const void *state, const struct cc_in *in,
			 struct cc_info *info)
{
	struct cc_out out = {
		.pacing_rate = in->pacing_rate,
		.pacing_status = in->pacing_status,
		.snd_cwnd = in->snd_cwnd,
		.snd_cwnd_cnt = in->snd_cwnd_cnt,
		.snd_ssthresh = in->snd_ssthresh,
		.app_limited = in->app_limited,
	};
	struct sock *sk = enter((void *)state, in, &out);
	union tcp_cc_info told = { 0 };
	int attr = 0;

	*info = (struct cc_info){ .min_rtt_us = U32_MAX };
	if (ops_of(sk)->get_info)
		ops_of(sk)->get_info(sk, ~0u, &attr, &told);
	if (attr == INET_DIAG_BBRINFO) {
		info->bw = (u64)told.bbr.bbr_bw_hi << 32 | told.bbr.bbr_bw_lo;
		info->min_rtt_us = told.bbr.bbr_min_rtt;
		info->pacing_gain = told.bbr.bbr_pacing_gain;
		info->cwnd_gain = told.bbr.bbr_cwnd_gain;
		if (told.bbr.bbr_phase < algorithm.n_phases)
			info->phase = told.bbr.bbr_phase;
	}
	leave(sk);
}
#endif

/* ---- the descriptor ------------------------------------------------------ */

const struct cc_algorithm *const cc_file_algorithm = &algorithm;
const u32 cc_file_abi = CC_ABI;

extern CC_EXPORTED const u32 knee_private_bytes;
const u32 knee_private_bytes = KNEE_PRIVATE_BYTES;

__attribute__((constructor)) static void load(void)
{
	const struct tcp_congestion_ops *k;
	cc_op_fn *ops = algorithm.ops;

	list_params();
	algorithm.kernel_name = "";
	algorithm.summary = "a congestion control of the kernel";
	algorithm.source = "its file";
	algorithm.use_when = "to see what that file does";
	if (knee_module_init() || !registered)
		return;
	k = registered;
	algorithm.name = algorithm.kernel_name = k->name;
	algorithm.flags = k->flags & (CC_FLAG_NEEDS_ECN | CC_FLAG_NEEDS_ACCECN |
				      CC_FLAG_ECT_1);
	algorithm.state_bytes = at_offset() + (u32)sizeof(struct connection);
	ops[CC_OP_init] = run_init;
	ops[CC_OP_ssthresh] = k->ssthresh ? run_ssthresh : 0;
	ops[CC_OP_cong_avoid] = k->cong_avoid ? run_cong_avoid : 0;
	ops[CC_OP_cong_control] = k->cong_control ? run_cong_control : 0;
	ops[CC_OP_undo_cwnd] = k->undo_cwnd ? run_undo_cwnd : 0;
	ops[CC_OP_set_state] = k->set_state ? run_set_state : 0;
	/* The socket's stamps move by this one, for who has cong_control(). */
	if (k->cwnd_event || k->cwnd_event_tx_start || k->cong_control)
		ops[CC_OP_cwnd_event] = run_cwnd_event;
	ops[CC_OP_pkts_acked] = k->pkts_acked ? run_pkts_acked : 0;
	if (k->min_tso_segs || k->tso_segs || k->tso_segs_goal)
		ops[CC_OP_min_tso_segs] = run_min_tso_segs;
	ops[CC_OP_sndbuf_expand] = k->sndbuf_expand ? run_sndbuf_expand : 0;
	ops[CC_OP_in_ack_event] = k->in_ack_event ? run_in_ack_event : 0;
	ops[CC_OP_skb_marked_lost] = k->skb_marked_lost ? run_skb_marked_lost
							: 0;
#ifdef KNEE_TELLS_BBR
	if (k->get_info) {
		algorithm.get_info = run_get_info;
		algorithm.phases = phases;
		algorithm.n_phases = ARRAY_SIZE(phases);
	}
#endif
}
