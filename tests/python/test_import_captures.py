"""`knee import pcap` and `knee import tcp-info`, end to end."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import tcpknee
from support import Ended
from tcpknee.errors import UsageError

Call = Callable[..., Ended]

CLIENT, SERVER = bytes([10, 1, 2, 3]), bytes([192, 0, 2, 77])
DATA, ACK = 0x18, 0x10


def segment(from_client: bool, seq: int, ack: int, size: int) -> bytes:
    """An IPv4 packet of a TCP segment with 20 bytes of header."""
    ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    ports = (40000, 443) if from_client else (443, 40000)
    first = (1000, 5000) if from_client else (5000, 1000)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + size, 0, 0, 64, 6, 0) + b"".join(ends)
    tcp = struct.pack("!HHIIBBHHH", *ports, first[0] + seq, first[1] + ack, 0x50, DATA if size else ACK, 500, 0, 0)
    return ip + tcp + bytes(size)


def capture(packets: Sequence[tuple[float, bytes]]) -> bytes:
    """A pcap file of raw IP packets at these seconds."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for seconds, packet in packets:
        whole = round(seconds * 1e6)
        parts += [struct.pack("<IIII", whole // 10**6, whole % 10**6, len(packet), len(packet)), packet]
    return b"".join(parts)


FLOW = [
    (10.00, segment(True, 0, 0, 1000)),
    (10.02, segment(False, 0, 1000, 0)),
    (10.30, segment(True, 1000, 0, 1000)),
    (10.50, segment(True, 1000, 0, 1000)),
    (10.53, segment(False, 0, 2000, 0)),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.pcap.gz"
    path.write_bytes(gzip.compress(capture(FLOW)))
    return path


def test_a_capture_becomes_two_tables_that_sql_can_ask(call: Call, file: Path) -> None:
    ended = call("import", "pcap", file, "--out", "in", "--host", "edge1")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "1 connection and 2 rows of ACKs from 5 packets"
    query = """select c.host, c.total_retrans, c.bytes_acked, list(a.rtt_us order by a.t_unix_ns) as rtts
               from capture_connections c join capture_acks a using (connection) group by all"""
    found = json.loads(call("sql", query, "in", "--json").out)
    assert found["rows"] == [{"host": "edge1", "total_retrans": 1, "bytes_acked": 2000, "rtts": [20000, None]}]


def test_intervals_are_rows_of_their_own(call: Call, file: Path) -> None:
    assert call("import", "pcap", file, "--out", "in", "--every", "1s").code == 0
    found = json.loads(
        call("sql", "select t_unix_ns, rtt_samples, bytes_retrans from capture_acks", "in", "--json").out
    )
    assert found["rows"] == [{"t_unix_ns": 10 * 10**9, "rtt_samples": 1, "bytes_retrans": 1000}]
    refused = call("import", "pcap", file, "--out", "in", "--every", "0s")
    assert refused.code == 2 and "every" in refused.err and "Traceback" not in refused.err


def test_api_returns_both_tables_with_units(file: Path) -> None:
    found = tcpknee.import_pcap(file, anonymize="truncate")
    (row,) = found.connections.to_pylist()
    assert (row["local_addr"], row["remote_addr"]) == ("10.1.2.0", "192.0.2.0")
    assert found.acks.num_rows == 2
    assert found.acks.schema.field("inflight_bytes").metadata[b"unit"] == b"bytes"
    assert json.loads(found.acks.schema.metadata[b"import"])["packets"] == 5


def test_damage_is_told_and_strict_leaves_nothing(call: Call, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(capture(FLOW)[:-5])
    ended = call("import", "pcap", cut, "--out", "in", "--dry-run")
    assert ended.code == 0
    assert f"{cut}: packet 5: the file ends within a packet" in ended.err
    ended = call("import", "pcap", cut, "--out", "in", "--strict")
    assert ended.code == 1 and not (tmp_path / "in").exists()


def test_what_is_no_capture_is_refused(call: Call, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("a diary")
    ended = call("import", "pcap", notes)
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith(f"{notes}: cannot be read: it begins with 61206469")
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(b"")
    with pytest.raises(UsageError, match="empty; expected packet captures"):
        tcpknee.import_pcap(empty)


def test_connection_captured_at_the_receiver_is_told(call: Call, tmp_path: Path) -> None:
    """By timestamps: the server answers at once, the client after 40 ms."""

    def stamped(packet: bytes, value: int, echo: int) -> bytes:
        option = struct.pack("!BBBBII", 1, 1, 8, 10, value, echo)
        header = bytearray(packet[:40])
        struct.pack_into("!H", header, 2, len(packet) + 12)
        header[32] = 0x80
        return bytes(header) + option + packet[40:]

    packets = []
    for turn in range(4):
        seconds = 10 + turn * 0.04
        packets.append((seconds, stamped(segment(True, turn * 1000, 0, 1000), 100 + turn, 200 + turn)))
        packets.append((seconds + 0.0001, stamped(segment(False, 0, turn * 1000 + 1000, 0), 201 + turn, 100 + turn)))
    path = tmp_path / "receiver.pcap"
    path.write_bytes(capture(packets))
    ended = call("import", "pcap", path, "--out", "in")
    assert "1 connection was captured at the receiver of their data" in ended.err


def test_tcp_info_files_become_sockets(call: Call, tmp_path: Path) -> None:
    head = struct.pack("<BBBB", 2, 1, 0, 0) + struct.pack("!HH", 443, 50123) + CLIENT + bytes(12) + SERVER + bytes(12)
    head += struct.pack("<IQ", 0, 0x62D84) + bytes(20)
    info = bytearray(224)
    struct.pack_into("<I", info, 68, 40_000)
    record = {
        "Timestamp": "2026-07-01T00:00:12.092Z",
        "RawIDM": base64.b64encode(head).decode(),
        "Attributes": [None, None, base64.b64encode(bytes(info)).decode(), None, base64.b64encode(b"bbr\0").decode()],
    }
    metadata = {"Timestamp": "0001-01-01T00:00:00Z", "Metadata": {"UUID": "ndt-abcde_1559749627_0000000000062D84"}}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in (metadata, record, {"Timestamp": "x"})))
    ended = call("import", "tcp-info", path, "--out", "in")
    assert ended.code == 0
    assert f"{path}:3: it has neither RawIDM nor Metadata" in ended.err
    (row,) = tcpknee.import_tcp_info(path).to_pylist()
    assert (row["host"], row["algorithm"], row["srtt_us"], row["cookie"]) == ("ndt-abcde", "bbr", 40_000, 0x62D84)
    assert row["remote_addr"] == "192.0.2.77"
