"""One TCP flow between two hosts, which tells of itself what a trace of it must show; run as a program on each.

server: `traced.py server PORT` prints "ready", reads every connection to its end, until it is killed.
client: `traced.py client ADDRESS PORT BYTES` sends that much, waits until all of it is acknowledged, notes tcp_info,
and sends one byte more. What arrives for that byte finds the connection as noted. Prints one JSON object.
"""

import json
import socket
import struct
import sys
import time

from ends import serve

CHUNK = bytes(64 * 1024)
TCP_INFO_WORDS = struct.Struct("8B24I")
"""The first 104 bytes of struct tcp_info: 8 of one byte, then words."""


def tcp_info(sock: socket.socket) -> dict[str, int]:
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    words = TCP_INFO_WORDS.unpack_from(raw)[8:]
    (bytes_acked,) = struct.unpack_from("Q", raw, 120)
    return {
        "ca_state": raw[1],
        "unacked": words[4],
        "srtt_us": words[15],
        "rttvar_us": words[16],
        "snd_ssthresh": words[17],
        "snd_cwnd": words[18],
        "total_retrans": words[23],
        "bytes_acked": bytes_acked,
    }


def send(address: str, port: int, total_bytes: int) -> None:
    with socket.socket() as sock:
        # Every kernel has it, and it fills the buffer until packets are lost.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        sock.connect((address, port))
        left = total_bytes
        while left:
            left -= sock.send(CHUNK[: min(left, len(CHUNK))])
        while tcp_info(sock)["unacked"]:
            time.sleep(0.002)
        noted = tcp_info(sock)
        sock.send(b"x")
        while tcp_info(sock)["unacked"]:
            time.sleep(0.002)
        # SO_COOKIE of asm-generic/socket.h; the module has no name for it.
        (cookie,) = struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, 57, 8))
        told = {"cookie": cookie, "port": sock.getsockname()[1], "noted": noted}
        told["segments_in"] = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 140)[0]
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
