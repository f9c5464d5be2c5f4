/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * cc_file.h - what a file of a user's own adds when it is compiled for the
 * host by itself: the two symbols by which the simulator finds its algorithm,
 * and the functions that compilers call unasked. The shared object needs no
 * library then.
 */
#ifndef KNEE_CC_FILE_H
#define KNEE_CC_FILE_H

#define CC_EXPORTED __attribute__((visibility("default")))

extern CC_EXPORTED const struct cc_algorithm *const cc_file_algorithm;
extern CC_EXPORTED const u32 cc_file_abi;

#define CC_FILE_EXPORT(alg)                                  \
	const struct cc_algorithm *const cc_file_algorithm = \
		&cc_algorithm_##alg;                         \
	const u32 cc_file_abi = CC_ABI;

/* With CC_FILE_HAS_LIBC a library has the functions below. */
#ifndef CC_FILE_HAS_LIBC

/* So that a compiler does not make a call of the function of its own loop. */
#define CC_NO_IDIOM() __asm__ volatile("" ::: "memory")

void *memset(void *to, int byte, __SIZE_TYPE__ n);
void *memset(void *to, int byte, __SIZE_TYPE__ n)
{
	for (u8 *at = to; n; n--) {
		*at++ = (u8)byte;
		CC_NO_IDIOM();
	}
	return to;
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ n);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n)
{
	const u8 *next = from;

	for (u8 *at = to; n; n--) {
		*at++ = *next++;
		CC_NO_IDIOM();
	}
	return to;
}

void *memmove(void *to, const void *from, __SIZE_TYPE__ n);
void *memmove(void *to, const void *from, __SIZE_TYPE__ n)
{
	const u8 *next = from;
	u8 *at = to;

	if (at <= next)
		return memcpy(to, from, n);
	while (n--) {
		at[n] = next[n];
		CC_NO_IDIOM();
	}
	return to;
}

int memcmp(const void *one, const void *other, __SIZE_TYPE__ n);
int memcmp(const void *one, const void *other, __SIZE_TYPE__ n)
{
	const u8 *a = one, *b = other;

	for (; n; n--, a++, b++) {
		if (*a != *b)
			return *a - *b;
		CC_NO_IDIOM();
	}
	return 0;
}

#endif
#endif
