"""The reference pages say what the registries say, and the pages for a newcomer what the commands print."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from sources import ROOT
from tcpknee.validation.claims import judging
from tcpknee.validation.claims.catalogue import CLAIMS


def test_the_reference_pages_are_not_stale() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_no_verdict_on_the_page_of_claims_is_of_another_version_of_the_gallery() -> None:
    """`make claims` writes it anew: what was changed since is run again."""
    stored = json.loads((ROOT / "docs" / "claims.json").read_text(encoding="utf-8"))
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


def test_the_example_of_a_comparison_is_what_the_tables_say() -> None:
    """Rows of the block in reference.md, by those that docs/generate.py writes into simulator.md."""
    block = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    tables = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    rows = re.findall(r"^((?:reno|cubic) .*\d\))$", block, re.MULTILINE)
    assert len(rows) == 2
    for row in rows:
        assert f"| {' | '.join(re.split(' {2,}', row))} |" in tables, row


def test_pages_quote_no_figures_of_the_demo_but_those_that_are_generated() -> None:
    """A ratio with its interval in prose is one that nobody writes anew when it changes."""
    ratio = re.compile(r"[\d.]+× \w+ \[[\d., ]+\]")
    pages = {
        page.name: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    }
    assert ratio.search(pages["README.md"]), "the demo's figures look otherwise now"
    generated = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
    assert [name for name, text in pages.items() if ratio.search(generated.sub("", text))] == []
