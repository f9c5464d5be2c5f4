"""Chromium without a window, spoken to over a pipe (the DevTools protocol): real keys, real widths, and all it says."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_SEC = 120
"""The machine may be busy."""


class Tab:
    """One page of the browser. `said` are errors of its console, `asked` are the addresses that it loaded."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from, self._rest = to_browser, from_browser, b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.said: list[str] = []
        self.asked: list[str] = []
        self._events: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Asks, and waits for the answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == number:
                assert "error" not in heard, (method, heard)
                return dict(heard["result"])

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], PATIENCE_SEC)
            assert ready, "the browser says nothing"
            piece = os.read(self._from, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        one, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(one)
        self._note(heard)
        return heard

    def _note(self, heard: dict[str, Any]) -> None:
        method, params = heard.get("method", ""), heard.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.said.append(str(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def open(self, page: Path, *, width: int = 1440, height: int = 900, scheme: str = "light") -> None:
        """Loads a page from disk, and waits for it."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        with self._until_loaded():
            self.send("Page.navigate", url=page.as_uri())

    @contextmanager
    def _until_loaded(self) -> Iterator[None]:
        """What is done meanwhile leads to another page."""
        self._events.clear()
        yield
        end = time.monotonic() + PATIENCE_SEC
        while "Page.loadEventFired" not in self._events:
            assert time.monotonic() < end, "no page was loaded"
            self._hear()

    def run(self, script: str) -> Any:
        """The value of an expression, or of what a promise becomes."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key as from a keyboard; its number is that of DOM's keyCode."""
        text = {"text": "\r"} if key == "Enter" else {}
        known = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def follow(self) -> None:
        """Enter on a link, and waits for its page."""
        with self._until_loaded():
            self.press("Enter", 13)

    def write(self, text: str) -> None:
        """Text, as from a keyboard."""
        self.send("Input.insertText", text=text)


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A browser with one tab; it finds no host but what is on disk."""
    assert PROGRAM
    command = [
        PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
    ]  # fmt: skip
    its_in, to_browser = os.pipe()
    from_browser, its_out = os.pipe()

    def hand_over() -> None:
        """It reads from descriptor 3 and writes to 4."""
        there, back = os.dup(its_in), os.dup(its_out)
        high = os.dup2(there, 100), os.dup2(back, 101)
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    running = subprocess.Popen(command, preexec_fn=hand_over, close_fds=False, stderr=subprocess.DEVNULL)
    os.close(its_in)
    os.close(its_out)
    try:
        yield Tab(to_browser, from_browser)
    finally:
        running.terminate()
        running.wait(PATIENCE_SEC)
        os.close(to_browser)
        os.close(from_browser)
