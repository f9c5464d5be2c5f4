"""The page of a host: what it shows of a snapshot, and what a hostile one cannot do to it."""

from __future__ import annotations

import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from tcpknee.cli.app import app
from tcpknee.doctor.snapshot import Snapshot
from tcpknee.errors import UsageError
from tcpknee.pages import host_page
from tcpknee.pages.host_picture import ROWS_AT_MOST, picture, queues, ranges

sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "doctor"))
import made
from host_parts import merged
from rule_cases import LIMITS

MIXED = {
    "qdiscs": [{"interface": "eth0", "parent": "1:1", "handle": "8001:", "kind": "pfifo_fast"}],
    "rings": [{"interface": "eth0", "rx": 256, "rx_max": 4096, "tx": None}],
    "queues": [{"interface": "eth0", "direction": "rx", "number": 0, "rps_cpus": [1, 2], "rps_flow_cnt": 0}],
}


def test_the_page_leads_with_the_worst_finding():
    text = host_page.page(made.snapshot(MIXED))
    first = re.search(r'<p class="answer">(.*?)</p>', text)
    assert first is not None and "1 warning, 1 advice" in first[1] and "pfifo_fast" in first[1]
    calm = host_page.page(made.snapshot())
    assert "finds anything wrong" in calm and "<h3>" not in calm


def test_a_finding_says_whether_it_goes_on_why_and_what_to_do_apart():
    now = {"interfaces": [{"interface": "eth0", "rx_missed_errors": 500_000}]}
    first = {"interfaces": [{"interface": "eth0", "rx_missed_errors": 400_000}]}
    text = host_page.page(made.sampled(now, first))
    assert "<dt>now</dt><dd>Goes on: dropped_pkts 10,000 a second, in the last 10 s.</dd>" in text
    assert "<dt>why</dt>" in text and "<dt>gain</dt>" in text and 'class="outcome warning"' in text
    assert "<dt>looked at twice</dt><dd>10 s apart</dd>" in text and "<dt>now</dt>" not in host_page.page(
        made.snapshot(now)
    )
    assert "2023-11-14 22:13:20 UTC" in text and 'href="#finding-' not in text


def test_words_between_backquotes_are_code_and_a_young_host_is_not_up_for_no_days():
    fired = merged(*(case.fires for case in LIMITS.values()))
    text = host_page.page(made.snapshot(merged(fired, {"host": {"uptime_sec": 2412.0}})))
    assert "`" not in text.split("<main>")[1].split("<script")[0]
    assert "<dt>up</dt><dd>40 min 12 s</dd>" in text
    young = host_page.page(made.snapshot({"host": {"uptime_sec": 3 * 86_400.0}}))
    assert "<dt>up</dt><dd>3.0 days</dd>" in young


def test_of_many_findings_there_is_a_list_first():
    text = host_page.page(made.snapshot(merged(*(case.fires for case in LIMITS.values()))))
    assert 'href="#finding-5"' in text and 'id="finding-5"' in text


def test_of_thousands_of_findings_of_a_rule_some_are_shown_and_the_rest_is_counted():
    rows = [{"interface": f"veth{at}", "kind": "veth", "operstate": "up", "loopback": False} for at in range(3_000)]
    leaves = [{"interface": row["interface"], "kind": "fq", "handle": "0:", "parent": "root"} for row in rows]
    text = host_page.page(
        made.snapshot({"interfaces": rows, "qdiscs": [{**row, "horizon_drops": 5} for row in leaves]})
    )
    assert text.count("<h3 ") == 5 and "fq-horizon-drops also holds for 2,995 others" in text and len(text) < 200_000


def test_lines_lead_from_each_queue_to_the_processors_of_its_interrupt_and_of_rps():
    found = queues(made.snapshot(MIXED))
    assert [(queue.number, queue.interrupts, queue.rps) for queue in found] == [
        (0, (0,), (1, 2)),
        (1, (1,), ()),
        (2, (2,), ()),
        (3, (3,), ()),
    ]
    drawn = picture(made.snapshot(MIXED))
    assert drawn is not None
    at = {one["text"].split(",")[0]: one["y"] for one in drawn["cpus"]}
    of_first = [(line["kind"], line["to"]) for line in drawn["lines"] if line["from"] == drawn["queues"][0]["y"]]
    assert of_first == [("interrupt", at["cpu0"]), ("rps", at["cpu1"]), ("rps", at["cpu2"])]
    assert drawn["words"] == ["eth0: 4 receive queues, interrupts on cpu0-3; RPS over cpu1-2."]


def test_an_interrupt_that_only_sends_is_no_receive_queue():
    names = {"virtio0-input.0": 0, "virtio0-output.0": None, "mlx5-eth0-tx-0": None, "i40e-eth0-TxRx-1": 1}
    for name, number in names.items():
        irq = {"number": 40, "name": name, "interface": "eth0", "affinity": [3], "effective": [3], "counts": {}}
        others = [{"number": 40 + cpu, "interface": "none"} for cpu in range(1, 4)]
        found = queues(made.snapshot({"irqs": [irq, *others]}))
        assert {queue.number for queue in found if queue.interrupts == (3,)} == ({number} - {None}), name


