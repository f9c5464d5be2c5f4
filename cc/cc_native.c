/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_native.c - what the host build adds to the algorithms: the registry made
 * from algorithms.def, and the layout of the contract, so that a binding in
 * another language can prove that its mirror of cc.h is exact.
 */
#include "cc_algorithm.h"

#define CC_ALGORITHM_FILE(alg) \
	extern const struct cc_algorithm cc_algorithm_##alg;
#include "algorithms.def"
#undef CC_ALGORITHM_FILE

#define CC_ALGORITHM_FILE(alg) &cc_algorithm_##alg,
const struct cc_algorithm *const cc_algorithms[] = {
#include "algorithms.def"
};
#undef CC_ALGORITHM_FILE

const u32 cc_n_algorithms = sizeof(cc_algorithms) / sizeof(cc_algorithms[0]);

const u32 cc_n_ops = CC_N_OPS;

const u32 cc_abi = CC_ABI;

struct cc_field {
	const char *name;
	u32 offset_bytes;
	u32 size_bytes;
};

struct cc_layout {
	u32 in_bytes;
	u32 out_bytes;
	u32 n_in;
	u32 n_out;
	u32 info_bytes;
	u32 n_info;
	const struct cc_field *in;
	const struct cc_field *out;
	const struct cc_field *info;
};

#define FIELD(type, field)                               \
	{                                                \
		#field, __builtin_offsetof(type, field), \
			sizeof(((type *)0)->field)       \
	}
#define IN(field) FIELD(struct cc_in, field)
#define OUT(field) FIELD(struct cc_out, field)
#define INFO(field) FIELD(struct cc_info, field)

static const struct cc_field in_fields[] = {
	IN(now_us),
	IN(clock_ns),
	IN(wstamp_ns),
	IN(pacing_rate),
	IN(max_pacing_rate),
	IN(rs_interval_us),
	IN(rs_rtt_us),
	IN(rs_prior_mstamp_us),
	IN(ack_rtt_us),
	IN(jiffies),
	IN(hz),
	IN(lsndtime),
	IN(snd_cwnd),
	IN(snd_cwnd_cnt),
	IN(snd_cwnd_clamp),
	IN(snd_ssthresh),
	IN(prior_cwnd),
	IN(snd_una),
	IN(snd_nxt),
	IN(rcv_tsval),
	IN(rcv_tsecr),
	IN(packets_out),
	IN(sacked_out),
	IN(lost_out),
	IN(retrans_out),
	IN(max_packets_out),
	IN(delivered),
	IN(delivered_ce),
	IN(lost),
	IN(app_limited),
	IN(srtt_us),
	IN(min_rtt_us),
	IN(mss_bytes),
	IN(gso_max_bytes),
	IN(reordering),
	IN(pacing_status),
	IN(ca_state),
	IN(is_cwnd_limited),
	IN(random),
	IN(state),
	IN(event),
	IN(ack_flags),
	IN(acked),
	IN(ack_in_flight_bytes),
	IN(rs_prior_delivered),
	IN(rs_delivered),
	IN(rs_delivered_ce),
	IN(rs_acked_sacked),
	IN(rs_losses),
	IN(rs_prior_in_flight),
	IN(rs_snd_interval_us),
	IN(rs_rcv_interval_us),
	IN(rs_last_end_seq),
	IN(rs_is_app_limited),
	IN(rs_is_retrans),
	IN(rs_is_ack_delayed),
	IN(rs_has_tx),
	IN(rs_tx_in_flight),
	IN(rs_lost),
	IN(lost_tx_in_flight),
	IN(lost_tx_lost),
	IN(lost_is_app_limited),
	IN(ecn_mode),
	IN(ack_state),
	IN(rcv_nxt),
};

static const struct cc_field out_fields[] = {
	OUT(pacing_rate),  OUT(pacing_status), OUT(snd_cwnd),
	OUT(snd_cwnd_cnt), OUT(snd_ssthresh),  OUT(app_limited),
	OUT(ret),	   OUT(ack_prior),     OUT(ack_prior_seq),
	OUT(ecn_echo),	   OUT(ack_now),       OUT(random_drawn),
	OUT(enter_cwr),
};

static const struct cc_field info_fields[] = {
	INFO(bw),	 INFO(min_rtt_us), INFO(pacing_gain),
	INFO(cwnd_gain), INFO(phase),
};

extern const struct cc_layout cc_layout;
const struct cc_layout cc_layout = {
	.in_bytes = sizeof(struct cc_in),
	.out_bytes = sizeof(struct cc_out),
	.n_in = sizeof(in_fields) / sizeof(in_fields[0]),
	.n_out = sizeof(out_fields) / sizeof(out_fields[0]),
	.info_bytes = sizeof(struct cc_info),
	.n_info = sizeof(info_fields) / sizeof(info_fields[0]),
	.in = in_fields,
	.out = out_fields,
	.info = info_fields,
};
