// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Opens and closes connections over loopback at a steady rate, a few bytes each,
 * for tools/bench_record.py: short_connections ADDRESS PORT PER_SECOND SECONDS
 * prints how many it made and how many microseconds that took.
 *
 * Each is reset at its close, so that no port waits in TIME_WAIT.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void must(int done, const char *what)
{
	if (done < 0) {
		perror(what);
		exit(1);
	}
}

int main(int count, char **words)
{
	struct linger reset = { .l_onoff = 1 };
	struct sockaddr_in address = { .sin_family = AF_INET };
	char bytes[100] = { 0 };
	long per_second, wanted, made = 0, began;
	int listener;

	if (count != 5 ||
	    inet_pton(AF_INET, words[1], &address.sin_addr) != 1) {
		fprintf(stderr, "usage: %s ADDRESS PORT PER_SECOND SECONDS\n",
			words[0]);
		return 2;
	}
	address.sin_port = htons((unsigned short)atoi(words[2]));
	per_second = atol(words[3]);
	wanted = per_second * atol(words[4]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(listener, "socket");
	must(bind(listener, (struct sockaddr *)&address, sizeof(address)),
	     "bind");
	must(listen(listener, 64), "listen");
	for (began = now_us(); made < wanted; made++) {
		long ahead = made * 1000000L / per_second - (now_us() - began);
		int near, far;

		if (ahead > 5000)
			usleep((unsigned)ahead);
		near = socket(AF_INET, SOCK_STREAM, 0);
		must(near, "socket");
		must(setsockopt(near, SOL_SOCKET, SO_LINGER, &reset,
				sizeof(reset)),
		     "SO_LINGER");
		must(connect(near, (struct sockaddr *)&address,
			     sizeof(address)),
		     "connect");
		far = accept(listener, NULL, NULL);
		must(far, "accept");
		must((int)write(near, bytes, 1 + made % 100), "write");
		must((int)read(far, bytes, sizeof(bytes)), "read");
		close(near);
		close(far);
	}
	printf("%ld %ld\n", made, now_us() - began);
	return 0;
}
