"""The page: complete, offline, small, and safe with hostile words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import synthetic
import tcpknee
from tcpknee import pages
from tcpknee.errors import RunFolderError
from tcpknee.evidence import published
from tcpknee.pages import export, page, summary
from tcpknee.pages.run import ReportRun
from tcpknee.runs.results import Run

HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)> & "quoted" `code`'
#: Attributes by which a page makes a browser fetch something.
FETCHING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background", "ping"}


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        (self.scripts if self._inside == "script" else self.words).append(data)


def read(html: str) -> Elements:
    parser = Elements()
    parser.feed(html)
    return parser


def data_of(elements: Elements) -> dict:
    return json.loads(elements.scripts[0])


@pytest.mark.parametrize("name", list(synthetic.CASES))
def test_a_page_fetches_nothing(name, pages):
    html = pages(name)
    elements = read(html)
    for tag, attributes in elements.elements:
        assert not FETCHING & set(attributes), (tag, attributes)
        assert tag not in ("link", "iframe", "object", "embed", "base", "video", "audio")
    assert "@import" not in html.split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(\s*['\"]?https?:", html)
    own = elements.scripts[0] + elements.scripts[2]
    remote = [url for url in re.findall(r"https?://[^\s\"'\\]+", own) if "vega.github.io/schema" not in url]
    assert remote == [], "only the specifications name their schema, which nobody fetches"
    # The browser itself is told to refuse.
    policy = next(a["content"] for t, a in elements.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_fifty_flows_for_a_minute_fit_in_three_megabytes(pages):
    assert len(pages("many").encode()) <= page.BYTES_AT_MOST == 3_000_000


def test_fifty_flows_in_each_of_two_cells_fit_too(tmp_path):
    folder = synthetic.write_run(tmp_path / "run", flows=50, reps=1, seconds=60.0)
    assert pages.write(folder, tmp_path / "page.html").stat().st_size <= page.BYTES_AT_MOST


def test_all_fifty_flows_stand_in_the_page(pages):
    blocks = data_of(read(pages("many")))["conditions"][0]["sets"]["lines_cwnd"]
    assert len({block["c"]["series"] for block in blocks}) == 50


def test_hostile_words_stay_words(tmp_path):
    axes = {"path.<b>x</b>": ("</script>", "<i>2</i>")}
    folder = synthetic.write_run(tmp_path / "run", title=HOSTILE, axes=axes, reps=2, seconds=3.0)
    meta = json.loads((folder / "run.json").read_text())
    meta |= dict.fromkeys(("command", "file", "scenario", "status"), HOSTILE)
    meta["host"] = {"kernel": HOSTILE, HOSTILE: HOSTILE}
    meta["published"] = [{"value": "cubic.goodput", "figure": "1Mbit/s", "source": HOSTILE, "line": 1}]
    (folder / "run.json").write_text(json.dumps(meta))
    elements = read(page.render(ReportRun.open(folder)))
    tags = [tag for tag, _ in elements.elements]
    assert tags.count("script") == 3 and not {"img", "b", "i"} & set(tags)
    assert not any(name.startswith("on") for _, attributes in elements.elements for name in attributes)
    assert HOSTILE in "".join(elements.words)
    data_of(elements)


def test_the_head_gives_the_answer_the_table_and_the_expectations(pages):
    words = " ".join(read(pages("two")).words)
    assert re.search(r"Goodput: bbr1 is 1\.\d+× cubic \[", words)
    assert "congestion window 70" in words and "Base RTT" in words
    assert "bbr1.goodput / cubic.goodput >= 1.2" in words and "holds" in words


def test_published_figures_stand_beside_ours_and_are_said_not_to_be_checked(pages):
    words = " ".join(read(pages("two")).words)
    section = words.split("Published, beside ours")[1].split("Run it again")[0]
    assert published.NOTE in section and "article D, 10 Gbit/s VMs" in section
    assert re.search(r"cubic\.goodput\s+98\.20 Mbit/s\s+[\d.]+ Mbit/s \[[\d., ]+\]\s+0\.\d+× \[", section)
    assert "Published, beside ours" not in " ".join(read(pages("matrix")).words)


def test_one_repetition_is_said_to_prove_nothing(pages):
    words = " ".join(read(pages("one")).words)
    assert "no intervals and no verdicts" in words
    assert "95 % intervals." not in words.split("Goodput")[0]


def test_the_foot_has_all_that_a_second_run_needs(pages, case):
    words = "".join(read(pages("two")).words)
    meta = json.loads((case("two") / "run.json").read_text())
    assert meta["scenario"] in words and meta["command"] in words and meta["host"]["cpu"] in words
    assert "417 packets" in words
    assert "payload read in order by the far application" in words


def test_a_matrix_is_answered_in_one_sentence(case):
    heads, details = summary.answer(ReportRun.open(case("matrix")))
    assert len(heads) == 1 and re.match(r"Goodput: bbr1 is above cubic in all 9 conditions \(1\.\d+× to ", heads[0])
    assert len(details) == 9 and details[0].startswith("RTT 20ms, loss 0%: ")


TWO_FLOWS = """
duration = "1s"
repeat = 2
path = { rate = "10Mbit/s", rtt = "20ms", loss = "0.5%" }
[[flow]]
name = "up"
algorithm = ["cubic", "bbr1"]
[[flow]]
name = "down"
algorithm = ["cubic", "bbr1"]
rtt = "60ms"
"""


def test_what_is_said_of_one_flow_is_not_pooled_with_another():
    heads, details = summary.answer(ReportRun.open(tcpknee.run(TWO_FLOWS)))
    assert details == [], "there is one condition"
    own = [
        f"{one}, with {other} ({name}): "
        for one, other in (("Up", "down"), ("Down", "up"))
        for name in ("cubic", "bbr1")
    ]
    pair = [f"With up ({up}) + down ({down}): " for up in ("cubic", "bbr1") for down in ("cubic", "bbr1")]
    beside = [f"With {name} ({algorithm}): " for name in ("up", "down") for algorithm in ("cubic", "bbr1")]
    assert sorted(head[: head.index(": ") + 2] for head in heads) == sorted(own + pair + beside)


def test_each_flow_has_the_base_rtt_of_its_own_way():
    text = """
    duration = "500ms"
    hop = [{ rate = "10Mbit/s", rtt = "20ms" }, { rate = "20Mbit/s", rtt = "10ms" }]
    flow = [{ algorithm = "cubic" }, { algorithm = "reno", hops = "2" }, { algorithm = "bbr1", rtt = "60500us" }]
    """
    run = ReportRun.open(tcpknee.run(text))
    assert [summary.base_rtt(run, entrant, group) for entrant, group in run.measured] == ["30.0", "10.0", "60.5"]
    assert "base RTT" not in json.dumps(export.spec(run, export.find("delay-goodput"))), "they have no line in common"


def test_a_row_has_the_flows_of_a_repetition():
    text = """
    duration = "1s"
    repeat = 3
    path = { rate = "10Mbit/s", rtt = "20ms" }
    [[flow]]
    algorithm = "reno"
    count = 2
    [[flow]]
    algorithm = "cubic"
    name = "web"
    workload = "web"
    arrivals = "30/s"
    sizes = "lognormal median 20kB sigma 1 from 1kB to 1MB"
    """
    run = ReportRun.open(tcpknee.run(text))
    opened = [sum((row["cell"], row["rep"], row["name"]) == (0, rep, "web") for row in run.flows) for rep in range(3)]
    _, rows = summary.table(run)
    assert [row.flows for row in rows[:2]] == ["2", f"{min(opened)} to {max(opened)}"] and min(opened) < max(opened)


@pytest.mark.parametrize(("count", "word"), [(5, "1 further pair<"), (6, "2 further pairs<")])
def test_the_pairs_below_the_answer_are_counted(count, word, case, monkeypatch):
    monkeypatch.setattr(summary, "answer", lambda run: (["Goodput"] * count, []))
    assert word in page.render(ReportRun.open(case("one")))


def test_conditions_without_a_value_are_counted_as_not_known():
    text = """
    duration = "1s"
    repeat = 2
    path = { rate = ["1Mbit/s", "20Mbit/s"], rtt = "20ms" }
    flow = [{ algorithm = ["cubic", "bbr1"], workload = "transfer", bytes = "500kB" }]
    """
    [head], details = summary.answer(ReportRun.open(tcpknee.run(text)))
    assert re.search(r" in 1 of 2 conditions.*; not known in 1 of 2 conditions$", head)
    assert [detail.split(":")[0] for detail in details] == ["Rate 20Mbit/s"]


def test_an_interrupted_run_says_so(tmp_path):
    folder = synthetic.write_run(tmp_path / "run", reps=2, seconds=2.0)
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(meta | {"status": "interrupted"}))
    assert "This run is interrupted" in page.render(ReportRun.open(folder))


def test_a_run_without_flows_still_has_a_page(tmp_path):
    folder = synthetic.write_run(tmp_path / "run", flows=0, sampled=False, reps=1)
    words = " ".join(read(page.render(ReportRun.open(folder))).words)
    assert "nothing to say yet" in words


def test_each_data_set_stands_once(pages):
    html = pages("many")
    data = data_of(read(html))
    for entry in data["specs"]:
        assert not [name for name, spec in entry["specs"].items() if "datasets" in spec]
    assert len(data["conditions"]) == 1


def test_the_same_run_gives_the_same_page(case, pages):
    assert page.render(ReportRun.open(case("two"))) == pages("two")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunFolderError):
        pages.write(tmp_path, tmp_path / "page.html")


def test_a_place_that_cannot_be_written_is_named(case, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot be written"):
        pages.write(case("one"), tmp_path / "file" / "page.html")


def test_importing_the_package_is_cheap():
    heavy = ("altair", "numpy", "pyarrow", "scipy", "vl_convert")
    code = f"import sys, tcpknee.pages as r; r.write; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_run_with_nothing_to_compare_says_what_it_measured(case, tmp_path):
    heads, details = summary.answer(ReportRun.open(case("one")))
    assert len(heads) == 1 and re.fullmatch(r"Goodput: cubic [\d.]+ Mbit/s", heads[0]) and details == []
    folder = synthetic.write_run(tmp_path / "run", algorithms=("cubic",), axes={"path.rtt": ("1ms", "2ms")}, reps=2)
    heads, _ = summary.answer(ReportRun.open(folder))
    assert re.fullmatch(r"Goodput: [\d.]+ to [\d.]+ Mbit/s", heads[0])


def test_the_widest_difference_is_said_first(case):
    heads, _ = summary.answer(ReportRun.open(case("request")))
    ratios = [float(re.search(r"([\d.]+)×", head)[1]) for head in heads]
    assert ratios == sorted(ratios, reverse=True) and len(ratios) == 3


def test_a_thousand_flows_fit_and_the_page_says_which_it_left_out(tmp_path):
    folder = synthetic.write_run(
        tmp_path / "run", algorithms=("cubic",), flows=1000, reps=1, seconds=5.0, interval_ms=100.0
    )
    html = pages.write(folder, tmp_path / "page.html").read_text()
    assert len(html.encode()) <= page.BYTES_AT_MOST
    assert "200 of 1000 single flows can be called up" in html


def test_a_run_in_memory_is_reported_as_one_in_a_folder(case, pages):
    stored = tcpknee.open(case("two"))
    parts = {
        (cell, rep): {name: ReportRun.open(stored).table(name, cell=cell, rep=rep) for name in synthetic.TABLES}
        for cell in range(2)
        for rep in range(5)
    }
    held = Run(stored.meta, None, parts)
    assert page.render(ReportRun.open(held)) == pages("two")
