/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The receiver's half of DCTCP; nothing is received here. */
#include "stub.h"
#define dctcp_ece_ack_update(sk, event, prior_rcv_nxt, ce_state) \
	((void)(prior_rcv_nxt), (void)(ce_state))
