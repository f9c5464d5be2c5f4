/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * kernel.h - what a congestion control of the kernel sees of the kernel, as far
 * as such a file needs it in user space. It stands for every header of the
 * kernel that the file includes. Written from what the functions do; nothing
 * of it is the kernel's text.
 *
 * What is not here the compiler does not know, and the file is refused with the
 * name. So nothing may stand here that would do another thing than in Linux:
 * locks, for instance, are here because a connection's ops never run at once.
 */
#ifndef KNEE_KERNEL_H
#define KNEE_KERNEL_H

/* ---- types -------------------------------------------------------------- */

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define offsetof(type, field) __builtin_offsetof(type, field)
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;
typedef u8 __u8;
typedef u16 __u16, __be16, __le16;
typedef u32 __u32, __be32, __le32;
typedef u64 __u64, __be64, __le64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u8 uint8_t;
typedef u16 uint16_t;
typedef u32 uint32_t;
typedef unsigned long uint64_t;
typedef s8 int8_t;
typedef s16 int16_t;
typedef s32 int32_t;
typedef signed long int64_t;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;
typedef s64 ktime_t;
typedef unsigned int gfp_t;
typedef struct {
	int counter;
} atomic_t;
typedef struct {
	s64 counter;
} atomic64_t;

#define U32_C(x) x##u
#define S8_MAX 0x7f
#define U8_MAX 0xffu
#define S16_MAX 0x7fff
#define U16_MAX 0xffffu
#define S32_MAX 0x7fffffff
#define S32_MIN (-S32_MAX - 1)
#define U32_MAX 0xffffffffu
#define S64_MAX 0x7fffffffffffffffll
#define S64_MIN (-S64_MAX - 1)
#define U64_MAX 0xffffffffffffffffull
#define SHRT_MAX S16_MAX
#define USHRT_MAX 0xffff
#define INT_MAX S32_MAX
#define INT_MIN S32_MIN
#define UINT_MAX U32_MAX
#define LONG_MAX 0x7fffffffffffffffl
#define ULONG_MAX 0xfffffffffffffffful
#define LLONG_MAX S64_MAX
#define LLONG_MIN S64_MIN
#define LONG_MIN (-LONG_MAX - 1)
#define ULLONG_MAX U64_MAX

/* ---- words of the kernel's dialect -------------------------------------- */

#define __read_mostly
#define __ro_after_init
#define __init
#define __exit
#define __user
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#define __must_check
#define __pure
#define __force
#define __percpu
#define __rcu
#define __packed __attribute__((packed))
#define __aligned(n) __attribute__((aligned(n)))
#define ____cacheline_aligned
#define __always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define __bpf_kfunc
#define __bpf_kfunc_start_defs() _Static_assert(1, "")
#define __bpf_kfunc_end_defs() _Static_assert(1, "")
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" : : : "memory")
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define ACCESS_ONCE(x) (x)
#define data_race(x) (x)
#define smp_load_acquire(p) (*(p))
#define smp_store_release(p, value) (*(p) = (value))
#define cmpxchg(where, old, new)                      \
	({                                            \
		__typeof__(*(where)) was_ = *(where); \
		if (was_ == (old))                    \
			*(where) = (new);             \
		was_;                                 \
	})
#define xchg(where, new)                              \
	({                                            \
		__typeof__(*(where)) was_ = *(where); \
		*(where) = (new);                     \
		was_;                                 \
	})
#define __stringify_(x...) #x
#define __stringify(x...) __stringify_(x)
#define BUILD_BUG_ON(wrong) _Static_assert(!(wrong), #wrong)
#define BUILD_BUG_ON_MSG(wrong, text) _Static_assert(!(wrong), text)
#define BUILD_BUG_ON_ZERO(wrong) (sizeof(char[1 - 2 * !!(wrong)]) - 1)
#define static_assert(right, ...) _Static_assert(right, #right)
#define BUG() __builtin_trap()
#define BUG_ON(wrong)             \
	do {                      \
		if (wrong)        \
			BUG();    \
	} while (0)
