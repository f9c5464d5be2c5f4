"""Builds the playground, one page that also works from disk: build.py FOLDER writes index.html and cell.wasm there.

It builds crates/engine and the algorithms of cc/ for WebAssembly, which takes Rust's target wasm32-unknown-unknown and
a clang that knows it (docs/ci.md), and puts the module, the scripts and what the page must know of algorithms, queues
and measured kernels into index.html.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import built_of

from tcpknee import _core
from tcpknee.errors import TcpkneeError
from tcpknee.pages import html, palette
from tcpknee.validation.references import reference
from tcpknee.writing import replacing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = "wasm32-unknown-unknown"
SCRIPTS = ("engine.mjs", "scenario.mjs", "series.mjs", "chart.mjs", "play.mjs")
"""In this order: each imports from those before it."""

KERNELS = ("3.10", "3.18", "4.4", "4.9", "4.14", "4.19", "5.4", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18", "7.2")

PRESETS = (
    ("CUBIC beside BBR", "flows=cubic,bbr1"),
    ("Loss by chance", "rate=100Mbit/s&rtt=80ms&loss=0.5%25&flows=cubic,bbr1"),
    ("A buffer too long", "rate=20Mbit/s&rtt=30ms&buffer=10bdp&flows=cubic,cubic@5s"),
    ("… with FQ-CoDel", "rate=20Mbit/s&rtt=30ms&buffer=10bdp&queue=fq_codel&flows=cubic,cubic@5s"),
    ("L4S", "rate=50Mbit/s&rtt=20ms&buffer=4bdp&queue=dualpi2&ecn=accurate&flows=prague,cubic"),
    (
        "As Linux was measured",
        "rate=20Mbit/s&rtt=40ms&buffer=0.5bdp&hosts=linux-6.12&duration=60s&warmup=15s&flows=cubic,bbr1",
    ),
    ("You against CUBIC", "rate=20Mbit/s&rtt=50ms&duration=60s&flows=cubic&you=yes"),
    ("You against BBR", "rate=20Mbit/s&rtt=50ms&duration=60s&flows=bbr1&you=yes"),
)


class BuildError(TcpkneeError):
    """The page cannot be built."""


def module() -> bytes:
    """The engine for a page, built small and fast."""
    command = f"cargo build --quiet --locked --target {TARGET} -p knee-engine --example cell --profile page"
    environment = {"CC_wasm32_unknown_unknown": _clang(), **os.environ}
    done = subprocess.run(
        [*command.split(), "--message-format", "json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(
            f"{command}: got exit code {done.returncode}: {done.stderr.strip()[-2000:]}. See docs/ci.md, WebAssembly."
        )
    made = [name for line in done.stdout.splitlines() for name in json.loads(line).get("filenames", ())]
    return Path(next(name for name in made if name.endswith("/cell.wasm"))).read_bytes()


def _clang() -> str:
    found = next((name for name in ("clang-16", "clang") if shutil.which(name)), None)
    if found is None:
        raise BuildError("clang: not found in PATH; expected one that builds for WebAssembly. Install clang-16.")
    return found


def page(wasm: bytes) -> str:
    """The whole page; nothing in it is fetched."""
    css = _source("play.css")
    script = _joined(_source(name) for name in SCRIPTS)
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_hash(script)} 'wasm-unsafe-eval'; style-src {_hash(css)}"
    )
    parts = {
        "SOURCES": built_of.mark(),
        "POLICY": policy,
        "CSS": css,
        "KNOWN": html.json_in_page(known()),
        "WASM": base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode(),
        "SCRIPT": script,
    }
    return re.sub(r"\b(SOURCES|POLICY|CSS|KNOWN|WASM|SCRIPT)\b", lambda found: parts[found[0]], _source("index.html"))


def _source(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _joined(sources: Iterator[str]) -> str:
    """Modules as one: what one imports from another stands before it."""
    text = "\n".join(sources)
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def known() -> dict[str, Any]:
    """What the page offers: it names nothing that the engine has not."""
    files = [reference.read(path) for path in sorted((ROOT / "reference").glob("linux-*.csv"))]
    hosts = {_hosts_name(file): _hosts(file) for file in reversed(files)}
    return {
        "algorithms": [{"name": one["name"], "summary": one["summary"]} for one in _core.algorithms()],
        "queues": [
            {
                "name": one["name"],
                "summary": one["summary"],
                "ecn": any(param["name"] == "ecn" for param in one["params"]),
            }
            for one in _core.queues()
        ],
        "kernels": KERNELS,
        "hosts": hosts,
        "hostNames": {"usual": "as usual"} | {name: f"measured {name[6:]}" for name in sorted(hosts)},
        "measured": [cell for file in files for cell in _measured(file)],
        "inks": {name: palette.colour(slot) for name, slot in palette.KNOWN.items()},
        "presets": [{"name": name, "fragment": fragment} for name, fragment in PRESETS],
    }


def _hosts_name(file: reference.Reference) -> str:
    return "linux-" + ".".join(file.facts["kernel"].split(".")[:2])


def _hosts(file: reference.Reference) -> dict[str, dict[str, str]]:
    """The settings of a file's hosts, as a scenario writes them."""
    hz = file.facts["hz"]
    settings = {"sender.hz": hz, "receiver.hz": hz, **file.settings}
    found: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        table, _, name = key.partition(".")
        if table in ("sender", "receiver", "flow"):
            plain = value in ("true", "false") or value.isdecimal()
            found.setdefault(table, {})[name] = value if plain else json.dumps(value)
    return found


