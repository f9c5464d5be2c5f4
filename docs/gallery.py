"""The gallery: an index that tells what was found, and a page for each published claim, made of the stored verdicts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import drawings
from layout import code, sentence, table
from reference import ROOT, Page

from tcpknee.evidence import published
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


def pages(*, playground: bool) -> dict[str, Page]:
    """The page of each claim by its id, with a link to the playground if there is one."""
    results = verdicts.results()
    return {
        claim.id: Page(
            sentence(claim.claim), _claim(claim, results[claim.id], _playground(claim) if playground else "")
        )
        for claim in CLAIMS
    }


def index() -> str:
    """The stories, then all claims by article."""
    results = verdicts.results()
    told = (ROOT / "site" / "stories.md").read_text(encoding="utf-8")
    told = NUMBER.sub(lambda mark: _ours(results[mark[1]], mark[2]), told)
    told = DRAWN.sub(lambda mark: _drawing(mark[1], results[mark[1]]), told)
    parts = [told.replace(TALLY, _tally(results))]
    for letter, title in ARTICLES.items():
        rows = [
            [f"[{sentence(claim.claim)}](gallery/{claim.id}.md)", _badges(results[claim.id]), code(claim.id)]
            for claim in CLAIMS
            if claim.article == letter
        ]
        parts.append(f"### {sentence(title)}\n\n{table(['what is said', 'verdict here', 'claim'], rows)}")
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
        files.append(("form for a kernel", f"gallery/kernel/{claim.id}.toml"))
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
    drawn = drawings.values(name, first["ours"]) if first else ""
    return f"{drawn}\n\nDrawn: {verdicts.form(first)}.\n{{ .of-drawing }}" if first and drawn else ""


def _claim(claim: Claim, results: list[Result], playground: str) -> str:
    of_source = claim.figure or "no figure"
    parts = [
        f"{code(claim.id)} {_badges(results)}",
        f"**What the source says** (article {claim.article}: {ARTICLES[claim.article]}): {of_source}.",
        f"**What must hold here**, written down before anything was run: {claim.shape}.",
        "## Ours",
        _drawing(claim.id, results),
        *(_result(claim, one) for one in results),
        *(f"**{sentence(ENGINES[engine])}.** {why}" for engine, why in claim.limits.items()),
        "## Run it again",
        _commands(claim),
        playground,
        "## How it is set up",
        _set_up(claim),
        "\n".join(f"- [{sentence(what)}](../{file}): {code(file)}" for what, file in sources_of(claim)),
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
        parts.append("\n".join(f"- Published: {_readable(printed)}" for printed in one["published"]))
    held = [[_badge(said["verdict"]), code(said["assert"]), said["detail"]] for said in one["found"]]
    if held:
        inner = table(["", "must hold", "found"], held)
        parts.append(
            f"<details markdown><summary>{len(held)} checked on whole intervals</summary>\n\n{inner}\n</details>"
        )
    return "\n\n".join(parts)


def _readable(printed: str) -> str:
    """A published figure, whose value is said in words."""
    return re.sub(r"`([^`]+)`", lambda value: published.readable(value[1]), printed)


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


OF_PLAYGROUND = {"rate": "", "rtt": "", "loss": "0%", "buffer": "1bdp", "queue": "fifo"}
"""Keys of a path that it has, and what they are where a scenario does not say. It must say those that are ""."""
OF_ITS_RUN = {"duration": "", "warmup": "0s", "kernel": ""}
ASKED = {"title", "claim", "repeat", "seed", "samples", "sample_interval", "expect", "published"}
"""Keys that say what is asked of an experiment: it is the same without them."""
WITHOUT_IT_ANOTHER = {"costs", "tcp_ecn"}
"""Keys of hosts that change all of an experiment, and that the playground has not, or for both ends alone."""
OF_FLOWS = {"name", "algorithm", "start", "count", "workload"}
MOST_FLOWS = 8
"""site/play/scenario.mjs has these two as well."""
PLAIN = re.compile(r"[\d.]+ ?[A-Za-z%/]*|[a-z_\d]+")


def _playground(claim: Claim) -> str:
    """A link that opens the experiment of the scenario there, where the playground can have it. What it leaves out, and
    which value of an axis it takes, stands below."""
    if not claim.has_scenario:
        return ""
    scenario = tomllib.loads((ROOT / "gallery" / f"{claim.id}.toml").read_text(encoding="utf-8"))
    ends = {end: scenario.get(end, {}) for end in ("sender", "receiver")}
    if (
        scenario.keys() - ASKED - OF_ITS_RUN.keys() - ends.keys() - {"path", "flow"}
        or any(WITHOUT_IT_ANOTHER & keys.keys() for keys in ends.values())
        or not (flows := _flows(scenario["flow"]))
    ):
        return ""
    path = scenario.get("path", {})
    given = {f"path.{key}": (path.get(key), usual) for key, usual in OF_PLAYGROUND.items()}
    given |= {key: (scenario.get(key), usual) for key, usual in OF_ITS_RUN.items()}
    chosen, at = {}, []
    for key, (value, usual) in given.items():
        one = _plain(usual if value is None else value)
        if one is None:
            return ""
        chosen[key.removeprefix("path.")] = one
        if isinstance(value, list):
            at.append(f"{code(key)} = {code(one)}")
    if not (chosen["rate"] and chosen["rtt"]):
        return ""
    fragment = "&".join(f"{key}={quote(value, safe='/')}" for key, value in chosen.items() if value)
    fragment += f"&flows={quote(','.join(flows), safe=',@')}"
    without = [code(f"path.{key}") for key in path if key not in OF_PLAYGROUND]
    without += [code(f"{end}.{key}") for end, keys in ends.items() for key in keys]
    told = [
        f"There {'its algorithms share the path' if len(flows) > 1 else 'it runs once'}",
        *([f"at {', '.join(at)}"] if at else []),
        *([f"without {', '.join(without)}"] if without else []),
    ]
    return (
        f'<a class="md-button" href="../play/index.html#{escape(fragment, quote=True)}">Open in the playground</a>\n\n'
        f"{', '.join(told)}."
    )


def _flows(flows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each flow's algorithm with its start; none where the playground cannot have them. A flow that is alone has all of
    its algorithms there, one beside the other."""
    found = []
    for flow in flows:
        named, start, count = flow["algorithm"], flow.get("start", "0s"), flow.get("count", 1)
        several = isinstance(named, list)
        if (
            flow.keys() - OF_FLOWS
            or flow.get("workload", "bulk") != "bulk"
            or not (isinstance(start, str) and isinstance(count, int))
            or (several and len(flows) > 1)
        ):
            return []
        for one in named if several else [named]:
            found += [one if start == "0s" else f"{one}@{start}"] * count
    return found if len(found) <= MOST_FLOWS else []


def _plain(value: Any) -> str | None:
    """The first value of an axis that is not nothing, if the playground can have it."""
    values = value if isinstance(value, list) else [value]
    one = next((one for one in values if one != "0%"), values[0])
    return one if one == "" or (isinstance(one, str) and PLAIN.fullmatch(one)) else None
