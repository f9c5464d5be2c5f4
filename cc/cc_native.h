/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_native.h - the host shell: CC_ALGORITHM() becomes a descriptor that the
 * simulator finds by name and calls through op pointers.
 */
#ifndef KNEE_CC_NATIVE_H
#define KNEE_CC_NATIVE_H

typedef void (*cc_op_fn)(void *state, const struct cc_in *in,
			 struct cc_out *out);
typedef void (*cc_get_info_fn)(const void *state, const struct cc_in *in,
			       struct cc_info *info);

struct cc_algorithm {
	const char *name;
	const char *kernel_name; /* of our build there */

	const char *summary;  /* one line: what it does */
	const char *source;   /* RFC, draft or paper, with revision, section */
	const char *use_when; /* one line: where it is the right choice */
	u32 year;	      /* of the source's first publication */
	u32 flags;	      /* CC_FLAG_* */
	u32 state_bytes;
	u32 n_params;
	const struct cc_param *params;
	cc_op_fn ops[CC_N_OPS];	 /* by enum cc_op_number; 0: op not provided */
	cc_get_info_fn get_info; /* 0: nothing to tell */
	const char *const *phases; /* names, by cc_info.phase */
	u32 n_phases;
};

/* Differs where an object of another cc.h would be misread. */
#ifndef CC_ABI
#define CC_ABI                                                \
	((u32)(1u << 28 | sizeof(struct cc_algorithm) << 20 | \
	       sizeof(struct cc_in) << 10 | sizeof(struct cc_out)))
#endif

/* A user's own file is compiled with CC_FILE, by itself. */
#ifdef CC_FILE
#include "cc_file.h"
#else
#define CC_FILE_EXPORT(alg)
#endif

#define CC_PARAM_ENTRY(name, dflt, min, max, unit, doc) \
	{ #name, dflt, min, max, unit, doc },
#define CC_PARAM_COUNT(name, dflt, min, max, unit, doc) +1

/* A thunk per op: the op keeps its typed state, the table its one type. */
#define CC_OP_THUNK(alg, op)                                                   \
	static void cc_thunk_##alg##_##op(void *state, const struct cc_in *in, \
					  struct cc_out *out)                  \
	{                                                                      \
		alg##_##op(state, in, out);                                    \
	}
#define CC_OP_ENTRY(alg, op) [CC_OP_##op] = cc_thunk_##alg##_##op,

/* The thunk and the phases' names of get_info(), and their place. */
#define CC_GET_INFO(alg, type, ...)                                   \
	static void cc_thunk_##alg##_get_info(const void *state,      \
					      const struct cc_in *in, \
					      struct cc_info *info)   \
	{                                                             \
		alg##_get_info(state, in, info);                      \
	}                                                             \
	static const char *const cc_phases_##alg[] = { __VA_ARGS__ };
#define CC_HAS_INFO(alg)                                                  \
	.get_info = cc_thunk_##alg##_get_info, .phases = cc_phases_##alg, \
	.n_phases = sizeof(cc_phases_##alg) / sizeof(cc_phases_##alg[0])

#define CC_ALGORITHM(alg, type, PARAMS, OPS, alg_flags, ...)         \
	_Static_assert(sizeof(type) <= CC_STATE_MAX_BYTES,           \
		       #alg ": state exceeds CC_STATE_MAX_BYTES");   \
	OPS(CC_OP_THUNK)                                             \
	static const struct cc_param cc_params_##alg[] = {           \
		PARAMS(CC_PARAM_ENTRY){ 0, 0, 0, 0, 0, 0 } /* end */ \
	};                                                           \
	extern const struct cc_algorithm cc_algorithm_##alg;         \
	const struct cc_algorithm cc_algorithm_##alg = {             \
		.name = #alg,                                        \
		.kernel_name = CC_QUOTE(CC_KERNEL_NAME_OF(alg)),     \
		.flags = alg_flags,                                  \
		.state_bytes = sizeof(type),                         \
		.n_params = 0 PARAMS(CC_PARAM_COUNT),                \
		.params = cc_params_##alg,                           \
		.ops = { OPS(CC_OP_ENTRY) },                         \
		__VA_ARGS__                                          \
	};                                                           \
	CC_FILE_EXPORT(alg)

/* The registry, in the order of algorithms.def (cc_native.c). */
extern const struct cc_algorithm *const cc_algorithms[];
extern const u32 cc_n_algorithms;
extern const u32 cc_n_ops;
extern const u32 cc_abi; /* CC_ABI of this build */

#endif
