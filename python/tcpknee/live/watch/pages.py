"""Screens over the table: one connection, and the help."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Static

from tcpknee import say
from tcpknee.errors import TcpkneeError

from . import view
from .sample import KEPT, LIMITED, Socket

if TYPE_CHECKING:
    import pyarrow

    from .app import Watch

BACK: list[BindingType] = [
    Binding("escape,backspace,enter", "app.pop_screen"),
    Binding("up,k", "scroll(-1)"),
    Binding("down,j", "scroll(1)"),
    Binding("pageup", "scroll(-10)"),
    Binding("pagedown", "scroll(10)"),
]


class Page(Screen[None]):
    """Text that can be scrolled, between a head and a foot."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def compose(self) -> ComposeResult:
        """A head of its own height, the text, a line at the foot."""
        yield Static(id="head")
        with VerticalScroll(id="text", can_focus=False):
            yield Static(id="body")
        yield Static(id="foot")

    def write(self, head: str, body: str, foot: str) -> None:
        """Shows these, once there is where."""
        if not self.query("#foot"):
            return
        for name, text in (("#head", head), ("#body", body), ("#foot", foot)):
            self.query_one(name, Static).update(Content(text))

    def action_scroll(self, lines: int) -> None:
        """Moves the text."""
        for text in self.query(VerticalScroll):
            text.scroll_relative(y=lines, animate=False)


class ConnectionPage(Page):
    """One connection: what limits it, its last values as sparklines, all its fields."""

    app: Watch
    BINDINGS: ClassVar[list[BindingType]] = [*BACK, Binding("p,space", "app.pause")]

    def __init__(self, socket: Socket, name: str) -> None:
        super().__init__()
        self.socket, self._title = socket, name
        self.whole: pyarrow.Table | None = None
        """Every column of it, as of the last sample or of when the page was opened; no row: it had gone."""
        self._last: tuple[str, str] | None = None

    def on_mount(self) -> None:
        """Shows what there is, and asks for the rest."""
        self.refresh_page()
        self.run_worker(self._ask())

    async def _ask(self) -> None:
        """A sample has only what the table shows; the next one brings the rest too, but may be a minute away."""
        try:
            self.whole = await asyncio.to_thread(self.app.look, self.socket)
        except TcpkneeError:
            # The next sample meets it too, and says so.
            return
        self.refresh_page()

    def on_resize(self, event: Resize) -> None:
        """Lays the fields out anew."""
        self.refresh_page()

    def refresh_page(self) -> None:
        """After a sample; a connection that has gone keeps its last state."""
        sample, width = self.app.sample, self.app.size.width
        row = sample.find(self.socket.cookie)
        history = self.app.history.of(self.socket.cookie)
        if row is None:
            gone = f"{self._title}  closed, or no longer what the filter asks for"
            head, body = self._last or ("", "")
            self.write("\n".join([gone, *head.split("\n")[1:]]), body, "Esc back   q quit")
            return
        limited = LIMITED[sample.limited[row]] or "not known yet"
        algorithm = say.printable(sample.algorithms[row] or "")
        lines = [f"{self._title}  {algorithm}  limited by: {limited}"]
        lines += [_history(name, history[name], width) for name in KEPT]
        head, body = "\n".join(lines), self._last[1] if self._last else ""
        if self.whole is not None and len(self.whole):
            body = _columns(view.fields(self.whole), width)
        self._last = (head, body)
        paused = "   PAUSED" if self.app.paused else ""
        self.write(head, body, f"Esc back   p pause   up/down scroll   q quit{paused}")


LABELS = {"snd_cwnd": ("cwnd", "count", "segments"), "srtt_us": ("srtt", "ms", "ms")}
LABELS["acked_bits_per_sec"] = ("rate", "rate", "bit/s")


def _history(name: str, values: list[float], width: int) -> str:
    """`cwnd  ▁▃█  10 (8 to 20) segments`."""
    label, kind, unit = LABELS[name]
    known = [value for value in values if value == value]
    if not known:
        return f"{label}  not known yet"
    now, least, most = (view.number(kind, value) for value in (values[-1], min(known), max(known)))
    told = f"{now} ({least} to {most}) {unit}"
    return f"{label}  {view.sparkline(values, width - len(told) - 8)}  {told}"


def _columns(fields: list[tuple[str, str]], width: int) -> str:
    """Names and values in as many columns as fit, read downwards."""
    for across in range(8, 0, -1):
        down = -(-len(fields) // across)
        columns = [_column(fields[start : start + down]) for start in range(0, len(fields), max(1, down))]
        if across == 1 or sum(len(column[0]) + 3 for column in columns) - 3 <= width:
            break
    rows = itertools.zip_longest(*columns, fillvalue="")
    return "\n".join("   ".join(row).rstrip() for row in rows)


def _column(fields: list[tuple[str, str]]) -> list[str]:
    names, values = (max(len(field[part]) for field in fields) for part in (0, 1))
    return [f"{name:<{names}}  {value:<{values}}" for name, value in fields]


class HelpPage(Page):
    """The keys and the columns."""

    def on_mount(self) -> None:
        """Writes the page."""
        columns = "\n".join(f"  {column.title:<15} {column.doc}" for column in view.COLUMNS)
        self.write("knee watch: keys and columns", HELP.format(columns=columns), "Esc back   up/down scroll   q quit")


HELP = """\
  up, down, PgUp, PgDn, Home, End   move in the table
  Enter            the page of the connection; Esc leads back
  < and >          sort by the column to the left or right
  r                the other way round
  /                filter: port=443,!8080 address=10.0.0.0/8 algorithm=bbr
                   state=ESTAB min-bytes=1MB mark=1 cgroup=/x; an empty line: all
  p or Space       pause, go on
  + and -          longer or shorter interval
  h or ?           this page
  q, Ctrl-C        quit

{columns}

limited by, over the interval
  idle             nothing was sent
  app              the application had nothing to send for most of it
  rwnd             the receiver's window was full
  sndbuf           the send buffer was full
  cwnd             the congestion window was used, or losses were repaired
  pacing           data waited with room in the window: paced, or queued on this host
"""
