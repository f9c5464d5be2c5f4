/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_total.c - is an algorithm total? Draws calls of its ops, with words that
 * like the edges, and makes them until the time is over. It is linked with the
 * algorithm's file, both compiled with sanitizers (`knee check`), which say the
 * line and end the process.
 */
#include "cc_algorithm.h"

extern const struct cc_algorithm *const cc_file_algorithm;

int printf(const char *format, ...);
void *calloc(__SIZE_TYPE__ n, __SIZE_TYPE__ bytes);
void free(void *memory);
unsigned int alarm(unsigned int seconds);
long time(long *now);
int atoi(const char *text);
void (*signal(int number, void (*handler)(int)))(int);
__attribute__((noreturn)) void _exit(int code);
long write(int to, const void *from, __SIZE_TYPE__ bytes);

#define SIGALRM 14
#define CALLS 200 /* of one connection */

static const char *const names[] = {
#define NAME(op) #op,
	CC_ALL_OPS(NAME)
};

static u32 current;

/* Without the library's end, which would look for leaks first. */
__attribute__((noreturn)) static void wrong(const char *what)
{
	const char *const words[] = { what, names[current], "\n" };

	for (u32 i = 0; i < 3; i++) {
		u32 n = 0;

		while (words[i][n])
			n++;
		write(1, words[i], n);
	}
	_exit(3);
}

static void on_alarm(int number)
{
	(void)number;
	wrong("endless ");
}

static u64 seed = 88172645463325252ull;

static u32 draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (u32)(seed >> 16);
}

static u32 word(void)
{
	static const u32 edges[] = { 0, 1, 0x7fffffff, 0x80000000, ~0u };
	u32 kind = draw() % 10;

	if (kind < 5)
		return edges[kind];
	return kind < 8 ? draw() % 256 : draw();
}

int main(int argc, char **argv)
{
	const struct cc_algorithm *a = cc_file_algorithm;
	u32 seconds = argc > 1 ? (u32)atoi(argv[1]) : 2, made = 0;
	long end = time(0) + seconds;

	signal(SIGALRM, on_alarm);
	while (time(0) < end) {
		/* Of its very size, so that a sanitizer sees its ends. */
		u32 *state = calloc(1, a->state_bytes);

		for (u32 i = 0; i < a->n_params; i++) {
			const struct cc_param *p = &a->params[i];
			u64 span = (u64)p->max - p->min + 1;

			state[i] = (u32)(draw() % 2 ? p->dflt
						    : p->min + draw() % span);
		}
		for (u32 i = 0; i < CALLS; i++) {
			struct cc_in in;
			struct cc_out out = { 0 };
			u32 *words = (u32 *)&in;

			for (u32 k = 0; k < sizeof(in) / 4; k++)
				words[k] = word();
			current = draw() % CC_N_OPS;
			if (!a->ops[current])
				continue;
			out.snd_cwnd = in.snd_cwnd = cc_max(in.snd_cwnd, 1);
			out.snd_cwnd_cnt = in.snd_cwnd_cnt;
			out.snd_ssthresh = in.snd_ssthresh;
			out.pacing_rate = in.pacing_rate;
			out.pacing_status = in.pacing_status;
			out.app_limited = in.app_limited;
			alarm(2);
			a->ops[current](state, &in, &out);
			alarm(0);
			made++;
			if (!out.snd_cwnd)
				wrong("window ");
		}
		free(state);
	}
	printf("calls %u\n", made);
	return 0;
}
