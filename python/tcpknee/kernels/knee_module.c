/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * knee_module.c - the half of a module that gives a congestion control another
 * name, so that it can stand beside the kernel's own of that name.
 */
#include <linux/module.h>
#include <net/tcp.h>

static char knee_name[TCP_CA_NAME_MAX];
module_param_string(knee_name, knee_name, sizeof(knee_name), 0);

int knee_register(struct tcp_congestion_ops *ops);

/* What the algorithm calls in the place of tcp_register_congestion_control(). */
int knee_register(struct tcp_congestion_ops *ops)
{
	static bool is_named;

	/* The first is the file's algorithm, others stand beside it. */
	if (knee_name[0] && !is_named)
		memcpy(ops->name, knee_name, sizeof(knee_name));
	is_named = true;
	return tcp_register_congestion_control(ops);
}
