/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_algorithm.h - the one header an algorithm file includes.
 *
 * It brings the contract (cc.h), the shared arithmetic (cc_math.h), the list
 * of ops, and the shell of this build: cc_native.h makes a descriptor for the
 * host, cc_bpf.h makes struct_ops programs for the kernel.
 *
 * At its foot an algorithm file lists its parameters and ops and declares
 * itself once:
 *
 *	#define RENO_OPS(OP) OP(reno, ssthresh) OP(reno, cong_avoid) ...
 *	CC_ALGORITHM(reno, struct reno, RENO_PARAMS, RENO_OPS, 0,
 *		     .summary = "...", .source = "...", .year = 1990,
 *		     .use_when = "...")
 *
 * OP(reno, ssthresh) stands for the function
 *	static void reno_ssthresh(struct reno *, const struct cc_in *, struct cc_out *)
 *
 * An algorithm with a model of the path may tell it by one more function,
 *	CC_HOST_ONLY static void bbr1_get_info(const struct bbr1 *,
 *					       const struct cc_in *, struct cc_info *)
 * named by CC_GET_INFO(bbr1, struct bbr1, "Startup", ...), with its phases, and
 * by CC_HAS_INFO(bbr1) at the end of CC_ALGORITHM().
 */
#ifndef KNEE_CC_ALGORITHM_H
#define KNEE_CC_ALGORITHM_H

#include "cc.h"
#include "cc_math.h"

/* Every op there is, in the order of their numbers. */
#define CC_ALL_OPS(OP)    \
	OP(init)          \
	OP(ssthresh)      \
	OP(cong_avoid)    \
	OP(cong_control)  \
	OP(undo_cwnd)     \
	OP(set_state)     \
	OP(cwnd_event)    \
	OP(pkts_acked)    \
	OP(min_tso_segs)  \
	OP(sndbuf_expand) \
	OP(in_ack_event)  \
	OP(skb_marked_lost)

#define CC_OP_NUMBER(op) CC_OP_##op,
enum cc_op_number { CC_ALL_OPS(CC_OP_NUMBER) CC_N_OPS };

/* Flags of an algorithm, numbered as TCP_CONG_* in Linux. */
#define CC_FLAG_NEEDS_ECN 0x2u	  /* asks for ECN, ECT on every packet */
#define CC_FLAG_NEEDS_ACCECN 0x4u /* asks for AccECN; Linux 7.0 */
#define CC_FLAG_ECT_1 0x8u	  /* ECT(1) in place of ECT(0); Linux 7.0 */

/*
 * A parameter list is a macro over P(name, default, min, max, unit, doc); the
 * same list makes the first fields of the state, so the two cannot disagree.
 */
#define CC_PARAM_FIELD(name, dflt, min, max, unit, doc) u32 name;
#define CC_PARAM_FIELDS(PARAMS) PARAMS(CC_PARAM_FIELD)

/*
 * What the kernel calls it: knee_NAME, in at most 15 characters. A file whose
 * name is too long for that defines CC_KERNEL_NAME before this header.
 */
#ifdef CC_KERNEL_NAME
#define CC_KERNEL_NAME_OF(alg) CC_KERNEL_NAME
#else
#define CC_KERNEL_NAME_OF(alg) knee_##alg
#endif
#define CC_QUOTE_(token) #token
#define CC_QUOTE(token) CC_QUOTE_(token)

/* get_info() exists on the host only (cc.h); the kernel's build skips it. */
#define CC_HOST_ONLY __attribute__((unused))

#ifdef __bpf__
#include "cc_bpf.h"
#else
#include "cc_native.h"
#endif

#endif
