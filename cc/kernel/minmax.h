/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * minmax.h - min() and max() as Linux has them: of two values of any types,
 * each evaluated once. For the host's programs alone; cc_math.h has the
 * contract's.
 */
#ifndef KNEE_KERNEL_MINMAX_H
#define KNEE_KERNEL_MINMAX_H

#define min(a, b)                       \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ < b_ ? a_ : b_;      \
	})
#define max(a, b)                       \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ > b_ ? a_ : b_;      \
	})

#endif
