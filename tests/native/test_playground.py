"""The playground in a real browser, from disk: it runs, its controls and keys act, and no link makes it do more."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import browser
from tcpknee import _core

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [browser.needed, pytest.mark.slow("the engine is built for another target")]

#: Runs in the page, and writes into it what a person would see.
PROBE = """
(async () => {{
  const $ = (id) => document.getElementById(id);
  const until = async (ready) => {{ while (!ready()) await new Promise((go) => setTimeout(go, 20)); }};
  const state = () => document.body.dataset.run;
  const over = () => until(() => state() === "over");
  const set = (id, value, kind) => {{ $(id).value = value; $(id).dispatchEvent(new Event(kind)); }};
  const pressed = (key) => new KeyboardEvent("keydown", {{ key, bubbles: true, cancelable: true }});
  const key = (target, name) => target.dispatchEvent(pressed(name));
  const seen = {{}};
  {does}
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const out = document.createElement("output");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
}})();
"""


def visit(playground: Path, tmp_path: Path, fragment: str, does: str, *, width: int = 1440) -> dict[str, Any]:
    """What the page says after `does`; its console says nothing."""
    page = (playground / "index.html").read_text(encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(browser.probed(page, PROBE.format(does=does)), encoding="utf-8")
    shown, console, said = browser.opened(file, seconds=6000, width=width, fragment=fragment)
    assert not console, console
    found = re.search(r'<output id="seen">(.*?)</output>', shown, re.DOTALL)
    assert found, (shown[-3000:], said[-2000:])
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen


@pytest.mark.parametrize("width", [390, 1440])
def test_from_disk_it_runs_and_has_the_numbers_of_the_command(playground: Path, tmp_path: Path, width: int) -> None:
    does = """
      if (WIDTH < 500) document.documentElement.style.width = "WIDTHpx";
      await over();
      seen.scenario = $("scenario").textContent;
      seen.rows = [...$("table").tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
      seen.answer = $("answer").textContent;
      seen.problem = $("problem").hidden;
      seen.copies = [...document.querySelectorAll(".take button")].every((button) => !button.disabled);
      seen.cut = document.querySelector(".scroll").scrollWidth - document.querySelector(".scroll").clientWidth;
      seen.first = $("goodput").getBoundingClientRect().bottom + scrollY;
      seen.inOrder = $("presets").getBoundingClientRect().top <= $("goodput").getBoundingClientRect().top;
      // No window of a headless browser is narrower than 500 pixels.
      seen.widest = Math.max(...[...document.querySelectorAll("body *")]
        .filter((one) => !one.closest(".presets, thead")).map((one) => one.getBoundingClientRect().right));
    """.replace("WIDTH", str(width))
    fragment = "#rate=20Mbit/s&rtt=30ms&loss=0.1%25&queue=fq_codel&ecn=on&duration=6s&flows=cubic,bbr1@1s,reno"
    seen = visit(playground, tmp_path, fragment, does, width=width)
    flows = _core.parse(seen["scenario"], "page.toml").run_cell(0, 0).flows
    import pyarrow as pa

    goodputs = pa.record_batch(flows).column("goodput_bits_per_sec").to_pylist()
    assert [row[-1] for row in seen["rows"][:3]] == [f"{goodput / 1e6:.2f}" for goodput in goodputs]
    assert [row[0] for row in seen["rows"]] == ["cubic", "bbr1", "reno", "what is so"]
    assert seen["answer"].startswith(f"cubic {goodputs[0] / 1e6:.1f}, bbr1 ") and seen["problem"]
    assert seen["overflow"] <= 0 and seen["cut"] <= 0 and seen["widest"] <= width and seen["copies"]
    so = seen["rows"][-1]
    assert so[1] == so[4] == "19.3", "a flow that believes in the link's rate is right"
    # On a small screen the choices stand above the charts, and the first of these is in sight.
    assert seen["inOrder"] and seen["first"] < 1000


def test_a_slider_changes_the_run_and_the_link_that_brings_it_back(playground: Path, tmp_path: Path) -> None:
    does = """
      await over();
      const before = $("answer").textContent;
      set("rate-dial", "600", "input");
      await over();
      seen.changed = before !== $("answer").textContent;
      seen.text = $("rate").value;
      seen.fragment = location.hash;
      const scenario = $("scenario").textContent;
      location.hash = "#flows=reno";
      await until(() => $("scenario").textContent.includes("reno"));
      location.hash = seen.fragment;
      await until(() => !$("scenario").textContent.includes("reno"));
      seen.same = $("scenario").textContent === scenario;
    """
    seen = visit(playground, tmp_path, "#flows=cubic&duration=3s&buffer=2bdp", does)
    assert seen["changed"] and seen["same"]
    assert seen["fragment"] == f"#rate={seen['text']}&buffer=2bdp&duration=3s&flows=cubic"
    assert seen["text"] != "50Mbit/s"


def test_keys_are_enough_to_play_and_to_be_the_controller(playground: Path, tmp_path: Path) -> None:
    does = """
      await until(() => state() === "paused");
      const rows = () => Number($("table").tBodies[0].rows[0].cells[2].textContent);
      for (let i = 0; i < 12; i++) key($("window"), "ArrowUp");
      key($("window"), "ArrowLeft");
      seen.asked = Number($("window").dataset.segments);
      key(document.body, " ");
      await until(() => state() === "play" && $("play").textContent === "Pause");
      seen.playing = true;
      key(document.body, " ");
      for (let i = 0; i < 15; i++) $("step").click();
      seen.window = rows();
      for (let i = 0; i < 30; i++) key($("window"), "ArrowDown");
      for (let i = 0; i < 5; i++) $("step").click();
      seen.less = rows();
      seen.score = $("score").textContent;
      const all = (names) => [...document.querySelectorAll(names)];
      seen.reached = all("button, input, select, summary, pre, [tabindex]").every((one) => one.tabIndex >= 0);
      seen.named = all("input, select").every((one) => one.labels.length || one.getAttribute("aria-label"));
    """
    seen = visit(playground, tmp_path, "#rate=20Mbit/s&rtt=50ms&flows=cubic&you=yes", does)
    assert seen["playing"] and seen["reached"] and seen["named"]
    assert seen["window"] == seen["asked"] > seen["less"]
    assert re.match(r"Score: you \d+ · cubic \d+\.", seen["score"])


HOSTILE = (
    "#flows=%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D1%3E",
    "#queue=%3C/script%3E%3Cscript%3Edocument.title%3D1%3C/script%3E&__proto__=x&constructor=y",
    "#rate=1%22%0Aloss=%225%25&kernel=%0A[[flow]]",
    "#loss=trace%20/etc/passwd&flows=/etc/passwd",
    "#flows=/tmp/evil.c",
    "#loss=trace%20/etc/hostname",
    "#duration=99999h&flows=cubic",
    "#flows=" + ",".join(["cubic"] * 500),
    "#hosts=__proto__&flows=cubic",
    "#ecn=constructor&flows=cubic",
    "#flows=constructor,__proto__",
    "#%E0%A4%A",
)


def test_a_hostile_link_is_text_that_the_reader_refuses(playground: Path, tmp_path: Path) -> None:
    does = """
      seen.of = [];
      for (const fragment of FRAGMENTS) {
        location.hash = "#duration=2s&flows=cubic";
        await until(() => state() === "over" && $("scenario").textContent.includes('"cubic"'));
        location.hash = fragment;
        await new Promise((go) => addEventListener("hashchange", go, { once: true }));
        await until(() => state() !== "rush");
        seen.of.push({
          state: state(),
          problem: $("problem").textContent,
          title: document.title,
          elements: document.querySelectorAll("img, iframe, object, a").length,
          scripts: document.scripts.length,
          copies: [...document.querySelectorAll(".take button")].filter((button) => !button.disabled).length,
        });
      }
      set("queue", "fifo", "change"); set("rate", "20Mbit/s", "change"); set("loss", "0%", "change");
    """.replace("FRAGMENTS", json.dumps(HOSTILE))
    seen = visit(playground, tmp_path, HOSTILE[0], does)
    for fragment, found in zip(HOSTILE, seen["of"], strict=True):
        assert found["title"] == "tcpknee playground" and found["elements"] == 0 and found["scripts"] == 4, fragment
        assert found["problem"], fragment
        # What is refused here might be a file of the reader's to the command. One link only has a key too many.
        runs = fragment == "#%E0%A4%A"
        assert (found["state"] == "over", found["copies"] > 0) == (runs, runs), found


def test_an_engine_that_traps_is_told_whatever_is_pressed(playground: Path, tmp_path: Path) -> None:
    does = """
      let traps = false;
      const whole = WebAssembly.instantiate;
      WebAssembly.instantiate = async (...given) => {
        const { instance } = await whole(...given);
        const trap = (act) => (...words) => {
          if (traps) throw new WebAssembly.RuntimeError("unreachable");
          return act(...words);
        };
        const { memory, ...acts } = instance.exports;
        const guarded = Object.entries(acts).map(([name, act]) => [name, trap(act)]);
        return { instance: { exports: { memory, ...Object.fromEntries(guarded) } } };
      };
      await until(() => state() === "paused");
      $("step").click();
      traps = true;
      const presses = {
        step: () => $("step").click(),
        play: () => $("play").click(),
        window: () => key($("window"), "ArrowUp"),
        end: () => $("end").click(),
        again: () => $("again").click(),
        rate: () => set("rate-dial", "600", "input"),
        queue: () => set("queue", "codel", "change"),
        link: () => (location.hash = "#flows=reno"),
      };
      seen.said = [];
      for (const [name, press] of Object.entries(presses)) {
        press();
        await new Promise((go) => setTimeout(go, 100));
        seen.said.push([name, state(), $("problem").textContent]);
      }
    """
    seen = visit(playground, tmp_path, "#rate=20Mbit/s&flows=cubic&you=yes", does)
    for name, state, problem in seen["said"]:
        assert state in ("paused", "none") and problem.startswith("The engine stopped at an error of its own"), name


def test_what_was_measured_elsewhere_says_what_differs_and_sets_it(playground: Path, tmp_path: Path) -> None:
    does = """
      await over();
      seen.before = $("measured").textContent;
      $("measured").querySelector("button").click();
      await over();
      seen.after = $("measured").textContent;
      seen.fragment = location.hash;
    """
    seen = visit(playground, tmp_path, "#rate=20Mbit/s&buffer=0.5bdp&duration=4s&flows=cubic,bbr1", does)
    for told in (
        "kernel rules 6.12 (here 6.18)",
        "duration 60s (here 4s)",
        "warm-up 15s (here 666ms)",
        "hosts measured",
    ):
        assert told in seen["before"], seen
    assert seen["after"].startswith("Measured on Linux 6.12: cubic ") and "differs" not in seen["after"]
    assert {"kernel=6.12", "hosts=linux-6.12", "duration=60s", "warmup=15s"} <= set(seen["fragment"][1:].split("&"))


def test_the_page_is_whole_and_small(playground: Path) -> None:
    import gzip

    page = (playground / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"""<[^>]*\s(?:src|href)\s*=|url\(|https?://|import\(|fetch\(""", page)
    assert "default-src 'none'" in page and "'unsafe-inline'" not in page and "'unsafe-eval'" not in page
    assert len(gzip.compress((playground / "cell.wasm").read_bytes(), 9)) < 1 << 20


@pytest.mark.skipif(shutil.which("node") is None, reason="not installed: node")
def test_the_command_runs_that_scenario_and_nothing_else(tmp_path: Path) -> None:
    program = """
      import { commandOf, readFragment, scenarioOf } from "SCENARIO";
      const known = { queues: [], hosts: {} };
      const { choices } = readFragment(process.argv[1]);
      console.log(JSON.stringify([commandOf(choices, known), scenarioOf(choices, known)]));
    """.replace("SCENARIO", str(ROOT / "site/play/scenario.mjs"))

    def of(fragment: str) -> tuple[str, str]:
        words = ["node", "--input-type=module", "-e", program, fragment]
        command, scenario = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        return command, scenario

    def ended(command: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    command, scenario = of("#rate=10Mbit/s&duration=2s&flows=cubic,bbr1@500ms")
    done = ended(command)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text())["scenario"] == scenario
    assert (folder / "report.html").exists()
    # A C1 control, a mark that turns the line around, a letter beyond 16 bits.
    _, scenario = of("#queue=" + quote("\x85\u202e\U0001f600\x7f"))
    assert scenario.isascii() and r'queue = "\U00000085\U0000202e\U0001f600\U0000007f"' in scenario
    command, _ = of("#flows=" + quote("cubic'$(touch x)`touch x`\nSCENARIO\ntouch x\n"))
    refused = ended(command)
    assert refused.returncode == 2 and "algorithm" in refused.stderr and not (tmp_path / "x").exists()