#define WARN(wrong, ...)                              \
	({                                            \
		bool is_wrong_ = !!(wrong);           \
		if (is_wrong_)                        \
			printk("WARNING: "__VA_ARGS__); \
		is_wrong_;                            \
	})
#define WARN_ONCE(wrong, ...)                           \
	({                                              \
		static bool is_said_;                   \
		bool is_wrong_ = !!(wrong);             \
		if (is_wrong_ && !is_said_) {           \
			is_said_ = true;                \
			printk("WARNING: "__VA_ARGS__); \
		}                                       \
		is_wrong_;                              \
	})
#define WARN_ON(wrong) WARN(wrong, "%s\n", #wrong)
#define WARN_ON_ONCE(wrong) WARN_ONCE(wrong, "%s\n", #wrong)

/* Linux 7.2 is the newest whose words are here; those of older releases that
 * it has no more are here as well. */
#define KERNEL_VERSION(a, b, c) \
	(((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#define LINUX_VERSION_CODE KERNEL_VERSION(7, 2, 0)
#define IS_ENABLED(option) 0
#define IS_BUILTIN(option) 0
#define IS_MODULE(option) 0
#define IS_REACHABLE(option) 0

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BITS_PER_BYTE 8
#define BITS_PER_LONG 64
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))
#define GENMASK(high, low) ((~0ul << (low)) & (~0ul >> (63 - (high))))
#define sizeof_field(type, field) sizeof(((type *)0)->field)
#define FIELD_SIZEOF(type, field) sizeof_field(type, field)
#define offsetofend(type, field) (offsetof(type, field) + sizeof_field(type, field))
#define container_of(p, type, field) \
	((type *)((char *)(p)-offsetof(type, field)))

#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EAGAIN 11
#define ENOMEM 12
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define ERANGE 34
#define ENOSYS 38
#define ENOPROTOOPT 92
#define EOPNOTSUPP 95

/* ---- what it prints ------------------------------------------------------ */

/* Goes to stderr with the virtual time; the first lines of a process. */
int knee_printk(const char *text, ...) __attribute__((format(printf, 1, 2)));
#define printk(text...) knee_printk(text)
#define printk_once(text...) \
	WARN_ONCE_(printk(text))
#define WARN_ONCE_(what)                  \
	({                                \
		static bool is_said_;     \
		if (!is_said_) {          \
			is_said_ = true;  \
			(void)(what);     \
		}                         \
	})
#define KERN_EMERG ""
#define KERN_ALERT ""
#define KERN_CRIT ""
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#define KERN_CONT ""
#ifndef pr_fmt
#define pr_fmt(text) text
#endif
#define pr_emerg(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_alert(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_crit(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_err(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_warn(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_warning(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_notice(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_info(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_cont(text, ...) printk(text, ##__VA_ARGS__)
#define pr_err_once(text, ...) printk_once(pr_fmt(text), ##__VA_ARGS__)
#define pr_warn_once(text, ...) printk_once(pr_fmt(text), ##__VA_ARGS__)
#define pr_info_once(text, ...) printk_once(pr_fmt(text), ##__VA_ARGS__)
#define pr_err_ratelimited(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_warn_ratelimited(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define pr_info_ratelimited(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define printk_ratelimited(text...) printk(text)
#define net_info_ratelimited(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
#define net_warn_ratelimited(text, ...) printk(pr_fmt(text), ##__VA_ARGS__)
/* What a kernel without DEBUG, tracing or a debugger leaves out. */
#define pr_debug(...) ((void)0)
#define pr_debug_ratelimited(...) ((void)0)
#define pr_devel(...) ((void)0)
#define net_dbg_ratelimited(...) ((void)0)
#define trace_printk(...) ((void)0)
#define dump_stack() ((void)0)

/* ---- modules ------------------------------------------------------------- */

#define THIS_MODULE NULL
#define MODULE_AUTHOR(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define MODULE_DESCRIPTION(text) _Static_assert(1, "")
#define MODULE_VERSION(text) _Static_assert(1, "")
#define MODULE_ALIAS(text) _Static_assert(1, "")
#define MODULE_INFO(name, text) _Static_assert(1, "")
#define EXPORT_SYMBOL(name) _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, "")
#define __exitcall(function) module_exit(function)
#define late_initcall(function) module_init(function)
#define subsys_initcall(function) module_init(function)
#define module_exit(function)                                 \
	static void __attribute__((unused)) knee_at_exit(void) \
	{                                                     \
		function();                                   \
	}                                                     \
	_Static_assert(1, "")

/* A parameter of the module, where adapter.c finds it. */
struct knee_param {
	const char *name;
	void *where;
	u32 bytes;
	u8 is_signed, is_bool;
};
struct knee_param_text {
	const char *name, *text;
};

#ifdef KNEE_LIBRARY /* a file that another one calls: no module of its own */
#define module_init(function)                              \
	static int __attribute__((unused)) knee_begin(void) \
	{                                                  \
		return function();                         \
	}                                                  \
	_Static_assert(1, "")
#define knee_param_at(name, pointer, bytes, is_signed, is_bool) \
	_Static_assert(1, "")
#define MODULE_PARM_DESC(name, words) _Static_assert(1, "")
#else
int knee_module_init(void);
#define module_init(function)      \
	int knee_module_init(void) \
	{                          \
		return function(); \
	}                          \
	_Static_assert(1, "")
#define knee_param_at(name, pointer, bytes, is_signed, is_bool)               \
	static const struct knee_param knee_param_##name                      \
		__attribute__((used, section("knee_params"),                  \
			       aligned(8))) = { #name, (void *)(pointer),     \
						bytes, is_signed, is_bool };  \
	_Static_assert(1, "")
#define MODULE_PARM_DESC(name, words)                                         \
	static const struct knee_param_text knee_param_text_##name            \
		__attribute__((used, section("knee_param_texts"),             \
			       aligned(8))) = { #name, words };               \
	_Static_assert(1, "")
#endif
#define module_param_named(name, variable, type, mode)                    \
	knee_param_at(name, &(variable), sizeof(variable),                \
		      ((__typeof__(variable))-1) < 0,                     \
		      __builtin_types_compatible_p(__typeof__(variable), bool))
#define module_param(name, type, mode) \
	module_param_named(name, name, type, mode)
#define core_param(name, variable, type, mode) \
	module_param_named(name, variable, type, mode)
#define module_param_unsafe(name, type, mode) module_param(name, type, mode)
/* The kernel's word for "what this function accepts": bounds are not asked. */
#define module_param_cb(name, ops, pointer, mode)                              \
	knee_param_at(name, pointer, sizeof(*(pointer)),                      \
		      ((__typeof__(*(pointer)))-1) < 0,                       \
		      __builtin_types_compatible_p(__typeof__(*(pointer)), bool))
/* Not parameters here: they have no number. */
#define module_param_array_named(name, array, type, count, mode) \
	_Static_assert(1, "")
#define module_param_array(name, type, count, mode) _Static_assert(1, "")
#define module_param_string(name, text, n, mode) _Static_assert(1, "")
struct kernel_param {
	const char *name;
	void *arg;
};
struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *text, const struct kernel_param *p);
	int (*get)(char *text, const struct kernel_param *p);
};
static inline int knee_param_get(char *text, const struct kernel_param *p)
{
	(void)text;
	(void)p;
	return 0;
}
static inline int knee_param_set(const char *text, const struct kernel_param *p)
{
	(void)text;
	(void)p;
	return 0;
}
#define param_get_int knee_param_get
#define param_get_uint knee_param_get
#define param_set_int knee_param_set
#define param_set_uint knee_param_set
#define param_set_uint_minmax(text, p, low, high) knee_param_set(text, p)

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

