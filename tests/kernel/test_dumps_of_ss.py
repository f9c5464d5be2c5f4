"""What ss prints of real sockets, imported, is what the kernel tells ourselves of them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import probes
import tcpknee

INSIDE = """
import json, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
held = []
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((address, 0), family=family, backlog=64)
    for number in range(20):
        near = socket.create_connection(listener.getsockname()[:2])
        far, _ = listener.accept()
        near.sendall(bytes(1 + 1000 * number))
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno" if number % 2 else b"cubic")
        held += [near, far]
import tcpknee
for name, options in (("lines", "-tineomH"), ("one", "-tineomHO")):
    with open(f"{sys.argv[1]}/{name}.txt", "w") as out:
        subprocess.run(["ss", options], stdout=out, check=True)
table = tcpknee.sockets()
rows = table.drop_columns(["t_unix_ns", "t_mono_ns"]).to_pylist()
with open(f"{sys.argv[1]}/ours.json", "w") as out:
    json.dump(rows, out)
"""
PASSING = {"last_data_sent_ms", "last_data_recv_ms", "last_ack_recv_ms", "timer_ms"}
"""They go on between two dumps."""


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of lines, one of one line each, and ours, of the same idle connections in a namespace of their own."""
    probes.need_programs("ss", "ip", "unshare")
    if os.geteuid() != 0:
        probes.need_user_namespaces()
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    folder = tmp_path_factory.mktemp("dumped")
    done = subprocess.run([*own, sys.executable, "-c", INSIDE, str(folder)], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def by_cookie(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {row["cookie"]: row for row in rows}


@pytest.mark.parametrize("name", ["lines", "one"])
def test_a_dump_of_ss_agrees_with_our_own_field_by_field(dumped: Path, name: str) -> None:
    table = tcpknee.import_ss(dumped / f"{name}.txt", strict=True)
    report = json.loads(table.schema.metadata[b"import"])
    assert report["unknown_words"] == {}
    theirs = by_cookie(table.drop_columns(["t_unix_ns", "t_mono_ns"]).to_pylist())
    ours = by_cookie(json.loads((dumped / "ours.json").read_text()))
    assert len(ours) == 80 and set(ours) == set(theirs)
    compared: dict[str, int] = {}
    wrong = []
    for cookie, row in theirs.items():
        for column, value in row.items():
            known = ours[cookie][column]
            if value is None or known is None or column in PASSING:
                continue
            compared[column] = compared.get(column, 0) + 1
            # ss rounds rates to three digits.
            near = abs(value - known) <= 0.006 * abs(known) if column.endswith("per_sec") else value == known
            if not near:
                wrong.append((column, value, known))
    assert not wrong, wrong[:10]
    told = {"local_addr", "remote_port", "state", "algorithm", "snd_cwnd", "srtt_us", "rttvar_us", "rto_us", "inode"}
    assert told <= set(compared) and len(compared) >= 40, sorted(compared)


def test_a_dump_on_one_line_each_is_the_same_table(dumped: Path) -> None:
    tables = [tcpknee.import_ss(dumped / f"{name}.txt").drop_columns(sorted(PASSING)) for name in ("lines", "one")]
    assert len(tables[0]) == 80
    assert by_cookie(tables[0].to_pylist()) == by_cookie(tables[1].to_pylist())
