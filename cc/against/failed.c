/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * failed.c - an op that crashes or does not end. The last line of stderr is
 * then
 *
 *	failed SIDE OP SEED SCENARIO
 *
 * and the program ends by the signal: SIGPROF of an op that does not end.
 */
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "against.h"

#define SECONDS 5 /* of processor time, for one op */

#define OP_NAME(op) #op,
const char *const against_ops[CC_N_OPS] = { CC_ALL_OPS(OP_NAME) };

struct under_way against_under_way;
static u64 n_before; /* at the last tick */
static volatile sig_atomic_t is_failed;

static void fail(int number)
{
	const struct under_way *u = &against_under_way;
	char line[200];
	int n;

	if (u->n && u->scenario && !is_failed) {
		is_failed = 1;
		n = snprintf(line, sizeof(line), "\nfailed %u %s %llu %s\n",
			     u->side, against_ops[u->op], u->scenario->seed,
			     u->scenario->name);
		if (write(2, line, (size_t)min(n, (int)sizeof(line) - 1)) < 0)
			_exit(2);
	}
	signal(number, SIG_DFL);
	raise(number);
}

/* The same op as at the last tick is under way. */
static void tick(int number)
{
	u64 n = *(volatile u64 *)&against_under_way.n;

	if (n && n == n_before)
		fail(number);
	n_before = n;
}

void against_watch(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE,
				       SIGILL,	SIGTRAP, SIGABRT,
				       SIGPIPE /* of a prototype's process */ };
	static char stack[65536]; /* for one whose stack is full */
	const struct itimerval every = { { SECONDS, 0 }, { SECONDS, 0 } };
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	/* raise() is to end it within the handler. */
	struct sigaction crash = { .sa_handler = fail,
				   .sa_flags = SA_ONSTACK | SA_NODEFER };
	struct sigaction timer = { .sa_handler = tick,
				   .sa_flags = SA_RESTART | SA_NODEFER };
	u32 i;

	sigaltstack(&other, NULL);
	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &crash, NULL);
	sigaction(SIGPROF, &timer, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}
