"""The gallery: an index that tells what was found, and a page for each published claim, made of the stored verdicts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import drawings
from layout import code, sentence, table
from reference import ROOT, Page

from tcpknee.validation.claims import checks, judging, verdicts
from tcpknee.validation.claims.catalogue import ARTICLES, CLAIMS
from tcpknee.validation.claims.claim import ENGINES, Claim

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

Result = Mapping[str, Any]

BY_ID = {claim.id: claim for claim in CLAIMS}
GROUPED: dict[str, Callable[[str], bool]] = {
    sentence(title.partition(":")[0]): lambda name, letter=letter: BY_ID[name].article == letter
    for letter, title in ARTICLES.items()
}
"""Headings of the index, and the pages below each."""
NUMBER = re.compile(r"\{([\w.-]+): ([^{}]+)\}")
"""In the stories: ours of a claim, by its label."""
DRAWN = re.compile(r"^<!-- claim: (\S+) -->$", re.MULTILINE)
"""There: the drawing of a claim."""


TALLY = "<!-- tally -->"
"""There: how many claims came to which end."""


def pages() -> dict[str, Page]:
    """The page of each claim by its id."""
    results = verdicts.results()
    return {claim.id: Page(claim.id, _claim(claim, results[claim.id])) for claim in CLAIMS}


def index() -> str:
    """The stories, then all claims by article."""
    results = verdicts.results()
    told = (ROOT / "site" / "stories.md").read_text(encoding="utf-8")
    told = NUMBER.sub(lambda mark: _ours(results[mark[1]], mark[2]), told)
    told = DRAWN.sub(lambda mark: _drawing(mark[1], results[mark[1]]), told)
    parts = [told.replace(TALLY, _tally(results))]
    for letter, title in ARTICLES.items():
        rows = [
            [f"[{claim.id}](gallery/{claim.id}.md)", sentence(claim.claim), _badges(results[claim.id])]
            for claim in CLAIMS
            if claim.article == letter
        ]
        parts.append(f"### {sentence(title)}\n\n{table(['claim', 'what is said', 'verdict here'], rows)}")
    return "\n".join(parts)


def _tally(results: Mapping[str, Iterable[Result]]) -> str:
    found = [{one["verdict"] for one in ways} for ways in results.values()]
    every = sum(verdicts == {judging.REPRODUCED} for verdicts in found)
    none = sum(bool(verdicts) and judging.REPRODUCED not in verdicts for verdicts in found)
    return (
        f"Of {len(found)} claims, {every} are reproduced in every way in which they were run, {none} in none, and the "
        "others in some: their pages say why."
    )


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


def _ours(results: Iterable[Result], label: str) -> str:
    """What stands below a label, without its interval."""
    ours = dict(next(iter(results))["ours"])
    return re.sub(r" \[.*\]", "", ours[label])


def _badges(results: Iterable[Result]) -> str:
    """The verdicts, each with the forms that gave it."""
    return (
        " ".join(f"{_badge(verdict)} {forms}" for verdict, forms in verdicts.by_verdict(results).items())
        or "not run yet"
    )


def _badge(verdict: str) -> str:
    kind = "equivalent" if verdict.startswith("equivalent") else verdict.replace(" ", "-")
    return f'<span class="verdict {kind}">{verdict}</span>'


def _drawing(name: str, results: Iterable[Result]) -> str:
    """Ours of the first way in which it was run."""
    first = next(iter(results), None)
    return drawings.values(name, first["ours"]) if first else ""


def _claim(claim: Claim, results: list[Result]) -> str:
    of_source = claim.figure or "no figure"
    parts = [
        f"{sentence(claim.claim)}.\n{{ .lead }}",
        _badges(results),
        f"**What the source says** (article {claim.article}: {ARTICLES[claim.article]}): {of_source}.",
        f"**What must hold here**, written down before anything was run: {claim.shape}.",
        "## Ours",
        _drawing(claim.id, results),
        *(_result(claim, one) for one in results),
        *(f"**{sentence(ENGINES[engine])}.** {why}" for engine, why in claim.limits.items()),
        "## Run it again",
        _commands(claim),
        _playground(claim),
        "## How it is set up",
        _set_up(claim),
        *(f"- {what}: [{file}](../{file})" for what, file in sources_of(claim)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _result(claim: Claim, one: Result) -> str:
    """What one way of running it gave: values, what must hold, the source's figures beside ours."""
    parts = [f"### {sentence(verdicts.form(one))}", _badge(one["verdict"])]
    if why := judging.reason(claim, one["engine"], one["verdict"], one["needed"]):
        parts.append(why)
    if one["ours"]:
        parts.append(table(["ours", "with its 95 % interval"], [list(row) for row in one["ours"]]))
    if one["published"]:
        parts.append("\n".join(f"- Published: {printed}" for printed in one["published"]))
    held = [[_badge(said["verdict"]), code(said["assert"]), said["detail"]] for said in one["found"]]
    if held:
        inner = table(["", "must hold", "found"], held)
        parts.append(
            f"<details markdown><summary>{len(held)} checked on whole intervals</summary>\n\n{inner}\n</details>"
        )
    return "\n\n".join(parts)