/* ---- arithmetic ---------------------------------------------------------- */

#include "minmax.h"

#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define umin(a, b) min((u64)(a), (u64)(b))
#define umax(a, b) max((u64)(a), (u64)(b))
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
#define in_range(x, from, n) ((x) - (from) < (n))
/* Of the signed number with the same bits, also where it is unsigned. */
#define abs(x)                                                          \
	({                                                              \
		__typeof__(__builtin_choose_expr(sizeof(x) > 4, 0ll, 0)) \
			x_ = (x);                                       \
		x_ < 0 ? -x_ : x_;                                      \
	})
#define abs64(x) abs((s64)(x))
#define abs_diff(a, b)                           \
	({                                       \
		__typeof__(a) a_ = (a);          \
		__typeof__(b) b_ = (b);          \
		a_ > b_ ? a_ - b_ : b_ - a_;     \
	})
#define swap(a, b)                      \
	do {                            \
		__typeof__(a) t_ = (a); \
		(a) = (b);              \
		(b) = t_;               \
	} while (0)
#define roundup(x, to) ((((x) + (to)-1) / (to)) * (to))
#define rounddown(x, to) ((x) - (x) % (to))
#define round_up(x, to) ((((x)-1) | ((__typeof__(x))(to)-1)) + 1)
#define round_down(x, to) ((x) & ~((__typeof__(x))(to)-1))
#define ALIGN(x, to) round_up(x, to)
#define check_add_overflow(a, b, sum) __builtin_add_overflow(a, b, sum)
#define check_sub_overflow(a, b, rest) __builtin_sub_overflow(a, b, rest)
#define check_mul_overflow(a, b, product) __builtin_mul_overflow(a, b, product)
#define size_add(a, b) ((size_t)(a) + (size_t)(b))
#define size_mul(a, b) ((size_t)(a) * (size_t)(b))
#define struct_size(p, field, n) \
	(sizeof(*(p)) + sizeof((p)->field[0]) * (size_t)(n))

