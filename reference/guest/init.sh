#!/bin/sh
# The first process of a reference kernel: sets the path of one cell up, carries its flows, and ends.
# The kernel's command line names the cell's folder, on the host: it holds setup.sh, run.sh and gets what is measured.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/cell
mount -t hostfs -o "$cell" none /run/cell
cd /run/cell || exit 1
sh -e ./setup.sh >setup.log 2>&1 && sh -e ./run.sh >run.log 2>&1
echo $? >code.part && mv code.part code
# The kernel ends with its first process.
echo o >/proc/sysrq-trigger
sleep 1
