"""The page in a real browser: it draws, stays within the window, answers its controls and complains of nothing."""

from __future__ import annotations

import html
import json
import re

import pytest

import browser
import fleet_data
import synthetic
import traces
from tcpknee.live import trace
from tcpknee.pages import fleet_page, trace_page
from tcpknee.pages.run import ReportRun

pytestmark = browser.needed

#: Runs after `page.js` and writes into the document what a person would see.
PROBE = """
(async () => {
  const until = async (ready) => { while (!ready()) await new Promise((go) => setTimeout(go, 50)); };
  await until(() => document.body.dataset.drawn);
  const seen = document.body.dataset;
  for (const select of document.querySelectorAll("#controls select")) {
    select.selectedIndex = select.length - 1;
    const box = select.closest("section").querySelector(".chart");
    const before = box.dataset.times;
    select.dispatchEvent(new Event("change"));
    await until(() => box.dataset.times !== before);
  }
  seen.charts = document.querySelectorAll(".chart .marks").length;
  seen.failed = document.querySelectorAll(".failed").length;
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.widest = Math.max(0, ...[...document.querySelectorAll(".chart")].map((c) => c.scrollWidth - c.clientWidth));
  // Of each chart: how much of its width the widest panel has, and its smallest letters.
  const boxes = [...document.querySelectorAll(".chart")].filter((box) => box.querySelector("svg.marks"));
  const widest = (box) => Math.max(...[...box.querySelectorAll(".marks path.background")].map(
    (path) => path.getBoundingClientRect().width));
  seen.panel = Math.min(1, ...boxes.map((box) => widest(box) / box.clientWidth));
  const words = boxes.flatMap((box) => [...box.querySelectorAll("svg.marks text")]).filter((one) => one.textContent);
  seen.letters = Math.min(99, ...words.map((one) => parseFloat(getComputedStyle(one).fontSize)));
  const room = document.documentElement.clientWidth;
  seen.outside = words.filter((one) => one.getBoundingClientRect().right > room + 1).length;
  // Words beside the points of the delays, and how many touch others.
  const places = [...document.querySelectorAll('[data-figure="delay-goodput"] .role-mark text')].filter(
    (one) => one.textContent !== "base RTT").map((one) => [one.textContent, one.getBoundingClientRect()]);
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  seen.names = JSON.stringify(places.map(([text]) => text));
  seen.touching = places.filter(([, a], k) => places.some(([, b], j) => j < k && touch(a, b))).length;
  seen.probed = "yes";
  parent.postMessage({ ...seen }, "*");
})();
"""

#: Shows one page after the other, in a frame as wide as the window would be, and keeps what each of them says.
SHOW = """<!doctype html><meta charset="utf-8"><body><script>
(async () => {
  const said = {};
  for (const [name, width] of VISITS) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `border:0;height:1200px;width:${width}px`;
    const answer = new Promise((heard) => window.addEventListener("message", heard, { once: true }));
    frame.src = `${name}.html#${width}`;
    document.body.replaceChildren(frame);
    said[`${name}-${width}`] = (await answer).data;
  }
  document.body.textContent = JSON.stringify(said);
})();
</script>
"""


#: Traces by their number of connections.
TRACES = {"trace-2": 2, "trace-50": 50}
TELEPHONE = 400
#: Narrow windows matter most where tables and figures are widest.
VISITS = [
    *((name, 1280) for name in (*synthetic.CASES, "trace-50", "fleet")),
    *((name, 800) for name in ("matrix", "request", "trace-2")),
    *((name, TELEPHONE) for name in ("many", "matrix", "transfer", "request", "shared", "fleet", *TRACES)),
    ("two", 320),
]


@pytest.fixture(scope="module")
def html_of(pages, tmp_path_factory) -> dict[str, str]:
    """Every page that is visited."""
    found = {name: pages(name) for name in synthetic.CASES}
    for name, connections in TRACES.items():
        folder = traces.write(tmp_path_factory.mktemp(name) / "trace", connections=connections, length_sec=10.0)
        found[name] = trace_page.page(trace.read(folder))
    with fleet_data.compared(fleet_data.write(tmp_path_factory.mktemp("fleet") / "edge", 4000)) as fleet:
        found["fleet"] = fleet_page.render(fleet)
    return found


@pytest.fixture(scope="module")
def seen(html_of, tmp_path_factory) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What each visit's page says of itself once drawn, and the console's lines; a browser for many."""
    folder = tmp_path_factory.mktemp("pages")
    for name, page in html_of.items():
        (folder / f"{name}.html").write_text(browser.probed(page, PROBE), encoding="utf-8")
    answers: dict[str, dict[str, str]] = {}
    lines: list[str] = []
    # Half of them each: the machine may be slow.
    for visits in (VISITS[::2], VISITS[1::2]):
        show = folder / "show.html"
        show.write_text(SHOW.replace("VISITS", json.dumps(visits)), encoding="utf-8")
        document, console, said = browser.opened(show, seconds=60 * len(visits))
        body = re.search(r"<body>(\{.*\})</body>", document, re.DOTALL)
        assert body, f"no page answered: {console} {said[-2000:]} {document[-500:]}"
        answers |= json.loads(html.unescape(body[1]))
        lines += console
    return answers, lines


@pytest.mark.slow("the first of them has a browser draw all pages at all widths")
@pytest.mark.parametrize(("name", "width"), VISITS)
def test_draws_within_the_window_and_complains_of_nothing(name, width, html_of, seen):
    said, console = seen[0][f"{name}-{width}"], seen[1]
    assert [line for line in console if f"{name}.html" in line] == []
    assert said["probed"] == "yes" and said["failed"] == "0"
    assert int(said["charts"]) == html_of[name].count('class="chart"') > 0
    assert int(said["overflow"]) <= 0 and int(said["widest"]) <= 0 and int(said["outside"]) == 0


@pytest.mark.parametrize(("name", "width"), VISITS)
def test_charts_are_legible(name, width, seen):
    """Letters of 11 pixels at least, and most of the width for what is drawn."""
    said = seen[0][f"{name}-{width}"]
    assert float(said["letters"]) >= 11
    assert float(said["panel"]) >= (0.55 if width < 800 else 0.2)


@pytest.mark.parametrize(("name", "width"), [visit for visit in VISITS if visit[0] in synthetic.CASES])
def test_points_are_named_and_no_names_touch(name, width, case, seen):
    said = seen[0][f"{name}-{width}"]
    names = json.loads(said["names"])
    run = ReportRun.open(case(name))
    assert {word.split(", ")[0] for word in names} >= {entrant.label for entrant in run.entrants}
    assert int(said["touching"]) == 0


def test_no_other_page_complains(seen):
    assert seen[1] == []
