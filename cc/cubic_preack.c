/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CUBIC before Linux 4.0 - growth is counted in ACKs and not in packets.
 *
 * The same code as cubic.c, with its parameter per_ack at 1. The old way came
 * from a time when an ACK stood for one or two packets: an ACK was one unit of
 * growth, and the packets a segment of growth needs were divided by the mean
 * number of packets per ACK. That holds as long as the mean is right and small.
 * With receive offload an ACK stands for 44 packets and more; the mean is
 * capped at 32, and the window that Reno would have, which the curve may not
 * fall behind, grows by ACKs without any division: up to 44 times too slowly.
 *
 * Equations (those of cubic.c; d = mean packets per ACK)
 *	growth = one segment per max(cnt / d, 1) ACKs, instead of cnt packets
 *	d      = 15/16 d + 1/16 packets of this ACK, at most 32; first 2
 *	W_reno = W_reno + 1 per 1.875 cwnd ACKs, instead of packets
 *
 * Before Linux 3.13 slow start counted ACKs as well, one segment for each;
 * slow_start_per_ack is that.
 *
 * Source: Linux 3.19 net/ipv4/tcp_cubic.c; the changes of 4.0 by Cardwell,
 *	"tcp: fix stretch ACK bugs in CUBIC", commit 9cd981dcf174, January 2015;
 *	slow start: Linux 3.10 net/ipv4/tcp_cong.c, and commit 9f9843a751d0
 *	("tcp: properly handle stretch acks in slow start", 3.13). The rest as
 *	cubic.c.
 *
 * Differs from source:
 *	- Only the counting is that of 3.19; HyStart, undo and idle time are
 *	  today's. The slope is looked at once per jiffy at most, in 3.19 at
 *	  every change of the window.
 *	- 3.19 dropped what slow start left of an ACK; here it is one unit.
 *	- 3.19 added a segment at the ACK after the one that completed it; here
 *	  the sum is that of cc_cong_avoid_ai(), one ACK less per segment.
 *	- The division is by the mean at each ACK, in 3.19 at each new slope;
 *	  and cnt is 2 at least before it, which tells where d is below 2.
 *	- d is cut to whole sixteenths as in 3.19, so that from 2 it never comes
 *	  below 31/16 by ACKs of one packet.
 */
#define CUBIC_PER_ACK 1
/* knee_cubic_preack would be longer than the kernel's 15 characters. */
#define CC_KERNEL_NAME knee_cub_preack
#include "cubic_core.h"

#define CUBIC_PREACK_OP(op)                                                    \
	static void cubic_preack_##op(struct cubic *s, const struct cc_in *in, \
				      struct cc_out *out)                      \
	{                                                                      \
		cubic_##op(s, in, out);                                        \
	}

CUBIC_PREACK_OP(init)
CUBIC_PREACK_OP(ssthresh)
CUBIC_PREACK_OP(cong_avoid)
CUBIC_PREACK_OP(undo_cwnd)
CUBIC_PREACK_OP(set_state)
CUBIC_PREACK_OP(cwnd_event)
CUBIC_PREACK_OP(pkts_acked)

/* clang-format off */
#define CUBIC_PREACK_OPS(OP)                                                   \
	OP(cubic_preack, init)                                                 \
	OP(cubic_preack, ssthresh)                                             \
	OP(cubic_preack, cong_avoid)                                           \
	OP(cubic_preack, undo_cwnd)                                            \
	OP(cubic_preack, set_state)                                            \
	OP(cubic_preack, cwnd_event)                                           \
	OP(cubic_preack, pkts_acked)

CC_ALGORITHM(cubic_preack, struct cubic, CUBIC_PARAMS, CUBIC_PREACK_OPS, 0,
	.summary = "CUBIC as before Linux 4.0: growth counted in ACKs, not in packets",
	.source = "Linux 3.19 tcp_cubic.c; commit 9cd981dcf174 (4.0); RFC 9438",
	.use_when = "to see what stretched ACKs did to CUBIC; never to send data",
	.year = 2008)
/* clang-format on */
