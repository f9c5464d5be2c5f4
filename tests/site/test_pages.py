"""Pages of the site in a real browser, from disk: nothing goes wrong, nothing is asked of the network, everybody can
read them, at a desk, on a telephone and on paper, and a keyboard is enough."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

import devtools

pytestmark = pytest.mark.skipif(
    devtools.PROGRAM is None, reason="no Chromium on this machine: install the package chromium"
)

PAGES = (
    "index.html", "start.html", "guide.html", "contents.html", "gallery/index.html", "gallery/loss-1.5.html",
    "gallery/fleet-inflight.html", "reference/algorithms/bbr1.html", "reference/keys/sender.html",
    "reference/rules/bbr-without-fq.html", "source/cc/reno-c.html", "validation/against-linux.html",
)  # fmt: skip
DESK, TELEPHONE = 1440, 390
VISITS = [(page, width, scheme) for page in PAGES for width, scheme in ((DESK, "light"), (TELEPHONE, "dark"))]

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
AXE = f"""
axe.run(document, {{runOnly: {json.dumps(RULES)}}}).then((found) => found.violations.map((one) =>
  [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + " " + (node.any[0]?.message ?? ""))]))
"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUS = """
(() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const style = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  const seen = style.outlineStyle !== "none" || style.boxShadow !== "none" || at.matches("input");
  return [at.tagName, (at.textContent || at.getAttribute("aria-label") || "").trim().slice(0, 40), seen, at.href ?? ""];
})()
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[devtools.Tab]:
    with devtools.browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    return (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "width", "scheme"), VISITS)
def test_a_page_is_in_order_and_readable_by_everybody(
    page, width, scheme, site: Path, tab: devtools.Tab, axe: str
) -> None:
    """No error on the console, nothing from elsewhere, within the window, WCAG 2.1 AA as far as a program sees."""
    tab.said.clear()
    tab.asked.clear()
    tab.open(site / page, width=width, scheme=scheme)
    wider = tab.run(WIDER)
    tab.run(axe + "; 0")
    violations = tab.run(AXE)
    assert violations == []
    assert tab.said == [] and wider <= 0
    assert tab.asked and [url for url in tab.asked if not url.startswith(("file://", "data:", "blob:"))] == []


def test_a_keyboard_is_enough(site: Path, tab: devtools.Tab) -> None:
    """From the address line: past the header into the page, each stop visible; the first stop skips to the content, and
    Enter follows a link."""
    tab.open(site / "index.html")
    stops = []
    for _ in range(60):
        tab.press("Tab", 9)
        if (stop := tab.run(FOCUS)) is not None:
            stops.append(stop)
    names = [name for _, name, *_ in stops]
    assert names[0] == "Skip to content"
    assert {"Guides", "Gallery", "Try it", "Open the playground", "Show it as it happened"} <= set(names)
    assert [stop for stop in stops if not stop[2]] == []
    tab.open(site / "index.html")
    for _ in range(60):
        tab.press("Tab", 9)
        if (stop := tab.run(FOCUS)) is not None and stop[1] == "Try it":
            break
    tab.follow()
    assert tab.run("location.pathname").endswith("/start.html")


def test_the_race_runs_when_asked_and_not_before(site: Path, tab: devtools.Tab) -> None:
    tab.open(site / "index.html")
    running = "document.getAnimations().filter((one) => one.animationName === 'uncover').length"
    assert tab.run(running) == 0
    tab.run("document.querySelector('.race .play').click()")
    assert tab.run(running) == 1
    tab.run("document.querySelector('.race .play').click()")
    assert tab.run(running) == 0


def test_a_search_from_disk_finds_an_algorithm(site: Path, tab: devtools.Tab) -> None:
    tab.open(site / "guide.html")
    tab.run("document.querySelector('[data-md-toggle=search]').click()")
    tab.run("new Promise((go) => setTimeout(go, 1500))")
    tab.write("dualpi2")
    found = tab.run(
        """(async () => {
          for (let turn = 0; turn < 100; turn++) {
            const links = [...document.querySelectorAll("a[href*='queues/dualpi2']")];
            const roots = [...document.querySelectorAll("*")].filter((one) => one.shadowRoot);
            for (const root of roots) links.push(...root.shadowRoot.querySelectorAll("a[href*='queues/dualpi2']"));
            if (links.length) return links.length;
            await new Promise((go) => setTimeout(go, 100));
          }
          return 0;
        })()"""
    )
    assert found > 0


def test_a_page_can_be_printed(site: Path, tab: devtools.Tab) -> None:
    """Without what only a screen has."""
    tab.open(site / "gallery" / "index.html")
    paper = base64.b64decode(tab.send("Page.printToPDF")["data"])
    assert paper.startswith(b"%PDF") and len(paper) > 20_000
    tab.send("Emulation.setEmulatedMedia", media="print")
    hidden = (
        "['.md-header', '.md-tabs', '.md-footer'].map((one) => getComputedStyle(document.querySelector(one)).display)"
    )
    assert set(tab.run(hidden)) == {"none"}
    tab.send("Emulation.setEmulatedMedia", media="")


def test_pages_lead_to_the_versions_beside_their_own(site: Path, tab: devtools.Tab) -> None:
    tab.open(site / "guide.html")
    assert tab.run("document.querySelector('.md-header__source').textContent") == site.name
    # The site is that of all tests: nothing is written there.
    said = (site.parent / "versions.js").read_text(encoding="utf-8")
    assert said == f'window.tcpkneeVersions = ["{site.name}"];\n'
    two = f'Object.defineProperty(window, "tcpkneeVersions", {{value: ["9.9.9", "{site.name}"]}});'
    script = tab.send("Page.addScriptToEvaluateOnNewDocument", source=two)["identifier"]
    tab.open(site / "guide.html")
    chosen = tab.run(
        "[...document.querySelectorAll('.md-header__source option')].map((one) => [one.value, one.selected])"
    )
    tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    assert chosen == [["9.9.9", False], [site.name, True]]