/* Divides in place, by 32 bits; the value is the remainder. */
#define do_div(n, by)                              \
	({                                         \
		u32 by_ = (u32)(by);               \
		u32 rest_ = (u32)((u64)(n) % by_); \
		(n) = (u64)(n) / by_;              \
		rest_;                             \
	})
#define DIV_ROUND_UP_ULL(a, by) (((u64)(a) + (by)-1) / (u64)(by))
#define DIV_ROUND_DOWN_ULL(a, by) ((u64)(a) / (u64)(by))
#define DIV_ROUND_UP(a, by) (((a) + (by)-1) / (by))
#define DIV64_U64_ROUND_UP(a, by) DIV_ROUND_UP_ULL(a, by)
#define DIV64_U64_ROUND_CLOSEST(a, by) \
	(((u64)(a) + (u64)(by) / 2) / (u64)(by))
#define DIV_ROUND_CLOSEST_ULL(a, by) DIV64_U64_ROUND_CLOSEST(a, by)
#define DIV_ROUND_CLOSEST(a, by)                                      \
	({                                                            \
		__typeof__(a) a_ = (a);                               \
		__typeof__(by) by_ = (by);                            \
		(a_ > 0) == (by_ > 0) ? (a_ + by_ / 2) / by_          \
				      : (a_ - by_ / 2) / by_;         \
	})

static inline u64 div_u64(u64 a, u32 by)
{
	return a / by;
}

static inline u64 div_u64_rem(u64 a, u32 by, u32 *rest)
{
	*rest = (u32)(a % by);
	return a / by;
}

static inline s64 div_s64(s64 a, s32 by)
{
	return a / by;
}

static inline s64 div_s64_rem(s64 a, s32 by, s32 *rest)
{
	*rest = (s32)(a % by);
	return a / by;
}

static inline u64 div64_u64(u64 a, u64 by)
{
	return a / by;
}

static inline u64 div64_u64_rem(u64 a, u64 by, u64 *rest)
{
	*rest = a % by;
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

static inline u64 mul_u32_u32(u32 a, u32 b)
{
	return (u64)a * b;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * b) >> shift);
}

