/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * tlp.h - what Google's kernels tell of tail loss probes, and the contract does
 * not. The simulator never says it; knee against does.
 */
#ifndef KNEE_KERNEL_TLP_H
#define KNEE_KERNEL_TLP_H

#define KNEE_EVENT_TLP_RECOVERY 6     /* in->event of cwnd_event() */
#define KNEE_ACK_OF_TLP 0x80000000u /* in->ack_flags of cong_control() */

#endif
