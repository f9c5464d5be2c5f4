"""captured.py ADDRESS CAPTURE INFO BYTES: sends BYTES to the first that connects, and captures its device.

When all is acknowledged it ends the capture and writes what TCP_INFO says then, before the connection closes. With
ADDRESS alone it is the one that connects, and reads to the end.
"""

from __future__ import annotations

import fcntl
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

SIOCOUTQ = 0x5411
INFO_BYTES = 280

if len(sys.argv) == 2:
    with socket.create_connection((sys.argv[1], 5201)) as reader:
        while reader.recv(1 << 16):
            pass
    sys.exit()
address, capture, info, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
device = next(name for _, name in socket.if_nameindex() if name != "lo")
dumpcap = subprocess.Popen(
    ["dumpcap", "-q", "-i", device, "-s", "128", "-w", capture], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
)
assert dumpcap.stderr is not None
while not dumpcap.stderr.readline().startswith(b"File:"):
    pass
with socket.create_server((address, 5201)) as server:
    connection, _ = server.accept()
connection.sendall(bytes(size))
unacked = size
while unacked:
    time.sleep(0.01)
    (unacked,) = struct.unpack("i", fcntl.ioctl(connection, SIOCOUTQ, bytes(4)))
# The last ACK on its way into the capture, and duplicates behind it.
time.sleep(0.3)
info.write_bytes(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES))
dumpcap.send_signal(signal.SIGINT)
dumpcap.wait()
connection.close()
time.sleep(60)