static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 by)
{
	return (u64)((unsigned __int128)a * b / by);
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 by)
{
	return (u64)((unsigned __int128)a * b / by);
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

static inline int ffs(int x)
{
	return __builtin_ffs(x);
}

static inline unsigned long __fls(unsigned long x)
{
	return 63 - (unsigned long)__builtin_clzl(x);
}

static inline unsigned long __ffs(unsigned long x)
{
	return (unsigned long)__builtin_ctzl(x);
}

static inline unsigned int hweight32(u32 x)
{
	return (unsigned int)__builtin_popcount(x);
}

static inline unsigned long hweight64(u64 x)
{
	return (unsigned long)__builtin_popcountll(x);
}

#define ilog2(x) (fls64((u64)(x)) - 1)
#define order_base_2(x) fls64((u64)(x)-1)
#define roundup_pow_of_two(x) (1ul << fls64((u64)(x)-1))
#define rounddown_pow_of_two(x) (1ul << ilog2(x))

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

#define int_sqrt64(x) ((u32)int_sqrt(x))

/* ---- memory and text ----------------------------------------------------- */

/* Of cc_file.h. */
void *memset(void *where, int byte, size_t n);
void *memcpy(void *where, const void *from, size_t n);
void *memmove(void *where, const void *from, size_t n);
int memcmp(const void *a, const void *b, size_t n);

/* The process has them. Weak: the object itself needs no library. */
#define KNEE_OF_PROCESS __attribute__((weak, visibility("default")))
KNEE_OF_PROCESS size_t strlen(const char *text);
KNEE_OF_PROCESS int strcmp(const char *a, const char *b);
KNEE_OF_PROCESS int strncmp(const char *a, const char *b, size_t n);
KNEE_OF_PROCESS int snprintf(char *where, size_t n, const char *text, ...)
	__attribute__((format(printf, 3, 4)));
KNEE_OF_PROCESS int sprintf(char *where, const char *text, ...)
	__attribute__((format(printf, 2, 3)));

/* In the memory of the connection whose op is under way, and freed with it; in
 * module_init() in that of the process. Zeroed. NULL when there is no more. */
void *knee_allocate(size_t bytes);
void knee_free(const void *p);
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define GFP_KERNEL 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u
#define kmalloc(bytes, flags) knee_allocate(bytes)
#define kzalloc(bytes, flags) knee_allocate(bytes)
#define kvmalloc(bytes, flags) knee_allocate(bytes)
#define kvzalloc(bytes, flags) knee_allocate(bytes)
#define vmalloc(bytes) knee_allocate(bytes)
#define vzalloc(bytes) knee_allocate(bytes)
#define kcalloc(n, bytes, flags) knee_allocate((size_t)(n) * (bytes))
#define kmalloc_array(n, bytes, flags) knee_allocate((size_t)(n) * (bytes))
/* Linux 7.0: the flags may be left out. */
#define kmalloc_obj(object, ...) \
	((__typeof__(object) *)knee_allocate(sizeof(object)))
#define kzalloc_obj(object, ...) kmalloc_obj(object)
#define kmalloc_objs(object, n, ...) \
	((__typeof__(object) *)knee_allocate((size_t)(n) * sizeof(object)))
#define kzalloc_objs(object, n, ...) kmalloc_objs(object, n)
#define kfree(p) knee_free(p)
#define kvfree(p) knee_free(p)
#define vfree(p) knee_free(p)
#define kfree_sensitive(p) knee_free(p)
static inline bool is_vmalloc_addr(const void *p)
{
	(void)p;
	return false;
}

/* ---- one at a time ------------------------------------------------------- */

/* Ops never run at once here, so that a lock is always free. */
typedef struct {
	int unused;
} spinlock_t;
#define DEFINE_SPINLOCK(name) spinlock_t name
#define spin_lock_init(lock) ((void)(lock))
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define spin_lock_bh(lock) ((void)(lock))
#define spin_unlock_bh(lock) ((void)(lock))
#define spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0))
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
struct mutex {
	int unused;
};
#define DEFINE_MUTEX(name) struct mutex name
#define mutex_init(lock) ((void)(lock))
#define mutex_lock(lock) ((void)(lock))
#define mutex_unlock(lock) ((void)(lock))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(p) (p)
#define rcu_assign_pointer(p, value) ((p) = (value))
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define local_bh_disable() ((void)0)
#define local_bh_enable() ((void)0)
#define ATOMIC_INIT(n) { n }
#define ATOMIC64_INIT(n) { n }
#define atomic_read(a) ((a)->counter)
#define atomic_set(a, n) ((void)((a)->counter = (n)))
#define atomic_inc(a) ((void)((a)->counter++))
#define atomic_dec(a) ((void)((a)->counter--))
#define atomic_add(n, a) ((void)((a)->counter += (n)))
#define atomic_sub(n, a) ((void)((a)->counter -= (n)))
#define atomic_inc_return(a) (++(a)->counter)
#define atomic_dec_return(a) (--(a)->counter)
#define atomic_dec_and_test(a) (--(a)->counter == 0)
#define atomic64_read(a) atomic_read(a)
#define atomic64_set(a, n) atomic_set(a, n)
#define atomic64_inc(a) atomic_inc(a)
#define atomic64_add(n, a) atomic_add(n, a)

/* ---- clocks -------------------------------------------------------------- */

/* HZ is a word of the scenario. A file that must know it when it is compiled,
 * as in an array's length, is built for one: KNEE_HZ. */
extern int knee_hz;
#ifdef KNEE_HZ
#define HZ KNEE_HZ
#else
#define HZ knee_hz
#endif
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define MSEC_PER_SEC 1000L
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)
#define NSEC_PER_JIFFY (NSEC_PER_SEC / HZ)
#define TICK_NSEC NSEC_PER_JIFFY
#define TICK_USEC USEC_PER_JIFFY
#define MAX_JIFFY_OFFSET ((LONG_MAX >> 1) - 1)

