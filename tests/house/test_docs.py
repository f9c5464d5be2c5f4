"""What is generated says what the registries say, every link leads somewhere, no reference page is kept in the
repository, and the pages for a newcomer say what the commands print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sources import ROOT
from tcpknee.imports import IMPORTERS
from tcpknee.validation.claims import judging, verdicts
from tcpknee.validation.claims.catalogue import CLAIMS

PART = re.compile(r"<!-- generated: (\w+) -->.*?<!-- end -->", re.DOTALL)

KEPT = {
    "README.md": ["demo"],
    "docs/algorithms.md": ["algorithms"],
    "docs/claims.md": ["claims"],
    "docs/guide.md": ["asked"],
    "docs/gym.md": ["fields", "controls", "rewards", "truth"],
    "docs/queues.md": ["queues"],
    "docs/redteam.md": ["objectives"],
}
"""All that is generated and yet in the repository: a page that a person reads, of a line per item."""


@pytest.fixture(scope="module")
def built(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """All pages, as `make docs` builds them. Every link of theirs leads to a file and a heading that are there."""

    def build(out: Path) -> None:
        words = [sys.executable, ROOT / "docs" / "build.py", out]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    return once("docs", build)


def pages() -> dict[str, str]:
    """The text of every page of the repository that is for people, by its path."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    # An importer's page stands in its source.
    found = [name for name in listed if not name.startswith("crates/") and (ROOT / name).exists()]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in found}


def rows(text: str) -> set[str]:
    """Rows of tables that are long enough to be nobody else's."""
    return {line for line in text.splitlines() if line.startswith("| ") and len(line) > 60}


