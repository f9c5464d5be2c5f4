/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * assign_native.c - assign.h for Rust (crates/assign/src/plan.rs).
 */
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#include "assign.h"

int knee_assign_choose(const struct assign_plan *plan,
		       const struct assign_connection *connection,
		       struct assign_choice *choice);
u64 knee_assign_draw(u64 seed, const u64 unit[2]);

int knee_assign_choose(const struct assign_plan *plan,
		       const struct assign_connection *connection,
		       struct assign_choice *choice)
{
	return assign_choose(plan, connection, choice);
}

u64 knee_assign_draw(u64 seed, const u64 unit[2])
{
	return assign_draw(seed, unit);
}
