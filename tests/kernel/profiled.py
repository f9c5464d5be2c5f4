"""One TCP flow whose socket tells what it sent; run as a program on the sending host.

`profiled.py ADDRESS PORT ALGORITHM BYTES` sends that much, waits until all of it is acknowledged, and prints a JSON
object. The server is that of `traced.py`.
"""

import json
import socket
import struct
import sys
import time

CHUNK = bytes(64 * 1024)


def send(address: str, port: int, algorithm: str, total_bytes: int) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        sock.connect((address, port))
        left = total_bytes
        while left:
            left -= sock.send(CHUNK[: min(left, len(CHUNK))])
        while True:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            # tcpi_unacked; tcpi_data_segs_out; tcpi_bytes_sent.
            (unacked,) = struct.unpack_from("I", info, 24)
            (data_segs_out,) = struct.unpack_from("I", info, 156)
            (bytes_sent,) = struct.unpack_from("Q", info, 200)
            if not unacked:
                break
            time.sleep(0.002)
    print(json.dumps({"bytes_sent": bytes_sent, "data_segs_out": data_segs_out}))


if __name__ == "__main__":
    send(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
