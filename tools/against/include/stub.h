/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * stub.h - what a congestion control of the kernel sees of the kernel, as far
 * as such a file needs it in user space. Written from what the functions do;
 * it stands for every header of the kernel that the file includes
 * (tools/against/against.py makes a forwarder for each).
 *
 * Not here: sockets, locks, memory, output. A function that only these need
 * does nothing.
 */
#ifndef KNEE_AGAINST_STUB_H
#define KNEE_AGAINST_STUB_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* ---- types -------------------------------------------------------------- */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;
typedef u8 __u8;
typedef u16 __u16, __be16;
typedef u32 __u32, __be32;
typedef u64 __u64;
typedef s32 __s32;
typedef long ktime_t;

#define U32_C(x) x##u
#define U8_MAX 0xffu
#define U16_MAX 0xffffu
#define U32_MAX 0xffffffffu
#define S32_MAX 0x7fffffff

/* ---- words of the kernel's dialect -------------------------------------- */

#define __read_mostly
#define __init
#define __exit
#define __maybe_unused __attribute__((unused))
#define __must_check
#define __pure
#define __force
#define __bpf_kfunc
#define fallthrough __attribute__((fallthrough))
#define likely(x) (x)
#define unlikely(x) (x)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(where, old, new)                      \
	({                                            \
		__typeof__(*(where)) was_ = *(where); \
		if (was_ == (old))                    \
			*(where) = (new);             \
		was_;                                 \
	})
#define BUILD_BUG_ON(wrong) _Static_assert(!(wrong), #wrong)
#define BUILD_BUG_ON_ZERO(wrong) 0
#define WARN_ON_ONCE(wrong) (!!(wrong))
#define WARN_ON(wrong) (!!(wrong))
#define WARN_ONCE(wrong, ...) (!!(wrong))
#define BUG_ON(wrong) ((void)(wrong))
#define pr_debug(...) ((void)0)
#define pr_info(...) ((void)0)
#define pr_warn(...) ((void)0)
#define pr_warn_once(...) ((void)0)
#define pr_err(...) ((void)0)
#define printk(...) ((void)0)
#define net_dbg_ratelimited(...) ((void)0)
#define trace_printk(...) ((void)0)
#define KERN_DEBUG ""
#define KERN_INFO ""
#define __stringify_(x) #x
#define __stringify(x) __stringify_(x)
#define NET_INC_STATS(net, what) ((void)0)
#define NET_ADD_STATS(net, what, n) ((void)0)
#define GFP_NOWAIT 0
#define GFP_KERNEL 0
#define __GFP_NOWARN 0
#define kcalloc(n, size, flags) calloc(n, size)
#define kzalloc_objs(object, n, flags) calloc(n, sizeof(object))
#define kfree(p) free(p)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define BIT(n) (1u << (n))
#define offsetofend(type, field) \
	(offsetof(type, field) + sizeof(((type *)0)->field))
#define container_of(p, type, field) \
	((type *)((char *)(p)-offsetof(type, field)))

/* ---- modules ------------------------------------------------------------ */

#define THIS_MODULE NULL
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define MODULE_ALIAS(text)
#define MODULE_PARM_DESC(name, text)
#ifdef AGAINST_LIBRARY /* a file that another one calls */
#define module_init(function)                                    \
	static int __attribute__((unused)) against_library(void) \
	{                                                        \
		return function();                               \
	}
#else
#define module_init(function)      \
	int against_register(void) \
	{                          \
		return function(); \
	}
#endif
#define module_exit(function)                                \
	static void __attribute__((unused)) at_exit_of(void) \
	{                                                    \
		function();                                  \
	}

/* A parameter of the module, so that the harness can set it by its name. */
void against_add_param(const char *name, void *where, size_t bytes);
#define module_param_named(name, variable, type, mode)                      \
	__attribute__((constructor)) static void against_param_##name(void) \
	{                                                                   \
		against_add_param(#name, (void *)&(variable),               \
				  sizeof(variable));                        \
	}                                                                   \
	_Static_assert(1, "")
#define module_param(name, type, mode) \
	module_param_named(name, name, type, mode)
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *p);
	int (*get)(char *text, const struct kernel_param *p);
};
#define param_get_uint NULL
#define param_set_uint_minmax(...) 0
#define module_param_cb(name, ops, variable, mode) _Static_assert(1, "")
#define module_param_array_named(name, array, type, count, mode) \
	_Static_assert(1, "")

#define BTF_SET8_START(name) static const int name __attribute__((unused)) = 0;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
#define BTF_ID(...)
struct btf_kfunc_id_set {
	void *owner;
	const int *set;
};
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)

/* ---- arithmetic --------------------------------------------------------- */

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
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_not_zero(a, b)                                           \
	({                                                           \
		__typeof__(a) x_ = (a);                              \
		__typeof__(b) y_ = (b);                              \
		x_ == 0 ? y_ : (y_ == 0 ? x_ : (x_ < y_ ? x_ : y_)); \
	})
