"""The site as `make site` makes it: every link leads somewhere, nothing comes from elsewhere, and no page is heavy."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

TAG = re.compile(r"<(a|link|script|img|iframe|source|use)\b([^>]*)>")
TARGET = re.compile(r"""\s(?:href|src|xlink:href)=(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
NAMED = re.compile(r"""\s(?:id|name)=(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")


def targets(text: str) -> list[tuple[str, str]]:
    """Each tag that leads somewhere, and whereto."""
    return [
        (tag, html.unescape(next(filter(None, target.groups()), "")))
        for tag, attributes in TAG.findall(text)
        if (target := TARGET.search(attributes))
    ]


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[Path, str]:
    return {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}


def test_every_link_leads_to_a_file_and_a_heading_that_are_there(site: Path, texts: dict[Path, str]) -> None:
    names = {page: {"".join(found) for found in NAMED.findall(text)} for page, text in texts.items()}
    wrong = set()
    for page, text in texts.items():
        for _, target in targets(text):
            path, anchor = urldefrag(target)
            if re.match(r"[a-z]+:", path):
                continue
            to = (page.parent / unquote(path)).resolve() if path else page
            is_there = to.is_file() and (
                not anchor or to.suffix != ".html" or is_play(site, to) or unquote(anchor) in names[to]
            )
            if not is_there:
                wrong.add((str(page.relative_to(site)), target))
    assert len(names) > 300 and sorted(wrong) == []


def is_play(site: Path, page: Path) -> bool:
    """The playground's anchors are scenarios."""
    return page.parent == site / "play"


def test_the_playground_leads_back(site: Path) -> None:
    page = (site / "play" / "index.html").read_text(encoding="utf-8")
    assert '<a href="../index.html">tcpknee</a>' in page and "<!-- home" not in page


def test_nothing_comes_from_elsewhere(texts: dict[Path, str]) -> None:
    loaded = {
        target
        for text in texts.values()
        for tag, target in targets(text)
        if tag != "a" and re.match(r"(\w+:)?//", target)
    }
    assert loaded == set()


def test_no_page_is_heavy(site: Path, texts: dict[Path, str]) -> None:
    """In bytes, and with all that the first page loads. The playground has an engine in it."""
    assert max(page.stat().st_size for page in texts if not is_play(site, page)) < 1_000_000
    assert (site / "play" / "index.html").stat().st_size < 1_500_000
    first = site / "index.html"
    loaded = {
        (first.parent / target).resolve() for tag, target in targets(texts[first]) if tag in ("script", "img", "link")
    }
    files = [one for one in loaded if one.is_file()]
    assert len(files) > 5 and first.stat().st_size + sum(one.stat().st_size for one in files) < 1_500_000


def test_a_search_finds_every_page_but_those_that_only_show_a_file(site: Path) -> None:
    found = (site / "search.js").read_text(encoding="utf-8")
    assert "reference/algorithms/bbr3.html" in found and "gallery/loss-1.5.html" in found
    assert "source/cc/bbr3-c.html" not in found and (site / "source" / "cc" / "bbr3-c.html").exists()
