"""The screen of `knee watch`."""

from __future__ import annotations

import asyncio
import contextlib
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.content import Content
from textual.events import Click, Event, Key, MouseScrollDown, MouseScrollUp, Resize
from textual.filter import LineFilter
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from tcpknee import _core, human, say
from tcpknee.errors import TcpkneeError, UsageError
from tcpknee.live import exclusions

from . import filters, view
from .ending import Ending
from .filters import Wanted
from .pages import ConnectionPage, HelpPage, Page
from .sample import History, Sample, Socket, per_algorithm, take, total, whole

if TYPE_CHECKING:
    import pyarrow

INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SAID_S = 8.0
PLAIN, BOLD, CHOSEN = Style(), Style(bold=True), Style(reverse=True)
SORTED = Style(bold=True, underline=True)
KEYS = "q quit  h help  / filter  <> sort  p pause  Enter page  r reverse  +- interval"


class Connections(Widget, can_focus=True):
    """The table. Only the rows that are seen are written, however many there are."""

    class Opened(Message):
        """The connection under the cursor is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
        Binding("home", "edge(-1)"),
        Binding("end", "edge(1)"),
        Binding("enter", "open"),
        Binding("less_than_sign,left", "sort(-1)"),
        Binding("greater_than_sign,right", "sort(1)"),
        Binding("r", "reverse"),
    ]

    def __init__(self, sample: Sample, by: str) -> None:
        super().__init__()
        self._sample, self._by, self._descending = sample, by, view.descends(by)
        self._rows = view.ordered(sample, by, self._descending)
        self._peer_width = view.peer_width(sample)
        self._first = self._cursor = 0

    @property
    def seen(self) -> int:
        """Rows that have room under the head."""
        return max(0, self.size.height - 1)

    @property
    def place(self) -> str:
        """Which rows are seen, of how many, in which order."""
        count = len(self._rows)
        if not count:
            return "no connections"
        by = f"{view.BY_NAME[self._by].title} {'down' if self._descending else 'up'}"
        return f"{self._first + 1:,}-{min(count, self._first + self.seen):,} of {count:,} by {by}"

    @property
    def chosen(self) -> int | None:
        """The row under the cursor."""
        return int(self._rows[self._cursor]) if len(self._rows) else None

    def show(self, sample: Sample) -> None:
        """Takes another sample, in the same order; the cursor stays where it is."""
        self._sample = sample
        self._peer_width = view.peer_width(sample)
        self._arrange()

    def _arrange(self) -> None:
        self._rows = view.ordered(self._sample, self._by, self._descending)
        self._go(self._cursor)

    def _go(self, row: int) -> None:
        self._cursor = max(0, min(row, len(self._rows) - 1))
        seen = max(1, self.seen)
        self._first = max(0, min(self._first, len(self._rows) - seen))
        self._first = min(max(self._first, self._cursor - seen + 1), self._cursor)
        self.refresh()
        self.post_message(Moved())

    def render_line(self, y: int) -> Strip:
        """The head, a row, or nothing."""
        width = self.size.width
        layout = view.fitting(width, self._peer_width)
        row = self._first + y - 1
        if y == 0:
            return self._head(layout, width)
        if row < len(self._rows):
            number = int(self._rows[row])
            text = " ".join(view.cell(self._sample, number, column, room) for column, room in layout)
            style = CHOSEN if row == self._cursor else PLAIN
        else:
            text, style = "", PLAIN
        return Strip([Segment(text[:width].ljust(width), style)], width)

    def _head(self, layout: list[tuple[view.Column, int]], width: int) -> Strip:
        """The column that the rows are sorted by is underlined."""
        segments = []
        for (column, _), title in zip(layout, view.titles(layout), strict=True):
            segments += [Segment(title, SORTED if column.name == self._by else BOLD), Segment(" ", BOLD)]
        return Strip(segments[:-1]).adjust_cell_length(width, PLAIN)

    def on_resize(self, event: Resize) -> None:
        """Keeps the cursor in view."""
        self._go(self._cursor)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Moves the cursor by three rows."""
        self._go(self._cursor + 3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Moves the cursor by three rows."""
        self._go(self._cursor - 3)

    def on_click(self, event: Click) -> None:
        """Puts the cursor there."""
        if event.y > 0:
            self._go(self._first + event.y - 1)

    def action_move(self, rows: int) -> None:
        """Moves the cursor."""
        self._go(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Moves it by what is seen."""
        self._go(self._cursor + pages * max(1, self.seen - 1))

    def action_edge(self, end: int) -> None:
        """Moves it to the first or last row."""
        self._go(0 if end < 0 else len(self._rows) - 1)

    def action_open(self) -> None:
        """Opens the page of the connection."""
        if self.chosen is not None:
            self.post_message(self.Opened())

    def action_sort(self, step: int) -> None:
        """Sorts by a neighbour among the columns that are seen, going round."""
        names = [column.name for column, _ in view.fitting(self.size.width, self._peer_width)]
        place = names.index(self._by) if self._by in names else 0
        self._by = names[(place + step) % len(names)]
        self._descending = view.descends(self._by)
        self._arrange()

    def action_reverse(self) -> None:
        """The other way round."""
        self._descending = not self._descending
        self._arrange()


class FilterLine(Input):
    """The filter, while it is edited."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "app.apply"), Binding("escape", "app.leave")]


class Moved(Message):
    """Other rows may be seen."""


class Printable(LineFilter):
    """Takes control characters out of whatever widget is drawn, the line that is edited included.

    They have no width; what is shown as an escape in their place stands in the text before it gets here.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments, as wide as before."""
        return [one if one.control else Segment(say.without_harmful(one.text), one.style) for one in segments]


class Watch(App[None]):
    """Samples at intervals and shows them until it is told to end."""

    CSS = """
    Screen { layout: vertical; }
    #totals, #algorithms, #head, #foot, #status { height: auto; }
    Connections, #text { height: 1fr; }
    #text { scrollbar-size: 0 0; }
    Input, Input:focus { height: 1; border: none; padding: 0; background: ansi_default; color: ansi_default; }
    Input { display: none; }
    Input > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    Input > .input--placeholder { color: ansi_default; text-style: dim; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit"),
        Binding("ctrl+c,ctrl+q", "quit", priority=True),
        Binding("h,question_mark", "help"),
        Binding("slash", "filter"),
        Binding("p,space", "pause"),
        Binding("plus,equals_sign", "interval(1)"),
        Binding("minus", "interval(-1)"),
    ]

    def __init__(self, wanted: Wanted, netns: str | None, every_s: float, by: str) -> None:
        """Takes the first sample, so that what cannot be done is said before the screen is taken."""
        super().__init__()
        self.theme = "ansi-dark"
        self.paused = False
        self.history = History()
        self.ending = Ending()
        self._netns, self._every_s = netns, every_s
        self._wanted, self._asked = wanted, wanted
        self._said = self._nothing = ""
        self._spent = (time.monotonic(), time.process_time())
        self._cost = ""
        self._now = asyncio.Event()
        self._printable = Printable()
        self._by = by
        self.sample, _ = self._take(wanted, None, None)
        self.history.add(self.sample)

    def _take(
        self, wanted: Wanted, before: Sample | None, looked_at: Socket | None
    ) -> tuple[Sample, pyarrow.Table | None]:
        everywhere = {**wanted, "netns": self._netns}
        sample = take(everywhere, before)
        self._nothing = "" if len(sample) else exclusions.text(exclusions.count(everywhere), everywhere)
        told = self.look(looked_at) if looked_at else None
        _core.give_back_memory()
        return sample, told

    def look(self, socket: Socket) -> pyarrow.Table:
        """Every column of this socket."""
        return whole({**self._wanted, "netns": self._netns}, socket)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, and ours behind them."""
        return [*super().get_line_filters(), self._printable]

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static(id="totals")
        yield Static(id="algorithms")
        yield Connections(self.sample, self._by)
        yield FilterLine(id="filter", compact=True, select_on_focus=False)
        yield Static(id="status")

    def on_mount(self) -> None:
        """Begins to sample; from here on it can end in order."""
        loop = asyncio.get_running_loop()
        self.ending.ready(lambda: loop.call_soon_threadsafe(self.exit))
        self.screen.set_focus(self.query_one(Connections))
        self._show()
        self.run_worker(self._sampling(), exclusive=True)

    async def _sampling(self) -> None:
        """Takes a sample at each interval, in a thread, so that keys are answered meanwhile."""
        due = time.monotonic() + self._every_s
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._now.wait(), max(0.0, due - time.monotonic()))
            self._now.clear()
            began = time.monotonic()
            due = began + self._every_s
            asked = self._asked
            if self.paused and asked == self._wanted:
                continue
            page = next((one for one in self.screen_stack if isinstance(one, ConnectionPage)), None)
            try:
                sample, told = await asyncio.to_thread(self._take, asked, self.sample, page.socket if page else None)
            except TcpkneeError as error:
                # A filter that the kernel does not take is dropped; the screen stays as it was.
                self._asked = self._wanted
                self._say(" ".join(str(error).split()))
                continue
            if self.paused and asked == self._wanted:
                # It was under way when all was to stay as it is.
                continue
            self._wanted, self.sample = asked, sample
            if page:
                page.whole = told
            self.history.add(sample)
            wall, cpu = time.monotonic(), time.process_time()
            share = 100 * (cpu - self._spent[1]) / (wall - self._spent[0])
            self._cost = f"cost {human.quantity('time', 1e6 * sample.cost_s)}, {share:.1f} % CPU"
            self._spent = (wall, cpu)
            self._show()

    def _show(self) -> None:
        """Writes all of the screen anew."""
        main = self.screen_stack[0]
        main.query_one(Connections).show(self.sample)
        self._totals()
        self._status()
        if isinstance(self.screen, ConnectionPage):
            self.screen.refresh_page()

    def _totals(self) -> None:
        main, (width, height) = self.screen_stack[0], self.size
        where = f"netns {self._netns}" if self._netns else "this host"
        filtered = filters.line(self._wanted)
        head = f"knee watch  {where}  every {self._every_s:g} s"
        head += "  PAUSED" if self.paused else ""
        head += f"  filter {filtered}" if filtered else ""
        lines = [head, view.states(self.sample, self._cost, width), view.sums(total(self.sample), width)]
        lines += textwrap.wrap(self._nothing, width)
        main.query_one("#totals", Static).update(Content("\n".join(say.printable(line)[:width] for line in lines)))
        # A fourth of the screen at most, and none of it where the table would get less than half.
        groups = view.algorithms(per_algorithm(self.sample), height // 4 if height >= 16 else 0, width)
        main.query_one("#algorithms", Static).update(Content("\n".join(groups)))
        main.query_one("#algorithms").display = bool(groups)

    def _status(self) -> None:
        main, width = self.screen_stack[0], self.size.width
        place = main.query_one(Connections).place
        keys = f"{place}  {KEYS}"
        text = self._said or (keys if len(keys) <= width else keys[: width - 1] + "…")
        main.query_one("#status", Static).update(Content(text))

    def _say(self, text: str) -> None:
        """Puts what went wrong in place of the keys, long enough to be read."""
        self._said = say.printable(text)
        self._status()
        self.set_timer(SAID_S, self._unsay)

    def _unsay(self) -> None:
        self._said = ""
        self._status()

    def on_moved(self, event: Moved) -> None:
        """Says which rows are seen."""
        self._status()

    def on_resize(self, event: Resize) -> None:
        """Cuts the lines anew."""
        self.call_after_refresh(self._totals)

    def on_connections_opened(self, event: Connections.Opened) -> None:
        """Opens the page of the chosen connection."""
        row = self.query_one(Connections).chosen
        if row is not None:
            name = f"{view.local(self.sample, row)} to {view.peer(self.sample, row)}"
            self.push_screen(ConnectionPage(self.sample.socket(row), name))

    async def on_event(self, event: Event) -> None:
        """Does what a key asks for before it looks at the next one.

        Textual puts keys into a queue of the widget that has the focus when they come. Of keys that come in one go
        those behind a `/` would be commands of the table, and letters behind an editing key be put in before it.
        """
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
        elif isinstance(self.focused, FilterLine) and event.is_printable and event.character is not None:
            self.focused.replace(event.character, *self.focused.selection)
        elif bound := self.screen.active_bindings.get(event.key):
            await self.run_action(bound.binding.action, bound.node)

    async def action_quit(self) -> None:
        """Ends, at the latest when a sample under way has had its time."""
        self.ending.begin()

    def action_help(self) -> None:
        """Opens the help."""
        if not isinstance(self.screen, HelpPage):
            self.push_screen(HelpPage())

    def action_pause(self) -> None:
        """Stops sampling, or goes on."""
        self.paused = not self.paused
        self._totals()
        if isinstance(self.screen, ConnectionPage):
            self.screen.refresh_page()
        if not self.paused:
            self._now.set()

    def action_interval(self, step: int) -> None:
        """The next longer or shorter one."""
        longer = [one for one in INTERVALS_S if one > self._every_s]
        shorter = [one for one in INTERVALS_S if one < self._every_s]
        self._every_s = (longer or [self._every_s])[0] if step > 0 else (shorter or [self._every_s])[-1]
        self._totals()
        self._now.set()

    def action_filter(self) -> None:
        """Lets the filter be edited in place of the last line."""
        if isinstance(self.screen, Page):
            return
        entry = self.query_one(FilterLine)
        entry.value = filters.line(self._wanted)
        entry.placeholder = "port=443 address=10.0.0.0/8 algorithm=bbr state=ESTAB min-bytes=1MB"
        entry.display = True
        self.screen.set_focus(entry)

    def action_apply(self) -> None:
        """Asks for it at once; an invalid text is reported and nothing changes."""
        try:
            self._asked = filters.parse(self.query_one(FilterLine).value)
        except UsageError as error:
            self._say(str(error))
        self.action_leave()
        self._now.set()

    def action_leave(self) -> None:
        """Leaves the filter as it is."""
        self.query_one(FilterLine).display = False
        self.screen.set_focus(self.query_one(Connections))
        self._status()
