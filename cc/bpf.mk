# Builds the algorithms of cc/ as BPF objects into build/bpf/:
#   NAME.bpf.o         struct_ops; `bpftool struct_ops register` makes it the congestion control knee_NAME
#   NAME.replay.bpf.o  the same ops as a program that runs them on blocks given by user space (tests)
# Included by the root Makefile; alone: make -f cc/bpf.mk bpf

BPF_CLANG ?= clang-16
BPF_OUT ?= build/bpf
# -DCC_BPF_CONG_CONTROL_2 builds for Linux 6.4 to 6.9.
BPF_DEFINES ?=
# BPF_PROG() names arguments a program may not use; init is listed by an algorithm and by the shell, the same.
BPF_CFLAGS ?= -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-initializer-overrides -std=gnu11
BPF_TARGET := -target bpf -mcpu=v3 -fno-jump-tables -D__TARGET_ARCH_$(subst aarch64,arm64,$(subst x86_64,x86,$(shell uname -m)))
# The BPF target has no include folder of its own for <asm/types.h>.
BPF_INCLUDE := -idirafter /usr/include/$(shell uname -m)-linux-gnu

CC_NAMES := $(shell sed -n 's/^CC_ALGORITHM_FILE(\(.*\))$$/\1/p' cc/algorithms.def)
BPF_OPS := $(CC_NAMES:%=$(BPF_OUT)/%.bpf.o)
BPF_OBJECTS := $(BPF_OPS) $(CC_NAMES:%=$(BPF_OUT)/%.replay.bpf.o)

.PHONY: bpf
bpf: $(BPF_OBJECTS)

# What the loader has in itself (crates/loader/build.rs).
.PHONY: bpf-ops
bpf-ops: $(BPF_OPS)

# Those that have cong_control: what BPF_DEFINES says of it changes no other object.
BPF_CONTROL := $(shell grep -l cong_control $(CC_NAMES:%=cc/%.c))
.PHONY: bpf-control
bpf-control: $(BPF_CONTROL:cc/%.c=$(BPF_OUT)/%.bpf.o)

$(BPF_OUT)/%.replay.bpf.o: cc/%.c $(wildcard cc/*.h) cc/bpf.mk
	@mkdir -p $(@D)
	$(BPF_CLANG) $(BPF_TARGET) $(BPF_CFLAGS) $(BPF_INCLUDE) $(BPF_DEFINES) -DCC_BPF_REPLAY -c $< -o $@

$(BPF_OUT)/%.bpf.o: cc/%.c $(wildcard cc/*.h) cc/bpf.mk
	@mkdir -p $(@D)
	$(BPF_CLANG) $(BPF_TARGET) $(BPF_CFLAGS) $(BPF_INCLUDE) $(BPF_DEFINES) -c $< -o $@

# What observes connections and queues (bpf/trace_*.bpf.c), and what assigns algorithms to connections; the loader has
# them in itself too.
TRACE_OBJECTS := $(patsubst bpf/%.bpf.c,$(BPF_OUT)/%.bpf.o,$(wildcard bpf/trace_*.bpf.c))

.PHONY: bpf-programs
bpf-programs: $(TRACE_OBJECTS) $(BPF_OUT)/assign.bpf.o

$(BPF_OUT)/assign.bpf.o: bpf/assign.bpf.c bpf/assign.h cc/bpf.mk
	@mkdir -p $(@D)
	$(BPF_CLANG) $(BPF_TARGET) $(BPF_CFLAGS) $(BPF_INCLUDE) -c $< -o $@

$(BPF_OUT)/trace_%.bpf.o: bpf/trace_%.bpf.c bpf/trace.h cc/bpf.mk
	@mkdir -p $(@D)
	$(BPF_CLANG) $(BPF_TARGET) $(BPF_CFLAGS) $(BPF_INCLUDE) -c $< -o $@

# The kernel's own algorithm, recorded (bpf/record.h).
RECORD_OBJECTS := $(patsubst bpf/%.bpf.c,$(BPF_OUT)/%.bpf.o,$(wildcard bpf/record_*.bpf.c))

.PHONY: bpf-record
bpf-record: $(RECORD_OBJECTS)

$(BPF_OUT)/record_%.bpf.o: bpf/record_%.bpf.c bpf/record.h $(wildcard cc/*.h) cc/bpf.mk
	@mkdir -p $(@D)
	$(BPF_CLANG) $(BPF_TARGET) $(BPF_CFLAGS) $(BPF_INCLUDE) $(BPF_DEFINES) -c $< -o $@
