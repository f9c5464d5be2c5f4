#!/bin/sh
# Checks that what a make target needs is installed: need.sh [THING…] [--optional THING…]
#
# What is missing is installed with apt-get, all at once, when this runs as root
# on a system that has it; otherwise one line names it and the command to install
# it. That a thing after --optional is missing is said and is no error.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
optional=no
needed_packages=
needed_things=
optional_packages=
optional_things=

# A thing that is not there, and the Debian packages that have it.
miss() {
    if [ "$optional" = yes ]; then
        optional_things="$optional_things $1"
        optional_packages="$optional_packages $2"
    else
        needed_things="$needed_things $1"
        needed_packages="$needed_packages $2"
    fi
}
command_or_miss() {
    command -v "$1" >/dev/null 2>&1 || PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || miss "$1" "$2"
}

# What -fsanitize links, for the compiler that is there or will be.
runtime_or_miss() {
    runtime=$(clang-16 -print-file-name=libclang_rt.asan-"$(uname -m)".a 2>/dev/null || true)
    [ -e "$runtime" ] || miss "the sanitizers of clang-16" libclang-rt-16-dev
}

check() {
    case $1 in
    rust) need_rust ;;
    python) need_python ;;
    cc) command -v "${CC:-cc}" >/dev/null 2>&1 || miss "a C compiler" "gcc libc6-dev" ;;
    c++) command -v "${CXX:-c++}" >/dev/null 2>&1 || miss "a C++ compiler" g++ ;;
    make) command_or_miss make make ;;
    libelf) [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ] || miss "libelf and zlib" "libelf-dev zlib1g-dev" ;;
    clang-16) command_or_miss clang-16 clang-16 ;;
    clang-rt) runtime_or_miss ;;
    clang-format-16) command_or_miss clang-format-16 clang-format-16 ;;
    libbpf) [ -e /usr/include/bpf/bpf_helpers.h ] || miss libbpf libbpf-dev ;;
    bpftool) command_or_miss bpftool bpftool ;;
    ip) command_or_miss ip iproute2 ;;
    ethtool) command_or_miss ethtool ethtool ;;
    node) command_or_miss node nodejs ;;
    valgrind) command_or_miss valgrind valgrind ;;
    nft) command_or_miss nft nftables ;;
    curl) command_or_miss curl curl ;;
    tmux) command_or_miss tmux tmux ;;
    nsenter) command_or_miss nsenter util-linux ;;
    kernel-build) for name in flex bison bc; do command_or_miss $name $name; done; command_or_miss xz xz-utils ;;
    setpriv) command_or_miss setpriv util-linux ;;
    pkg-config) command_or_miss pkg-config pkg-config ;;
    redis) command_or_miss redis-server redis-server; command_or_miss redis-benchmark redis-tools ;;
    tshark) command_or_miss tshark tshark ;;
    chromium) command -v chromium-browser >/dev/null 2>&1 || command_or_miss chromium chromium ;;
    *) echo "need.sh: unknown thing \"$1\"" >&2; exit 2 ;;
    esac
}

need_rust() {
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
    remedy="Install it with rustup (https://rustup.rs) or your distribution, and see that cargo is in PATH."
    if ! command -v cargo >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
        echo "tcpknee needs Rust $wanted or later, and there is no cargo in PATH. $remedy" >&2
        exit 1
    fi
    found=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
    oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
    if [ "$oldest" != "$wanted" ]; then
        echo "tcpknee needs Rust $wanted or later; this is $found. $remedy" >&2
        exit 1
    fi
}

need_python() {
    if ! command -v "$python" >/dev/null 2>&1; then
        miss "$python" "python3 python3-venv"
    elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        echo "tcpknee needs Python 3.10 or later; $python is $("$python" -V 2>&1). Name another: make PYTHON=python3.12 …" >&2
        exit 1
    elif ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        miss "Python's venv" "python3-venv"
    fi
}

installed() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    echo "Installing:$*" >&2
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2068  # lists of packages
    apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $@ >/dev/null
}

# things, their packages
say_missing() {
    echo "Missing:$1. Install with: apt-get install$2 (as root; elsewhere than on Debian, the like of it)." >&2
}

for thing; do
    case $thing in
    --optional) optional=yes ;;
    *) check "$thing" ;;
    esac
done
[ -n "$needed_things$optional_things" ] || exit 0
installed "$needed_packages$optional_packages" && exit 0
if [ -n "$optional_things" ]; then
    # A package that the system does not have must not keep the others out.
    if [ -n "$needed_things" ] && installed "$needed_packages"; then needed_things=; fi
    say_missing "$optional_things" "$optional_packages"
    echo "Going on without: what needs it is left out or skipped, and says so." >&2
fi
[ -z "$needed_things" ] || { say_missing "$needed_things" "$needed_packages"; exit 1; }