def _commands(claim: Claim) -> str:
    lines = []
    if "sim" in claim.engines:
        lines.append(f"knee gallery --only {claim.id}")
    if "kernel" in claim.engines:
        lines.append(f"knee gallery --only {claim.id} --engine kernel    # on this host's own TCP, as root")
    return "```sh\n" + "\n".join(lines) + "\n```"


def _set_up(claim: Claim) -> str:
    """What the scenario or the check says of itself."""
    if claim.has_scenario:
        lines = (ROOT / "gallery" / f"{claim.id}.toml").read_text(encoding="utf-8").splitlines()
        head = lines[: next(k for k, line in enumerate(lines) if not line.startswith("#"))]
        return "\n".join(line.removeprefix("#").strip() for line in head)
    file = ROOT / dict(sources_of(claim))["check"]
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


OF_PLAYGROUND = ("rate", "rtt", "loss", "buffer", "queue")
"""Keys of a path that it has."""
PLAIN = re.compile(r"[\d.]+ ?[A-Za-z%/]+|[a-z_\d]+")


def _playground(claim: Claim) -> str:
    """A link that opens the path of the scenario there, where the playground has one like it."""
    if not claim.has_scenario:
        return ""
    scenario = tomllib.loads((ROOT / "gallery" / f"{claim.id}.toml").read_text(encoding="utf-8"))
    path, flows = scenario.get("path", {}), scenario.get("flow", [])
    bulk = all(flow.get("workload", "bulk") == "bulk" for flow in flows)
    if (
        not {"rate", "rtt"} <= path.keys()
        or not bulk
        or any("costs" in scenario.get(end, {}) for end in ("sender", "receiver"))
    ):
        return ""
    chosen = {key: _plain(path[key]) for key in OF_PLAYGROUND if key in path}
    chosen |= {key: _plain(scenario.get(key)) for key in ("duration", "warmup")}
    chosen["flows"] = ",".join(_flows(flows))
    fragment = "&".join(f"{key}={quote(value, safe='/,@')}" for key, value in chosen.items() if value)
    further = [f"path.{key}" for key in path if key not in OF_PLAYGROUND]
    further += [f"{end}.{key}" for end in ("sender", "receiver") for key in scenario.get(end, {})]
    without = f", without {', '.join(map(code, further))}" if further else ""
    return (
        f'<a class="md-button" href="../play/index.html#{escape(fragment, quote=True)}">Open in the playground</a>\n\n'
        f"There its algorithms share the path, at one value of each axis{without}."
    )


def _flows(flows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Each algorithm of a flow, once, with its start; the playground's picture holds three."""
    found: dict[str, str] = {}
    for flow in flows:
        named, start = flow["algorithm"], flow.get("start", "0s")
        for one in [named] if isinstance(named, str) else named:
            found.setdefault(one, one if start == "0s" else f"{one}@{start}")
    return list(found.values())[:3]


def _plain(value: Any) -> str:
    """The first value of an axis that is not nothing, if the playground can have it."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and PLAIN.fullmatch(one) and not one.startswith("0%"):
            return one
    return ""
