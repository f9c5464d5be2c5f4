"""The gallery: a page for each published claim, made of the stored verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from layout import sentence
from reference import ROOT, Page

from tcpknee.validation.claims import checks, verdicts
from tcpknee.validation.claims.catalogue import ARTICLES, CLAIMS
from tcpknee.validation.claims.claim import ENGINES, Claim


def pages() -> dict[str, Page]:
    """The page of each claim by its id."""
    results = verdicts.results()
    return {claim.id: Page(claim.id, _claim(claim, results[claim.id])) for claim in CLAIMS}


ARTICLE = {claim.id: claim.article for claim in CLAIMS}
GROUPED: dict[str, Callable[[str], bool]] = {
    sentence(title.partition(":")[0]): lambda name, letter=letter: ARTICLE[name] == letter
    for letter, title in ARTICLES.items()
}
"""Headings of the index, and the pages below each."""


def index() -> str:
    """All claims, by article."""
    parts = ["# Gallery\n"]
    for letter, title in ARTICLES.items():
        listed = [
            f"- [{claim.id}](gallery/{claim.id}.md): {claim.claim}\n" for claim in CLAIMS if claim.article == letter
        ]
        parts.append(f"## {sentence(title)}\n\n{''.join(listed)}")
    return "\n".join(parts)


def sources_of(claim: Claim) -> list[tuple[str, str]]:
    """The files of a claim, each with what it is."""
    files = []
    if claim.has_scenario:
        files.append(("scenario", f"gallery/{claim.id}.toml"))
    if claim.on_kernel:
        files.append(("on a kernel", f"gallery/kernel/{claim.id}.toml"))
    if claim.check is not None:
        files.append(("check", str(Path(checks.file_of(claim.check)).resolve().relative_to(ROOT))))
    return files


def _claim(claim: Claim, results: Iterable[Mapping[str, Any]]) -> str:
    lines = [f"{sentence(claim.claim)}.", ""]
    lines += [f"- {what}: [{file}](../{file})" for what, file in sources_of(claim)]
    lines.append(f"- runs on: {' and '.join(ENGINES[name] for name in claim.engines)}")
    lines.append(f"- must hold: {claim.shape}")
    lines.append(f"- the article: {claim.figure or 'no figure'}")
    for one in results:
        lines += ["", f"{sentence(verdicts.form(one))}: **{one['verdict']}**", ""]
        lines += [f"- ours: {label} {text}" for label, text in one["ours"]]
        lines += [f"- {said['verdict']}: {said['assert']} ({said['detail']})" for said in one["found"]]
        lines += [f"- published {printed}" for printed in one["published"]]
    for engine, limits in claim.limits.items():
        lines += ["", f"{sentence(ENGINES[engine])}: {limits}"]
    return "\n".join(lines) + "\n"
