/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * trace.h - what the observing programs share: names of integers, and the
 * filter by network namespace.
 */
#ifndef KNEE_TRACE_H
#define KNEE_TRACE_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

char trace_license[] SEC("license") = "Dual MIT/GPL";

/* The kernel's structs, as much of them as is read; CO-RE finds the offsets. */
#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

#pragma clang attribute pop

#endif
