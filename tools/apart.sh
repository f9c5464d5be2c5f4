#!/bin/sh
# Runs a command in a network of its own, as root: apart.sh COMMAND…
#
# Tests that run side by side would meet in the host's network: its ports, devices, sockets and names of namespaces.
exec unshare --net --mount sh -ec '
    # A new /sys shows the devices of the new network, and no mounts below it.
    mount --rbind /sys/fs/cgroup /mnt
    mount -t sysfs sysfs /sys
    mount --rbind /mnt /sys/fs/cgroup
    umount --lazy /mnt
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link set lo up
    # As on any machine, a device with a queue.
    ip link add eth0 type veth peer name peer0
    tc qdisc add dev eth0 root pfifo
    ip link set eth0 up
    exec "$@"
' sh "$@"