def test_the_index_has_every_page_and_readme_few_links_and_one_small_picture() -> None:
    index = set(re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    own = {name.removeprefix("docs/") for name in pages() if name.startswith("docs/")}
    assert index == {name for name in own if "/" not in name} - {"README.md"} | {"validation/README.md"}
    entries = (ROOT / "docs" / "validation" / "README.md").read_text(encoding="utf-8")
    assert [name for name in own if name.startswith("validation/") and f"({Path(name).name})" not in entries] == [
        "validation/README.md"
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\d\. .*\]\(", readme, re.MULTILINE)) == 5
    [picture] = re.findall(r"!\[.+?\]\((.+?)\)", readme)
    assert (ROOT / picture).stat().st_size <= 100_000


def test_what_stands_in_an_item_of_a_list_is_indented_by_four() -> None:
    """With less the site takes it for the end of the list, and counts from one again."""
    bare = {name: re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL) for name, text in pages().items()}
    loose = {name: re.findall(r"^ {1,3}(?:```|[-*] |\d+\. ).*", text, re.MULTILINE) for name, text in bare.items()}
    assert {name: found for name, found in loose.items() if found} == {}


def test_what_is_generated_and_kept_is_not_stale() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_every_page_is_built_and_every_reference_page_is_in_the_index(built: Path) -> None:
    names = [page for page in pages() if page.startswith("docs/") and page != "docs/README.md"]
    wanted = [built / name.removeprefix("docs/").replace("README", "index") for name in names]
    assert len(names) > 20 and [page for page in wanted if not page.exists()] == []
    for folder, least in (("reference", 200), ("gallery", 50)):
        below = built / folder
        made = {str(page.relative_to(below)) for page in below.rglob("*.md")} - {"index.md"}
        listed = re.findall(
            r"^(?:- |\| )\[.+?\]\((.+?)\)", (below / "index.md").read_text(encoding="utf-8"), re.MULTILINE
        )
        assert len(listed) == len(made) > least and set(listed) == made


def test_each_recipe_is_a_page_with_the_whole_of_its_example(built: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### (.+)$", text, re.MULTILINE)
    examples = re.findall(r"^A short one: \[(.+?)\]", text, re.MULTILINE)
    made = {page.name: page.read_text(encoding="utf-8") for page in (built / "contribute").iterdir()}
    assert len(made) == len(titles) > 10 and len(examples) > 7
    for example in examples:
        assert any((ROOT / example).read_text(encoding="utf-8").strip() in page for page in made.values()), example
    assert "The tests demand of a queue: bytes in = out + dropped" in made["a-queue-a-loss.md"]
    assert "### " not in (built / "contributing.md").read_text(encoding="utf-8")


def test_the_order_of_the_site_has_every_page_once(built: Path) -> None:
    """But the pages that only show a file. The playground is made elsewhere."""
    listed = re.findall(r"\]\((.+?)\)", (built / "SUMMARY.md").read_text(encoding="utf-8"))
    assert len(listed) == len(set(listed))
    made = {str(page.relative_to(built)) for page in built.rglob("*.md")}
    assert sorted(set(listed) - {"play/index.html"}) == sorted(
        name for name in made - {"SUMMARY.md"} if not name.startswith("source/")
    )


def test_no_reference_page_is_kept_in_the_repository(built: Path) -> None:
    """What `make docs` makes of the registries stands in build/, which git ignores."""
    made = {row for page in (built / "reference").rglob("*.md") for row in rows(page.read_text(encoding="utf-8"))}
    assert len(made) > 1000
    texts = pages()
    assert {name: PART.findall(text) for name, text in texts.items() if PART.search(text)} == KEPT
    assert {name: found for name, text in texts.items() if (found := rows(PART.sub("", text)) & made)} == {}


def test_the_page_of_imports_has_every_importer() -> None:
    page = (ROOT / "docs" / "imports.md").read_text(encoding="utf-8")
    assert [name for name in IMPORTERS if f"| `{name}` |" not in page] == []


def test_no_verdict_on_the_page_of_claims_is_of_another_version_of_the_gallery() -> None:
    """`make claims` writes it anew: what was changed since is run again."""
    stored = json.loads(verdicts.FILE.read_text(encoding="utf-8"))
    claims = {claim.id: claim for claim in CLAIMS}
    assert set(stored) <= set(claims)
    results = [(name, one) for name, entry in stored.items() for one in entry["results"]]
    old = [name for name, one in results if one["sha256"] != judging.sha256(claims[name], one["engine"])]
    assert results and not old


def test_the_glossary_says_where_each_word_lives() -> None:
    rows = re.findall(
        r"^\| (.+?) \| .+ \| `(.+)` \|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M
    )
    words = [word for word, _ in rows]
    assert len(words) > 30 and len(set(words)) == len(words)
    assert not [place for _, place in rows if not (ROOT / place).exists()]


def test_a_newcomer_is_told_how_to_have_the_command_in_the_path() -> None:
    for page in ("README.md", "docs/guide.md"):
        assert 'export PATH="$PWD/.venv/bin:$PATH"' in (ROOT / page).read_text(encoding="utf-8"), page
    words = ["make", "--no-print-directory", "--dry-run", "demo"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f'export PATH="{ROOT}/.venv/bin:$PATH"' in done.stdout.splitlines()[-1]


def test_what_readme_shows_after_the_first_command_is_installed_by_it() -> None:
    """`knee shell` needs nft, which a minimal Debian lacks."""
    words = ["make", "--no-print-directory", "--dry-run", "--always-make", ".venv/.core"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    [asked] = [line for line in done.stdout.splitlines() if line.startswith("tools/need.sh") and "libelf" in line]
    assert "nft" in asked.partition("--optional")[2].split()
    assert "knee shell --rate" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_of_a_comparison_is_what_the_tables_say(built: Path) -> None:
    """Rows of the block in results.md, by those of the built page."""
    block = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    tables = (built / "reference" / "against-linux" / "algorithms.md").read_text(encoding="utf-8")
    found = re.findall(r"^((?:reno|cubic) .*\d\))$", block, re.MULTILINE)
    assert len(found) == 2
    for row in found:
        assert f"| {' | '.join(re.split(' {2,}', row))} |" in tables, row


def test_pages_quote_no_figures_of_the_demo_but_those_that_are_generated() -> None:
    """A ratio with its interval in prose is one that nobody writes anew when it changes."""
    ratio = re.compile(r"[\d.]+× \w+ \[[\d., ]+\]")
    texts = pages()
    assert ratio.search(texts["README.md"]), "the demo's figures look otherwise now"
    assert [name for name, text in texts.items() if ratio.search(PART.sub("", text))] == []
