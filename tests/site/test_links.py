"""The site as `make site` makes it: every link leads somewhere, nothing comes from elsewhere, and no page is heavy."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import build
import built_of
import pytest

ROOT = Path(__file__).resolve().parents[2]

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


@pytest.mark.slow("every link of 450 pages is looked up")
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


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """docs/site.py, whose name is one of Python's own."""
    spec = importlib.util.spec_from_file_location("maker_of_sites", ROOT / "docs" / "site.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_playground_of_other_sources_is_not_taken(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "index.html"
    assert maker.taken(page) is None and "is not there" in capsys.readouterr().err
    page.write_text(built_of.mark(), encoding="utf-8")
    assert maker.taken(page) == built_of.mark()
    assert all(list(ROOT.glob(pattern)) for pattern in built_of.PATTERNS)
    # Another byte in one of its sources, and another source.
    tree = tmp_path / "tree"
    (tree / "cc").mkdir(parents=True)
    digests = set()
    for name, text in (("cc/bbr1.c", "1"), ("cc/bbr1.c", "2"), ("cc/bbr2.c", "2")):
        (tree / name).write_text(text, encoding="utf-8")
        monkeypatch.setattr(built_of, "ROOT", tree)
        digests.add(built_of.digest())
    assert len(digests) == 3
    assert maker.taken(page) is None and "is of other sources; `make play` builds it" in capsys.readouterr().err


@pytest.mark.slow("the site is built a second time")
def test_without_a_playground_nothing_leads_to_it(tmp_path: Path, site: Path) -> None:
    assert build.build(tmp_path / "docs", playground=False) == []
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "docs").rglob("*.md")]
    assert len(pages) > 300 and not [page for page in pages if "play/index.html" in page or "playground -->" in page]
    # And with one, the first page, the navigation and claims do.
    with_one = [page for page in site.rglob("*.html") if 'play/index.html"' in page.read_text(encoding="utf-8")]
    assert len(with_one) > 300
    assert "play/index.html#" in (site / "gallery" / "bufferbloat.html").read_text(encoding="utf-8")


def test_a_site_takes_the_place_of_no_other_folder(maker: ModuleType, tmp_path: Path) -> None:
    kept = tmp_path / "1.0.0" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("three years", encoding="utf-8")
    with pytest.raises(SystemExit, match="got a folder of something else"):
        maker.make(tmp_path, "1.0.0", None)
    assert kept.exists()


def test_nothing_comes_from_elsewhere(texts: dict[Path, str]) -> None:
    loaded = {
        target
        for text in texts.values()
        for tag, target in targets(text)
        if tag != "a" and re.match(r"(\w+:)?//", target)
    }
    assert loaded == set()


def test_what_is_of_others_goes_with_its_licence(site: Path) -> None:
    text = (site / "look" / "iframe-worker.js").read_text(encoding="utf-8")
    assert (
        "Copyright (c) 2020 Martin Donath" in text and "The above copyright notice and this permission notice" in text
    )


def test_commands_stand_in_the_navigation_as_they_are_typed(site: Path) -> None:
    page = (site / "doctor.html").read_text(encoding="utf-8")
    names = re.findall(r'<span class="md-ellipsis">\s*([^<]+?)\s*<', page)
    assert {"knee doctor", "knee trace"} <= set(names) and not [name for name in names if name.startswith("Knee ")]


def test_a_claim_is_named_by_what_it_says_and_its_values_are_in_words(site: Path) -> None:
    page = (site / "gallery" / "bufferbloat.html").read_text(encoding="utf-8")
    assert '<h1 id="loss-based-control-fills-a-deep-fifo-bbr-does-not">' in page
    published = [
        line
        for page in (site / "gallery").glob("*.html")
        for line in re.findall("<li>Published: (.*)</li>", page.read_text(encoding="utf-8"))
    ]
    assert len(published) > 20 and not [line for line in published if "[" in line or "&quot;" in line]


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
