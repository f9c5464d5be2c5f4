"""What others wrote stays words in every page, and the browser is told to run and to fetch nothing of it."""

from __future__ import annotations

import html
import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest

import browser
import synthetic
import traces
from tcpknee import cli
from tcpknee.errors import RunFolderError
from tcpknee.live import trace
from tcpknee.pages import page, trace_page
from tcpknee.pages.run import ReportRun

OWNED = "document.title='owned'"
HOSTILE = f"""</script><script>{OWNED}</script><img src=x onerror="{OWNED}">--><svg onload="{OWNED}">'"&\u202e"""
SHOWN = HOSTILE.replace("\u202e", "\\u202e")


def hostile_run(folder: Path) -> str:
    """The report of a run in which every word that a scenario or a folder chooses is hostile."""
    written = synthetic.write_run(
        folder / "run",
        title=HOSTILE,
        algorithms=(HOSTILE, "cubic"),
        axes={HOSTILE: (HOSTILE, "b")},
        reps=2,
        seconds=3.0,
    )
    meta = json.loads((written / "run.json").read_text())
    meta |= {"command": HOSTILE, "file": HOSTILE, "scenario": HOSTILE, "host": {"kernel": HOSTILE, HOSTILE: HOSTILE}}
    (written / "run.json").write_text(json.dumps(meta))
    return page.render(ReportRun.open(written))


def hostile_trace(folder: Path) -> str:
    """The page of a trace whose description and tables another user wrote."""
    written = traces.write(
        folder / "trace", source=HOSTILE, algorithm=HOSTILE, began=HOSTILE, command=HOSTILE, host={HOSTILE: HOSTILE}
    )
    return trace_page.page(trace.read(written))


PAGES = {"run": (hostile_run, "{}"), "trace": (hostile_trace, "Live connections, 2 s from {}")}


@pytest.fixture(scope="module", params=PAGES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A page of hostile words, and its title."""
    make, title = PAGES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    path = folder / f"{request.param}.html"
    path.write_text(make(folder), encoding="utf-8")
    return path, title.format(SHOWN)


@browser.needed
def test_hostile_words_run_nothing_and_the_figures_are_drawn(made: tuple[Path, str]) -> None:
    path, title = made
    document, console, said = browser.opened(path, seconds=30)
    assert console == []
    assert 'data-drawn="yes"' in document, said[-2000:]
    found = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert found and html.unescape(found[1]) == f"{title} – tcpknee"
    assert document.count('class="marks"') == path.read_text().count('class="chart"') > 0
    assert 'class="failed"' not in document


def test_only_the_scripts_of_the_page_may_run_and_nothing_be_fetched(made: tuple[Path, str]) -> None:
    text = made[0].read_text()
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1])
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives.keys() == {"default-src", "base-uri", "form-action", "script-src", "style-src"}
    assert all(directives[name] == "'none'" for name in ("default-src", "base-uri", "form-action"))
    assert re.fullmatch(r"'sha256-[\w+/=]{44}' 'sha256-[\w+/=]{44}'", directives["script-src"])
    assert directives["style-src"] == "'unsafe-inline'"
    assert text.count("<script") == 3 and "<img" not in text.split('id="data"')[0]


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback, and the paths that it was asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


#: Every way to the network that a script has without leaving the page, and scripts made of text.
ATTEMPTS = """
(async () => {
  const tried = {};
  addEventListener("securitypolicyviolation", (event) => { tried[event.effectiveDirective] = event.blockedURI; });
  await fetch("URL/fetch").then(() => { tried.fetched = 1; }, () => {});
  new Image().src = "URL/image";
  navigator.sendBeacon("URL/beacon", "x");
  try { new WebSocket("URL/socket".replace("http", "ws")); } catch {}
  try { new EventSource("URL/events"); } catch {}
  for (const [name, attributes] of [["link", {rel: "stylesheet", href: "URL/style"}], ["script", {src: "URL/script"}],
                                    ["iframe", {src: "URL/frame"}], ["object", {data: "URL/object"}]]) {
    document.body.append(Object.assign(document.createElement(name), attributes));
  }
  document.body.style.background = "url(URL/background)";
  try { new Function("document.title = 'owned'")(); } catch { tried.eval = "refused"; }
  document.body.insertAdjacentHTML("beforeend", `<img src="data:," onerror="document.title = 'owned'">`);
  await new Promise((go) => setTimeout(go, 2000));
  document.body.dataset.tried = JSON.stringify(tried);
})();
"""


@browser.needed
def test_a_script_that_got_in_reaches_no_network(
    made: tuple[Path, str], tmp_path: Path, listener: tuple[str, list[str]]
) -> None:
    url, asked = listener
    probed = tmp_path / "probed.html"
    probed.write_text(browser.probed(made[0].read_text(), ATTEMPTS.replace("URL", url)))
    document, _, said = browser.opened(probed, seconds=30)
    found = re.search(r'data-tried="([^"]*)"', document)
    assert found, said[-2000:]
    tried = json.loads(html.unescape(found[1]))
    assert asked == [] and "fetched" not in tried
    assert {"connect-src", "img-src", "style-src-elem", "script-src-elem", "frame-src", "object-src"} <= set(tried)
    assert tried["eval"] == "refused" and "<title>owned" not in document


@browser.needed
def test_without_the_policy_the_server_would_be_asked(
    made: tuple[Path, str], tmp_path: Path, listener: tuple[str, list[str]]
) -> None:
    """Else the test above would prove nothing."""
    url, asked = listener
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", made[0].read_text())
    (tmp_path / "open.html").write_text(f"{open_page}<script>{ATTEMPTS.replace('URL', url)}</script>")
    document, _, _ = browser.opened(tmp_path / "open.html", seconds=30)
    assert {"/fetch", "/image", "/script"} <= set(asked) and "data-tried" in document


def test_a_description_of_another_shape_is_no_trace(tmp_path: Path) -> None:
    changes = ({"seconds": "long"}, {"rows": 3}, {"cost": None}, {"cost": {}}, {"host": []}, {"began": 7})
    for number, about in enumerate(changes):
        written = traces.write(tmp_path / str(number), **about)
        with pytest.raises(RunFolderError, match=rf"trace\.json: {next(iter(about))}.*: got .*; expected "):
            trace.read(written)
    (written / "trace.json").write_text("[]")
    with pytest.raises(RunFolderError, match=r"trace\.json: got a list; expected an object"):
        trace.read(written)


def test_a_figure_by_itself_has_hostile_words_as_words(tmp_path: Path) -> None:
    written = traces.write(tmp_path / "trace", source=HOSTILE, algorithm=HOSTILE, began=HOSTILE)
    drawn = ElementTree.parse(trace_page.save(trace.read(written), tmp_path / "trace.svg"))
    for element in drawn.iter():
        assert element.tag.rsplit("}")[-1] not in {"script", "image", "foreignObject", "a"}
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    assert OWNED in "".join(drawn.getroot().itertext())


def test_the_folder_of_a_trace_is_named_and_not_obeyed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = traces.write(tmp_path / "a\x1b]0;owned\x07\nknee: forged")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["knee", "report", str(written), "--format", "svg", "--figure", "trace"])
        cli.main()
    assert end.value.code == 0
    out, err = capfd.readouterr()
    assert (out, err) == (f"Figure: {tmp_path}/a\\x1b]0;owned\\x07\\nknee: forged/trace.svg\n", "")
