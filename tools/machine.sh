#!/bin/sh
# Facts of this machine that a benchmark's figures depend on.
set -eu
governor=/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
fact() { printf '%-10s %s\n' "$1" "$2"; }
fact cpu "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
fact cores "$(getconf _NPROCESSORS_ONLN)"
fact memory "$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
fact kernel "$(uname -sr)"
if [ -r $governor ]; then fact governor "$(cat $governor)"; else fact governor "not readable"; fi
fact load "$(cut -d ' ' -f 1-3 /proc/loadavg) (1, 5, 15 minutes)"
fact rustc "$(rustc --version)"
fact commit "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"