/* Variables and not macros, as in Linux: a field may have such a name. */
extern unsigned long jiffies;
extern u64 knee_clock_ns;
#define tcp_jiffies32 ((u32)jiffies)
#define get_jiffies_64() ((u64)jiffies)

static inline u64 ktime_get_ns(void)
{
	return knee_clock_ns;
}

#define ktime_get() ((ktime_t)knee_clock_ns)
#define ktime_get_boottime() ktime_get()
#define ktime_get_raw() ktime_get()
#define ktime_get_real() ktime_get()
#define ktime_get_boottime_ns() ktime_get_ns()
#define ktime_get_mono_fast_ns() ktime_get_ns()
#define ktime_get_raw_ns() ktime_get_ns()
#define ktime_get_real_ns() ktime_get_ns()
#define ktime_set(s, ns) ((ktime_t)(s)*NSEC_PER_SEC + (ktime_t)(ns))
#define ktime_add(a, b) ((ktime_t)((a) + (b)))
#define ktime_sub(a, b) ((ktime_t)((a) - (b)))
#define ktime_add_ns(a, ns) ((ktime_t)((a) + (s64)(ns)))
#define ktime_add_us(a, us) ((ktime_t)((a) + (s64)(us)*NSEC_PER_USEC))
#define ktime_after(a, b) ((a) > (b))
#define ktime_before(a, b) ((a) < (b))
#define ktime_compare(a, b) ((a) < (b) ? -1 : (a) > (b))
#define ktime_to_ns(t) ((s64)(t))
#define ktime_to_us(t) ((s64)(t) / NSEC_PER_USEC)
#define ktime_to_ms(t) ((s64)(t) / NSEC_PER_MSEC)
#define ktime_us_delta(later, earlier) ktime_to_us(ktime_sub(later, earlier))
#define ktime_ms_delta(later, earlier) ktime_to_ms(ktime_sub(later, earlier))
#define ns_to_ktime(ns) ((ktime_t)(ns))
#define us_to_ktime(us) ((ktime_t)(us)*NSEC_PER_USEC)
#define ms_to_ktime(ms) ((ktime_t)(ms)*NSEC_PER_MSEC)
#define local_clock() ktime_get_ns()
#define sched_clock() ktime_get_ns()