def _measured(file: reference.Reference) -> Iterator[dict[str, Any]]:
    """The cells that are of the page's own choices and nothing else, with the mean of their runs."""
    of_path = {"path.rate", "path.rtt", "path.loss", "path.buffer", "path.queue", "path.jitter"}
    for cell in file.cells():
        given = {key: value for key, value in cell.settings.items() if value}
        flows = [{key: value for key, value in flow.items() if value} for flow in cell.flows]
        if not set(given) <= of_path | {"duration", "warmup"} or given.get("path.jitter", "0s") != "0s":
            continue
        if any(not set(flow) <= {"flow.algorithm", "flow.start"} for flow in flows):
            continue
        starts = [(flow["flow.algorithm"], flow.get("flow.start", "0s")) for flow in flows]
        runs = list(cell.runs.values())
        yield {
            "kernel": ".".join(file.facts["kernel"].split(".")[:2]),
            "hosts": _hosts_name(file),
            "rate": given["path.rate"],
            "rtt": given["path.rtt"],
            "loss": given.get("path.loss", "0%"),
            "buffer": given["path.buffer"],
            "queue": given.get("path.queue", "fifo"),
            "flows": ",".join(name if start == "0s" else f"{name}@{start}" for name, start in starts),
            "duration": given["duration"],
            "warmup": given["warmup"],
            "results": [
                {"goodput": _mean(runs, i, "goodput_bits_per_sec", 1e-6), "srtt": _mean(runs, i, "srtt_us_p50", 1e-3)}
                for i in range(len(flows))
            ],
        }


def _mean(runs: list[list[reference.Row]], flow: int, metric: str, scale: float) -> float | None:
    values = [value for rows in runs if (value := rows[flow].metrics[metric]) is not None]
    return round(sum(values) / len(values) * scale, 3) if values else None


def main(out: Path) -> None:
    wasm = module()
    # A web server reads it too, which a folder of root's alone would not let in.
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (("index.html", page(wasm).encode()), ("cell.wasm", wasm)):
        with replacing(out / name, public=True) as file:
            file.write(content)
    packed = len(gzip.compress(wasm, 9, mtime=0))
    print(f"{out / 'index.html'}: the engine has {len(wasm):,} bytes, compressed {packed:,}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except BuildError as error:
        sys.exit(f"site/play: {error}")
