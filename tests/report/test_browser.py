"""The page in a real browser: it draws, stays within the window, answers its controls and complains of nothing."""

from __future__ import annotations

import html
import json
import re

import pytest

import browser
import synthetic
import traces
from kneepoint.observe import figure, trace

pytestmark = browser.needed

#: Runs after `page.js` and writes into the document what a person would see.
PROBE = """
(async () => {
  const until = async (ready) => { while (!ready()) await new Promise((go) => setTimeout(go, 50)); };
  await until(() => document.body.dataset.drawn);
  const seen = document.body.dataset;
  for (const select of document.querySelectorAll("#controls select")) {
    select.selectedIndex = select.length - 1;
    const box = document.querySelector('[data-figure="timeseries"]');
    const before = box.dataset.times;
    select.dispatchEvent(new Event("change"));
    await until(() => box.dataset.times !== before);
  }
  seen.charts = document.querySelectorAll(".chart .marks").length;
  seen.failed = document.querySelectorAll(".failed").length;
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.widest = Math.max(0, ...[...document.querySelectorAll(".chart")].map((c) => c.scrollWidth - c.clientWidth));
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


#: Narrow windows matter most where tables and figures are widest.
VISITS = [*((name, 1280) for name in (*synthetic.CASES, "trace")), ("matrix", 800), ("request", 800), ("trace", 800)]
VISITED = sorted({name for name, _ in VISITS})


def page_of(name, pages, folder) -> str:
    """The page of a case of a run, or that of a trace."""
    if name != "trace":
        return pages(name)
    written = folder / "trace"
    return figure.page(trace.read(written if written.exists() else traces.write(written)))


@pytest.fixture(scope="module")
def seen(pages, tmp_path_factory) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What each visit's page says of itself once drawn, and the console's lines; one browser for all."""
    folder = tmp_path_factory.mktemp("pages")
    for name in VISITED:
        (folder / f"{name}.html").write_text(browser.probed(page_of(name, pages, folder), PROBE), encoding="utf-8")
    show = folder / "show.html"
    show.write_text(SHOW.replace("VISITS", json.dumps(VISITS)), encoding="utf-8")
    document, console, said = browser.opened(show, seconds=60 * len(VISITS))
    body = re.search(r"<body>(\{.*\})</body>", document, re.DOTALL)
    assert body, f"no page answered: {console} {said[-2000:]} {document[-500:]}"
    return json.loads(html.unescape(body[1])), console


@pytest.mark.parametrize(("name", "width"), VISITS)
def test_draws_within_the_window_and_complains_of_nothing(name, width, pages, seen, tmp_path):
    said, console = seen[0][f"{name}-{width}"], seen[1]
    assert [line for line in console if f"{name}.html" in line] == []
    assert said["probed"] == "yes" and said["failed"] == "0"
    assert int(said["charts"]) == page_of(name, pages, tmp_path).count('class="chart"') > 0
    assert int(said["overflow"]) <= 0 and int(said["widest"]) <= 0


def test_no_other_page_complains(seen):
    assert seen[1] == []
