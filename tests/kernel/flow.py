"""One TCP flow between two network namespaces, run as a program in each of them.

server: `flow.py server PORT ALGORITHM` prints "ready", reads one connection to its end and prints the bytes
received. It runs the same algorithm: one that needs ECN gets it of its like alone.
client: `flow.py client ADDRESS PORT ALGORITHM BYTES` sends and prints one JSON object: what the socket ran
(getsockopt TCP_CONGESTION) and the TCP_INFO samples it saw.
"""

import json
import socket
import struct
import sys
import time

CHUNK_BYTES = 256 * 1024
TCP_INFO_BYTES = 232
# Offsets in struct tcp_info (linux/tcp.h), bytes.
U32_FIELDS = {"rtt_us": 68, "snd_ssthresh": 76, "snd_cwnd": 80, "total_retrans": 100}
U64_FIELDS = {"pacing_rate": 104, "bytes_acked": 120}


def tcp_info(sock: socket.socket) -> dict[str, int]:
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    info = {name: struct.unpack_from("=I", raw, at)[0] for name, at in U32_FIELDS.items()}
    info |= {name: struct.unpack_from("=Q", raw, at)[0] for name, at in U64_FIELDS.items()}
    return info


def congestion(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def serve(port: int, algorithm: str) -> None:
    with socket.create_server(("0.0.0.0", port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        print("ready", flush=True)
        connection, _ = listener.accept()
        received_bytes = 0
        while data := connection.recv(CHUNK_BYTES):
            received_bytes += len(data)
        print(received_bytes, flush=True)


def send(address: str, port: int, algorithm: str, total_bytes: int) -> None:
    sock = socket.socket()
    # Before connect(): the first ACK that cong_control sees is then the SYN-ACK, before init().
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
    sock.settimeout(30)
    started = time.monotonic()
    sock.connect((address, port))
    samples = [tcp_info(sock)]
    chunk = bytes(CHUNK_BYTES)
    sent_bytes = 0
    while sent_bytes < total_bytes:
        sent_bytes += sock.send(chunk[: total_bytes - sent_bytes])
        samples.append(tcp_info(sock))
    ran = congestion(sock)
    sock.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + 30
    # The FIN counts one byte of sequence space; wait until the data is acked.
    while samples[-1]["bytes_acked"] < total_bytes and time.monotonic() < deadline:
        time.sleep(0.01)
        samples.append(tcp_info(sock))
    elapsed_s = time.monotonic() - started
    print(json.dumps({"ran": ran, "elapsed_s": elapsed_s, "samples": samples}))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(int(sys.argv[2]), sys.argv[3])
    else:
        send(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
