#!/bin/sh
# Puts Debian's libelf and zlib for arm64, and their headers, into a folder: arm_root.sh FOLDER. apt-get downloads them with
# a state of its own, so that it needs no root and the system stays as it is. The C library is zig's.
set -eu

mkdir -p "$1"
root=$(cd "$1" && pwd)
[ -e "$root/.complete" ] && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "arm_root.sh: needs apt-get and dpkg-deb, as Debian and Ubuntu have them" >&2
    exit 1
}
apt=$root/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$root/debs"
touch "$apt/status"
cat >"$apt/conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
EOF
export APT_CONFIG="$apt/conf"
apt-get -qq update
(cd "$root/debs" && apt-get -qq download libelf-dev libelf1 zlib1g-dev zlib1g libzstd1)
for deb in "$root"/debs/*.deb; do dpkg-deb -x "$deb" "$root/all"; done

# No other headers: those of Debian's C library are not zig's.
lib=$root/usr/lib/aarch64-linux-gnu
mkdir -p "$root/usr/include" "$lib/pkgconfig"
cp -r "$root"/all/usr/include/libelf.h "$root"/all/usr/include/gelf.h "$root"/all/usr/include/elfutils \
    "$root"/all/usr/include/zlib.h "$root"/all/usr/include/zconf.h "$root/usr/include"
find "$root/all" -path '*aarch64-linux-gnu/*' \( -name 'libelf*' -o -name 'libz.*' -o -name 'libzstd.*' \) ! -name '*.pc' -exec cp -a {} "$lib" \;
cp "$root"/all/usr/lib/aarch64-linux-gnu/pkgconfig/*.pc "$lib/pkgconfig"
# It leads to a place that only a whole system has.
ln -sf libz.so.1 "$lib/libz.so"
rm -rf "$root/all" "$apt" "$root/debs"
touch "$root/.complete"
