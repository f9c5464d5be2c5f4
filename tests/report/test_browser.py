"""The page in a real browser: it draws, stays within the window, answers its controls and complains of nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import synthetic
from kneepoint import report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: install the package chromium")

#: Runs after `page.js` and writes into the document what a person would see.
PROBE = """
<script>
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
})();
</script>
"""


def visit(html: Path, width: int, profile: Path) -> tuple[dict[str, str], list[str]]:
    """The body's data attributes once drawn, and the console's lines."""
    assert BROWSER
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", f"--window-size={width},1200",
        "--virtual-time-budget=60000", "--enable-logging=stderr", "--dump-dom", html.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    body = re.search(r"<body([^>]*)>", done.stdout)
    assert body, done.stderr[-2000:]
    seen = dict(re.findall(r'data-(\w+)="([^"]*)"', body[1]))
    return seen, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


#: Narrow windows matter most where tables and figures are widest.
VISITS = [*((name, 1280) for name in synthetic.CASES), ("matrix", 800), ("request", 800)]


@pytest.mark.parametrize(("name", "width"), VISITS)
def test_draws_within_the_window_and_complains_of_nothing(name, width, case, tmp_path):
    html = report.write(case(name), tmp_path / "page.html")
    text = html.read_text(encoding="utf-8")
    head, _, tail = text.rpartition("</body>")
    html.write_text(f"{head}{PROBE}</body>{tail}", encoding="utf-8")
    seen, console = visit(html, width, tmp_path / "profile")
    assert console == []
    assert seen.get("probed") == "yes" and seen["failed"] == "0"
    assert int(seen["charts"]) == text.count('class="chart"') > 0
    assert int(seen["overflow"]) <= 0 and int(seen["widest"]) <= 0
