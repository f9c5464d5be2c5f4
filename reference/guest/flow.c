/*
 * The applications of a cell, and what is measured of them. Runs inside of user-mode Linux, as the last thing that its
 * init does: flow FILE DURATION INTERVAL WRITE, then for each flow SENDER RECEIVER ADDRESS ALGORITHM FAR START.
 * Times are in nanoseconds since the program began; SENDER and RECEIVER are network namespaces; FAR is the congestion
 * control of the receiving end.
 *
 * A sender writes WRITE bytes at a time and waits in write() for room; a receiver reads at once. Every INTERVAL, and
 * when the cell ends, FILE gets a line per flow: time, flow, what the receiver has read, and the sender's tcp_info.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_FLOWS 8
#define WORDS_PER_FLOW 6

struct flow {
	const char *sender, *receiver, *address, *algorithm, *far;
	uint64_t start_ns;
	int sends, listens;
};

static struct flow flows[MOST_FLOWS];
static volatile uint64_t
	*bytes_read; /* of each flow; the receivers count, the parent reads */
static uint64_t began_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void sleep_until(uint64_t t_ns)
{
	uint64_t at = began_ns + t_ns;
	struct timespec then = { .tv_sec = at / 1000000000ull,
				 .tv_nsec = at % 1000000000ull };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL))
		;
}

/* A socket belongs to the namespace that it was made in, whoever uses it. */
static void enter(const char *namespace)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", path);
	close(fd);
}

static struct sockaddr_in address_of(const struct flow *flow)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(5001) };

	if (inet_pton(AF_INET, flow->address, &address.sin_addr) != 1)
		errx(1, "%s: no address", flow->address);
	return address;
}

static void use(int fd, const char *algorithm)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm,
		       strlen(algorithm)))
		err(1, "%s: congestion control", algorithm);
}

static void open_sockets(struct flow *flow)
{
	struct sockaddr_in address = address_of(flow);

	enter(flow->receiver);
	flow->listens = socket(AF_INET, SOCK_STREAM, 0);
	use(flow->listens, flow->far);
	if (bind(flow->listens, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(flow->listens, 1))
		err(1, "%s: listen", flow->address);
	enter(flow->sender);
	flow->sends = socket(AF_INET, SOCK_STREAM, 0);
	use(flow->sends, flow->algorithm);
}

static void receive(const struct flow *flow, size_t write_bytes)
{
	static char buffer[1 << 20];
	int fd = accept(flow->listens, NULL, NULL);
	ssize_t got;

	(void)write_bytes;
	if (fd < 0)
		err(1, "%s: accept", flow->address);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		bytes_read[flow - flows] += got;
	err(1, "%s: read", flow->address);
}

static void send_for_ever(const struct flow *flow, size_t write_bytes)
{
	struct sockaddr_in address = address_of(flow);
	char *buffer = calloc(1, write_bytes);

	sleep_until(flow->start_ns);
	if (connect(flow->sends, (struct sockaddr *)&address, sizeof(address)))
		err(1, "%s: connect", flow->address);
	while (write(flow->sends, buffer, write_bytes) > 0)
		;
	err(1, "%s: write", flow->address);
}

static void in_a_child(void (*work)(const struct flow *, size_t),
		       const struct flow *flow, size_t write_bytes)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child == 0)
		work(flow, write_bytes);
}

static void sample(FILE *file, uint64_t t_ns, const struct flow *flow)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(flow->sends, IPPROTO_TCP, TCP_INFO, &info, &length))
		err(1, "TCP_INFO");
	fprintf(file, "%llu,%d,%llu,%u,%u,%u,%u\n", (unsigned long long)t_ns,
		(int)(flow - flows),
		(unsigned long long)bytes_read[flow - flows], info.tcpi_rtt,
		info.tcpi_snd_cwnd, info.tcpi_data_segs_out,
		info.tcpi_total_retrans);
}

int main(int argc, char **argv)
{
	int count = (argc - 5) / WORDS_PER_FLOW;
	uint64_t duration_ns, interval_ns;
	size_t write_bytes;
	FILE *file;

	if (argc < 5 || (argc - 5) % WORDS_PER_FLOW || count < 1 ||
	    count > MOST_FLOWS)
		errx(2,
		     "expected FILE DURATION INTERVAL WRITE (SENDER RECEIVER ADDRESS ALGORITHM FAR START)...");
	file = fopen(argv[1], "w");
	if (!file)
		err(1, "%s", argv[1]);
	duration_ns = strtoull(argv[2], NULL, 10);
	interval_ns = strtoull(argv[3], NULL, 10);
	write_bytes = strtoull(argv[4], NULL, 10);
	bytes_read = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bytes_read == MAP_FAILED)
		err(1, "mmap");
	/* An ordinary sleep may be 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1);
	began_ns = now_ns();
	for (int i = 0; i < count; i++) {
		char **words = argv + 5 + i * WORDS_PER_FLOW;
		struct flow *flow = &flows[i];

		*flow = (struct flow){ .sender = words[0],
				       .receiver = words[1],
				       .address = words[2] };
		flow->algorithm = words[3];
		flow->far = words[4];
		flow->start_ns = strtoull(words[5], NULL, 10);
		open_sockets(flow);
		in_a_child(receive, flow, write_bytes);
		in_a_child(send_for_ever, flow, write_bytes);
	}
	fprintf(file,
		"t_ns,flow,bytes_read,srtt_us,snd_cwnd,data_segs_out,total_retrans\n");
	for (uint64_t t_ns = interval_ns; t_ns <= duration_ns;
	     t_ns += interval_ns) {
		sleep_until(t_ns);
		for (int i = 0; i < count; i++)
			sample(file, t_ns, &flows[i]);
	}
	if (fclose(file))
		err(1, "%s", argv[1]);
	return 0;
}