#define clamp(x, low, high) min(max(x, low), high)
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#define clamp_val(x, low, high) clamp_t(__typeof__(x), x, low, high)
#define abs_diff(a, b) ((a) > (b) ? (a) - (b) : (b) - (a))
#define swap(a, b)                      \
	do {                            \
		__typeof__(a) t_ = (a); \
		(a) = (b);              \
		(b) = t_;               \
	} while (0)

/* Divides in place, by 32 bits; the value is the remainder. */
#define do_div(n, by)                              \
	({                                         \
		u32 by_ = (u32)(by);               \
		u32 rest_ = (u32)((u64)(n) % by_); \
		(n) = (u64)(n) / by_;              \
		rest_;                             \
	})
#define DIV_ROUND_UP_ULL(a, by) (((u64)(a) + (by)-1) / (u64)(by))
#define DIV_ROUND_UP(a, by) (((a) + (by)-1) / (by))
#define DIV_ROUND_CLOSEST(a, by) (((a) + (by) / 2) / (by))

static inline u64 div_u64(u64 a, u32 by)
{
	return a / by;
}

static inline s64 div_s64(s64 a, s32 by)
{
	return a / by;
}

static inline u64 div64_u64(u64 a, u64 by)
{
	return a / by;
}

static inline u64 div64_ul(u64 a, unsigned long by)
{
	return a / by;
}

static inline s64 div64_long(s64 a, long by)
{
	return a / by;
}

static inline s64 div64_s64(s64 a, s64 by)
{
	return a / by;
}

/* Number of the highest bit set, from 1; 0 for 0. */
static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline int ilog2(u64 x)
{
	return fls64(x) - 1;
}

static inline bool is_power_of_2(unsigned long x)
{
	return x && !(x & (x - 1));
}

static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long low = 0, high = 1ul << 32;

	while (high - low > 1) {
		unsigned long middle = low + (high - low) / 2;

		if (middle * middle <= x)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- clocks and chance -------------------------------------------------- */

#ifndef HZ
#define HZ 1000
#endif
#define NSEC_PER_USEC 1000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define MSEC_PER_SEC 1000L
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)

extern u32 against_jiffies;  /* set by the harness */
extern u64 against_clock_ns; /* the same instant */
extern u32 against_random;   /* of the op under way */
#define tcp_jiffies32 against_jiffies
/* A word that cc.h uses too: a kernel's file alone has it. */
#ifdef AGAINST_KERNEL_FILE
#define jiffies ((unsigned long)against_jiffies)
#endif
#define ktime_get_ns() against_clock_ns
#define local_clock() against_clock_ns

static inline u32 msecs_to_jiffies(u32 ms)
{
	return (u32)(((u64)ms * HZ + MSEC_PER_SEC - 1) / MSEC_PER_SEC);
}

static inline u32 usecs_to_jiffies(u32 us)
{
	return (u32)(((u64)us * HZ + USEC_PER_SEC - 1) / USEC_PER_SEC);
}

static inline u32 jiffies_to_usecs(u32 j)
{
	return (u32)((u64)j * USEC_PER_SEC / HZ);
}

static inline u32 jiffies_to_msecs(u32 j)
{
	return (u32)((u64)j * MSEC_PER_SEC / HZ);
}

/*
 * Our algorithms get one random number per op. Where they draw twice, a coin is
 * tossed with its low half and everything else drawn from the whole, and so it
 * is here, or equal algorithms would decide differently.
 */
static inline u32 get_random_u32_below(u32 n)
{
	u32 random = n == 2 ? against_random << 16 : against_random;

	return (u32)(((u64)random * n) >> 32);
}

#define prandom_u32_max(n) get_random_u32_below(n)
#define prandom_u32() against_random
#define get_random_u32() against_random
#define get_random_bytes(where, n) \
	memset(where, (int)(against_random & 0xff), n)

/* Order of numbers that wrap. */
static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

#define after(a, b) before(b, a)
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)

static inline bool between(u32 x, u32 low, u32 high)
{
	return high - low >= x - low;
}

/* ---- the windowed maximum of win_minmax.h ------------------------------- */

struct minmax_sample {
	u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

static inline u32 minmax_get(const struct minmax *m)
{
	return m->s[0].v;
}

static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };

	m->s[0] = m->s[1] = m->s[2] = s;
	return v;
}

/* Best, second and third best in the order of time; each is dropped when it
 * leaves the window, a quarter and half of it fill the later places. */
static inline u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };
	u32 age;

	if (v >= m->s[0].v || t - m->s[2].t > win)
		return minmax_reset(m, t, v);
	if (v >= m->s[1].v)
		m->s[1] = m->s[2] = s;
	else if (v >= m->s[2].v)
		m->s[2] = s;
	age = t - m->s[0].t;
	if (age > win) {
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2] = s;
		if (t - m->s[0].t > win) {
			m->s[0] = m->s[1];
			m->s[1] = m->s[2];
			m->s[2] = s;
		}
	} else if (m->s[1].t == m->s[0].t && age > win / 4) {
		m->s[1] = m->s[2] = s;
	} else if (m->s[2].t == m->s[1].t && age > win / 2) {
		m->s[2] = s;
	}
	return m->s[0].v;
}

#include "socket.h"

#endif
