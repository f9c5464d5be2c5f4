/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CUBIC - the window is a cubic function of the time since the last loss.
 *
 * After a loss at W_max the window climbs steeply, flattens as it nears the
 * W_max at which the path last overflowed, stays there as long as possible,
 * and then accelerates away in search of new room. Growth depends on time and
 * not on the round trip, so flows of unequal RTT grow alike. Where Reno would
 * be faster (short or slow paths), CUBIC follows Reno. HyStart ends slow start
 * before the queue overflows; HyStart++ (hystartpp.h) may do so in its place.
 *
 * Equations (W in segments, t in seconds since the epoch began)
 *	W(t)   = C (t - K)^3 + W_max		C = 0.4
 *	K      = cbrt((W_max - cwnd_epoch) / C)
 *	growth = one segment per cwnd / (W(t + min RTT) - cwnd) acked packets
 *	W_reno = W_reno + 3 (1 - beta) / (1 + beta) per round trip
 *	loss:	 ssthresh = beta cwnd		beta = 0.7
 *
 *	W_max -          ,-----'    concave, then convex: the plateau at W_max
 *	         |     ,-'          is where the path was full last time
 *	         |   ,'
 *	cwnd_0 - | ,'
 *	         +----------|-----> t
 *	         0          K
 *
 *	         ack train or delay rise (HyStart), or a loss
 *	SLOW START ---------------------------------> AVOIDANCE --loss--> (new
 *	     ^                                            |               epoch)
 *	     +------------------- RTO --------------------+
 *
 * Source: RFC 9438 sections 4.1 to 4.7; Ha and Rhee, "Taming the Elephants:
 *	New TCP Slow Start", 2008 (HyStart); Linux 6.12 net/ipv4/tcp_cubic.c
 *	(version 2.3) for integer arithmetic, clocks and gating.
 *
 * Differs from source:
 *	- RFC 9438 4.2 takes t + SRTT; Linux and this file t + minimum RTT.
 *	- RFC 9438 4.3 lets alpha become 1 once W_reno reaches the window before
 *	  the loss; Linux and this file keep 0.533 (16 / 30, RFC: 9 / 17).
 *	- RFC 9438 4.6 takes FlightSize at a loss; Linux and this file snd_cwnd.
 *	- RFC 9438 4.8 starts with W_max = cwnd after a timeout; Linux and this
 *	  file forget W_max, which caps cnt at 20 until the next loss.
 *	- Linux' cube root is a table and one Newton step (error 0.2 % on
 *	  average); ours is exact. K differs by at most a few ms, and some
 *	  increases come a few ACKs earlier or later: of a million ACKs of
 *	  Linux 6.18, replayed, 0.03 % left another snd_cwnd, each by this
 *	  (docs/replay.md).
 *	- Where a product overflows 32 or 64 bits in Linux (windows above 5.9
 *	  million segments, in ssthresh; more than 346 s past K) ours does not,
 *	  or saturates.
 *	- Linux before 4.0 counted growth in ACKs: cubic_preack.c, or per_ack,
 *	  and before 3.13 in slow start too: slow_start_per_ack.
 *	- The global initial_ssthresh of Linux is a matter of the scenario.
 */
#define CUBIC_PER_ACK 0
#include "cubic_core.h"

/* clang-format off */
#define CUBIC_OPS(OP)                                                          \
	OP(cubic, init)                                                        \
	OP(cubic, ssthresh)                                                    \
	OP(cubic, cong_avoid)                                                  \
	OP(cubic, undo_cwnd)                                                   \
	OP(cubic, set_state)                                                   \
	OP(cubic, cwnd_event)                                                  \
	OP(cubic, pkts_acked)

CC_ALGORITHM(cubic, struct cubic, CUBIC_PARAMS, CUBIC_OPS, 0,
	.summary = "window grows as a cubic of the time since the last loss; the Linux default",
	.source = "RFC 9438; HyStart (Ha and Rhee 2008); Linux 6.12 tcp_cubic.c 2.3",
	.use_when = "general use on clean paths with some buffer; loss must be rare",
	.year = 2008)
/* clang-format on */
