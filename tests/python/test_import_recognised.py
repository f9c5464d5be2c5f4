"""`knee import FILE` without an importer's name, and what is hidden with the addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from support import Ended, refused
from tcpknee import imports

Call = Callable[..., Ended]

DATA = Path(__file__).parents[2] / "crates/import/tests/data"
DUMP = "ESTAB 0 4 192.0.2.1:40000 198.51.100.9:443\n\t cubic rto:204 cwnd:9\n"


def test_files_are_taken_for_what_their_first_bytes_look_like(call: Call, tmp_path: Path) -> None:
    (tmp_path / "some.data").write_text(DUMP)
    (tmp_path / "more.data").write_text(DUMP)
    ended = call("import", "some.data", "more.data", "--out", "in", "--host", "edge1", "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["rows"], report["dumps"]) == (0, 2, 2)
    assert "some.data and 1 more: taken for ss (Dumps of ss, of any iproute2 since 3.10)" in ended.err
    assert imports.recognised(tmp_path / "some.data").name == "ss"
    assert "taken for" not in call("import", "some.data", "--out", "quiet", "-q").err


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("ss/dump.txt", "ss"),
        ("nginx/combined.log", "nginx"),
        ("pcap/capture.pcapng", "pcap"),
        ("tcp_info.jsonl", "tcp-info"),
        ("iperf3/v3.1-tcp.json", "iperf3"),
        ("test.flent", "flent"),
        ("odd/45-syslog-prefix.log", "nginx"),
        ("odd/42-bom.json", "iperf3"),
    ],
)
def test_each_importers_own_is_recognised(file: str, kind: str) -> None:
    assert imports.recognised(DATA / file).name == kind


def test_what_is_nobodys_or_of_two_is_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "b.txt").write_text(DUMP)
    ended = call("import", "a.txt", "--out", "in")
    refused(
        ended, "a.txt: looks like no importer's; expected a file of one of ss, nginx, pcap, tcp-info, iperf3, flent"
    )
    refused(
        call("import", "b.txt", DATA / "iperf3/v3.1-tcp.json", "--out", "in"),
        "looks like iperf3's, and b.txt like ss's",
    )
    refused(call("import", "gone.txt", "--out", "in"), "gone.txt: cannot be read")
    assert not (tmp_path / "in").exists()
    assert "iperf3" in call("import", "iperf", "--out", "in").err


def test_no_address_is_shown_where_addresses_are_anonymised(call: Call, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(f" {DUMP}\t more 192.0.2.77 fe80::7\n{DUMP.replace(':443', ':db1')}")
    ended = call("import", "ss", "dump.txt", "--out", "in", "--anonymize", "truncate", "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["rows"], report["lines_not_understood"]) == (0, 2, 0)
    for text in (ended.out, ended.err):
        assert not any(hidden in text for hidden in ("192.0.2.", "198.51.100.9", "fe80", "db1"))
    table = tcpknee.import_ss(tmp_path / "dump.txt", anonymize="truncate")
    assert table["local_addr"].to_pylist() == ["192.0.2.0"] * 2
