/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * trace_stacks.bpf.c - what the processors are doing: the call stacks at each
 * tick of a perf event, kernel and program, with how often each was found.
 *
 * Read by crates/live/src/host/stacks.rs, which opens the events.
 */
#include "trace.h"

/* PERF_MAX_STACK_DEPTH. */
#define STACK_DEPTH 127
/* A process is known by a number in each PID namespace that it is in: seven levels are more than labs nest. */
#define STACK_PID_LEVELS 8
#define STACK_EEXIST 17

/* Set by the loader. */
struct trace_filter {
	u32 pid_namespace; /* inode of the reader's, whose numbers are told */
	u32 pid;	   /* of the process; 0: all of them */
};

const volatile struct trace_filter filter SEC(".rodata.filter") = {};

struct trace_sample {
	u32 pid;    /* 0: idle, or not in the reader's namespace */
	s32 kernel; /* place in `kernel_traces`; below 0: none */
	s32 user; /* place in `user_traces`; below 0: none, or another's is there */
	char program[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32 << 10);
	__type(key, struct trace_sample);
	__type(value, u64);
} samples SEC(".maps");

/* A trace has the place that its hash says, and none where another has it. Those of programs without frame pointers are
 * rarely twice the same, and shall not crowd out the kernel's. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16 << 10);
	__uint(key_size, sizeof(u32));
	__uint(value_size, STACK_DEPTH * sizeof(u64));
} kernel_traces SEC(".maps"), user_traces SEC(".maps");

/* Samples for which `samples` or `kernel_traces` had no room. A section of its own is a map of its own. */
u64 records_lost SEC(".bss.lost");

#pragma clang attribute push(__attribute__((preserve_access_index)), \
				     apply_to = record)

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[STACK_PID_LEVELS];
};

struct task_struct {
	struct task_struct *group_leader;
	struct pid *thread_pid;
};

#pragma clang attribute pop

/* The number of the current process in the reader's PID namespace; 0: it has none there. */
static __always_inline u32 stack_pid(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), i;

	for (i = 0; i < STACK_PID_LEVELS; i++) {
		struct upid *number;

		if (i > level)
			break;
		number = (void *)pid +
			 bpf_core_field_offset(struct pid, numbers) +
			 i * bpf_core_type_size(struct upid);
		if (BPF_CORE_READ(number, ns, ns.inum) == filter.pid_namespace)
			return BPF_CORE_READ(number, nr);
	}
	return 0;
}

SEC("perf_event")
int stack_sample(void *ctx)
{
	struct trace_sample sample = {};
	u64 one = 1, *count;

	sample.pid = stack_pid();
	if (filter.pid && filter.pid != sample.pid)
		return 0;
	bpf_get_current_comm(sample.program, sizeof(sample.program));
	sample.kernel = bpf_get_stackid(ctx, &kernel_traces, 0);
	if (sample.kernel == -STACK_EEXIST) {
		__sync_fetch_and_add(&records_lost, 1);
		return 0;
	}
	sample.user = bpf_get_stackid(ctx, &user_traces, BPF_F_USER_STACK);
	count = bpf_map_lookup_elem(&samples, &sample);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&samples, &sample, &one, BPF_NOEXIST))
		__sync_fetch_and_add(&records_lost, 1);
	return 0;
}