def test_of_many_queues_and_processors_the_rest_is_said_to_be_missing():
    drawn = picture(made.snapshot(cpus=512))
    assert drawn is not None
    assert len(drawn["queues"]) == len(drawn["cpus"]) == ROWS_AT_MOST
    assert drawn["left_out"] == ["448 more queues", "448 more processors"]
    assert "512 receive queues, interrupts on cpu0-511" in drawn["words"][0]


@pytest.mark.parametrize(("cpus", "told"), [([0], "cpu0"), ([0, 1, 2, 8], "cpu0-2,8"), ([1, 3], "cpu1,3")])
def test_processors_are_told_as_linux_lists_them(cpus, told):
    assert ranges(cpus) == told


def test_qdiscs_stand_in_the_order_of_their_tree():
    rows = [
        {"handle": "8001:", "parent": "1:1", "kind": "fq"},
        {"handle": "1:", "parent": "root", "kind": "mq"},
        {"handle": "ffff:", "parent": "ingress", "kind": "ingress"},
        {"handle": "2:", "parent": "3:1", "kind": "htb"},
        {"handle": "3:", "parent": "2:1", "kind": "htb"},
    ]
    full = made.snapshot({"without": ["qdiscs"], "qdiscs": [{"interface": "eth0", **row} for row in rows]})
    tree = host_page.tree_of(full.rows("qdiscs"))
    # The last two are each other's parents: one of them stands at the top, and none is lost.
    assert [(row["kind"], row["depth"]) for row in tree] == [
        ("mq", 0),
        ("fq", 1),
        ("ingress", 0),
        ("htb", 0),
        ("htb", 1),
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_names_in_a_snapshot_make_no_markup_and_the_page_runs_no_script():
    hostile = '"><script>alert(1)</script>\u202e'
    name = '"><img>\u202e'
    interface = {"interface": name, "operstate": "up", "loopback": False, "rx_queues": 1, "tx_queues": 1}
    queue = {"interface": name, "direction": "rx", "number": 0, "rps_cpus": [0], "rps_flow_cnt": 0}
    socket = {"algorithm": hostile, "remote": hostile, "rtt_band": hostile, "connections": 1}
    text = host_page.page(
        made.snapshot({"host": {"host": hostile}, "interfaces": [interface], "queues": [queue], "sockets": [socket]})
    )
    tags = Tags()
    tags.feed(text)
    assert not {"script", "img"} & set(tags.found) and "\u202e" not in text
    assert "script-src 'none'" in unescape(text) and "alert(1)" in text


def test_a_page_of_an_empty_snapshot_says_so():
    text = host_page.page(Snapshot.of(0, {}))
    assert "figure-queues" not in text and text.count('<p class="note">No') == 2


def test_report_takes_a_snapshot(tmp_path):
    file = tmp_path / "host.json"
    made.snapshot(MIXED).write(file)
    run = CliRunner().invoke(app, ["report", str(file)], catch_exceptions=False)
    assert run.exit_code == 0 and (tmp_path / "host.html").read_text().startswith("<!doctype html>")
    assert f"Report: {tmp_path / 'host.html'}" in run.output
    refused = CliRunner().invoke(app, ["report", str(file), "--figure", "limits"])
    assert refused.exit_code == 2 and "is a file" in refused.output
    file.write_text(file.read_text()[:100])
    with pytest.raises(UsageError, match="cut off"):
        CliRunner().invoke(app, ["report", str(file)], catch_exceptions=False)


def test_a_folder_of_snapshots_says_which_rule_finds_something_on_how_many(tmp_path):
    for number in range(5):
        host = {"host": f"web{number}<b>"}
        made.snapshot({"host": host, **(MIXED if number == 0 else {})}).write(tmp_path / f"web{number}.json")
    (tmp_path / "cut.json").write_text("{")
    run = CliRunner().invoke(app, ["report", str(tmp_path)], catch_exceptions=False)
    assert run.exit_code == 0
    text = (tmp_path / "hosts.html").read_text()
    assert "<h1>5 hosts</h1>" in text and "<b>" not in text
    row = re.search(r"<tr>(?:(?!</tr>).)*mq-leaf-without-fq(?:(?!</tr>).)*</tr>", text, re.DOTALL)
    assert row is not None and "20 %" in row[0] and "web0&lt;b&gt;" in row[0] and "web1" not in row[0]
    assert "cut.json: " in text
    # web0 has another ring than the four others of its kind.
    assert re.search(r"eth0 rings rx</th>.*?<td>2048</td><td>256: web0&lt;b&gt;</td>", text, re.DOTALL)
