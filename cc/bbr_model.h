/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * bbr_model.h - the fixed-point numbers of the BBR family, and what follows
 * from its two measurements, bandwidth and RTT, for the sender: the pacing
 * rate, the TSO burst, what should be in flight and what will be.
 *
 * Equations
 *	rate  = bw mss gain (100 - margin) / 100			bytes/s
 *	bdp   = ceil(gain bw min_rtt)					segments
 *
 * Source: Linux 6.12 net/ipv4/tcp_bbr.c and tcp_tso_autosize() of
 *	tcp_output.c.
 */
#ifndef KNEE_BBR_MODEL_H
#define KNEE_BBR_MODEL_H

#include "cc_algorithm.h"

/* Bandwidth is segments/us << 24: 715 bit/s to 3 Tbit/s at 1500 B, in a u32. */
#define BBR_BW_SHIFT 24
#define BBR_BW_UNIT (1u << BBR_BW_SHIFT)
/* Gains are in 1/256. */
#define BBR_UNIT_SHIFT 8
#define BBR_UNIT (1u << BBR_UNIT_SHIFT)

/* A TSO burst is 1/1024 s of the pacing rate (sk_pacing_shift 10), */
#define BBR_PACING_SHIFT 10
/* at most one skb of 64 KiB less headers (65536 - 1 - 320). */
#define BBR_TSO_MAX_BYTES 65215u
/* Bursts in flight at the sender's qdisc, its NIC, and the receiver. */
#define BBR_QUANTUM_BURSTS 3u
/* The window before the first RTT sample: RFC 6928. Segments. */
#define BBR_INIT_CWND 10u

/* bw with a gain, less the margin, in bytes/s. Up to 2.9 Tbit/s in 64 bits. */
static u64 bbr_bytes_per_sec(u64 bw, u32 gain, u32 mss_bytes, u32 margin_pct)
{
	u64 rate = bw * mss_bytes;

	rate = (rate * gain) >> BBR_UNIT_SHIFT;
	rate *= CC_USEC_PER_SEC / 100 * (100 - cc_min(margin_pct, 100));
	return rate >> BBR_BW_SHIFT;
}

/* With min_rtt_us ~0, no sample yet, the initial window. */
static u32 bbr_bdp(u32 bw, u32 min_rtt_us, u32 gain)
{
	u64 w = (u64)bw * min_rtt_us;

	if (min_rtt_us == CC_U32_MAX)
		return BBR_INIT_CWND;
	/* Rounded up: rounding down would feed back into a lower bw. */
	return (u32)((((w * gain) >> BBR_UNIT_SHIFT) + BBR_BW_UNIT - 1) >>
		     BBR_BW_SHIFT);
}

/*
 * Packets delivered until the next one may depart: pacing has already decided
 * the departures until then.
 */
static u32 bbr_delivered_at_departure(const struct cc_in *in, u32 bw)
{
	u64 wait_us =
		cc_elapsed(in->wstamp_ns, in->clock_ns) / CC_NSEC_PER_USEC;

	return (u32)(((u64)bw * wait_us) >> BBR_BW_SHIFT);
}

#endif