/* Rounded up, as in Linux: a timer may be late and never early. */
static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return (unsigned long)(((u64)ms * (u64)HZ + MSEC_PER_SEC - 1) /
			       MSEC_PER_SEC);
}

static inline unsigned long usecs_to_jiffies(unsigned int us)
{
	return (unsigned long)(((u64)us * (u64)HZ + USEC_PER_SEC - 1) /
			       USEC_PER_SEC);
}

static inline unsigned long nsecs_to_jiffies(u64 ns)
{
	return (unsigned long)(ns / (u64)NSEC_PER_JIFFY);
}

static inline unsigned int jiffies_to_usecs(unsigned long j)
{
	return (unsigned int)((u64)j * USEC_PER_SEC / (u64)HZ);
}

static inline unsigned int jiffies_to_msecs(unsigned long j)
{
	return (unsigned int)((u64)j * MSEC_PER_SEC / (u64)HZ);
}

static inline u64 jiffies_to_nsecs(unsigned long j)
{
	return (u64)j * NSEC_PER_SEC / (u64)HZ;
}

/* Order of numbers that wrap. */
static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

#define after(a, b) before(b, a)
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)
#define time_after64(a, b) ((s64)((u64)(b) - (u64)(a)) < 0)
#define time_before64(a, b) time_after64(b, a)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)
#define time_in_range(x, low, high) \
	(time_after_eq(x, low) && time_before_eq(x, high))

static inline bool between(u32 x, u32 low, u32 high)
{
	return high - low >= x - low;
}

/* ---- chance -------------------------------------------------------------- */

/* Of the connection's stream of the simulation: from the seed. */
u32 get_random_u32(void);
u32 get_random_u32_below(u32 n);
void get_random_bytes(void *where, size_t n);
#define get_random_u8() ((u8)get_random_u32())
#define get_random_u16() ((u16)get_random_u32())
#define get_random_u64() \
	(((u64)get_random_u32() << 32) | get_random_u32())
#define get_random_int() ((unsigned int)get_random_u32())
#define get_random_long() ((unsigned long)get_random_u64())
#define get_random_u32_inclusive(low, high) \
	((low) + get_random_u32_below((high) - (low) + 1))
#define prandom_u32() get_random_u32()
#define prandom_u32_max(n) get_random_u32_below(n)
#define prandom_bytes(where, n) get_random_bytes(where, n)
#define net_random() get_random_u32()

/* ---- the windowed maximum and minimum of win_minmax.h -------------------- */

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
static inline u32 knee_minmax_age(struct minmax *m, u32 win,
				  struct minmax_sample s)
{
	u32 age = s.t - m->s[0].t;

	if (age > win) {
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2] = s;
		if (s.t - m->s[0].t > win) {
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

static inline u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };

	if (v >= m->s[0].v || t - m->s[2].t > win)
		return minmax_reset(m, t, v);
	if (v >= m->s[1].v)
		m->s[1] = m->s[2] = s;
	else if (v >= m->s[2].v)
		m->s[2] = s;
	return knee_minmax_age(m, win, s);
}

static inline u32 minmax_running_min(struct minmax *m, u32 win, u32 t, u32 v)
{
	struct minmax_sample s = { t, v };

	if (v <= m->s[0].v || t - m->s[2].t > win)
		return minmax_reset(m, t, v);
	if (v <= m->s[1].v)
		m->s[1] = m->s[2] = s;
	else if (v <= m->s[2].v)
		m->s[2] = s;
	return knee_minmax_age(m, win, s);
}

#include "socket.h"

#endif
