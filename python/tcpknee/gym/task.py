"""What is to be learnt: a scenario, who decides what when, what is seen and what is rewarded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from tcpknee import _core
from tcpknee.errors import UsageError
from tcpknee.human import suggest
from tcpknee.runs import api

_REGISTRY = _core.learner_registry()

FIELDS: list[dict[str, Any]] = _REGISTRY["fields"]
"""What can be seen: dicts of `name`, `unit`, `low`, `high`, `doc`."""

CONTROLS: list[dict[str, Any]] = _REGISTRY["controls"]
"""What can be set: dicts of `name`, `unit`, `low`, `high`, `of_window`, `doc`."""

REWARDS: list[dict[str, Any]] = _REGISTRY["rewards"]
"""What a step can be worth: dicts of `name`, `formula`, `source`, `needs_rate`."""

TRUTH: list[dict[str, Any]] = _REGISTRY["truth"]
"""What `info` tells of each step: dicts of `name`, `unit`, `doc`."""

OBSERVATIONS = (
    "snd_cwnd",
    "in_flight",
    "srtt_us",
    "min_rtt_us",
    "delivery_rate_bits_per_sec",
    "step_us",
    "step_delivered",
    "step_lost",
    "step_rtt_us_mean",
)
"""What is seen unless others are named."""

Observation: TypeAlias = npt.NDArray[np.float32]
Action: TypeAlias = npt.NDArray[np.float32]
Actions: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float]]

_DONE = {1: "its connection has carried all that it was to carry", 2: "the scenario's duration is over"}


class Batch(NamedTuple):
    """A step of several environments."""

    seen: Observation
    rewards: npt.NDArray[np.float64]
    """0: it goes on; 1: its connection is complete; 2: the time is over."""
    ended: npt.NDArray[np.uint8]
    """A row of each, a column of each of `TRUTH`."""
    truth: npt.NDArray[np.float64]


class Task:
    """The arguments of an environment, checked."""

    def __init__(
        self,
        who: str,
        scenario: str | PathLike[str],
        flow: str | int,
        decide: str,
        observations: Sequence[str],
        actions: Actions,
        reward: str,
        scaled: bool,
        count: int | None,
        threads: int,
    ) -> None:
        """`count`: of environments that are stepped together; None: one alone, whose action is no batch."""
        self._who, self._count = who, count
        text, file = api.read_scenario(scenario)
        parsed = api.parse(text, file)
        if parsed.algorithm_files:
            raise UsageError(
                f"{who}: scenario: got the algorithm of a file, {parsed.algorithm_files[0][0]}; expected algorithms of "
                "ours, as what a file does wrong would end this process. `knee list algorithms` names them."
            )
        self.cells = len(parsed.cells)
        fields = self._places("observations", list(observations), FIELDS)
        controls = self._controls(actions)
        every_ns = None if decide in ("ack", "round") else self._every_ns(decide)
        self._learner = _core.Learner(
            parsed,
            group=self._group(parsed.cells[0]["flows"], flow),
            rounds=decide == "round",
            every_ns=every_ns,
            fields=fields,
            controls=controls,
            reward=self._places("reward", [reward], REWARDS)[0],
            scaled=scaled,
            count=count or 1,
            threads=threads,
        )
        bounds = [(0.0, 1.0) if scaled else (FIELDS[place]["low"], FIELDS[place]["high"]) for place in fields]
        self.observation_space = _box(bounds)
        self._limits = _box([limits for _, *limits in controls])
        self.action_space = _box([(-1.0, 1.0)] * len(controls)) if scaled else self._limits
        self._scaled = scaled

    def step(self, actions: object, resets: Sequence[tuple[int, int, int]] = ()) -> Batch:
        """One step of each environment; those in `resets` (place, cell, seed) begin an episode."""
        values = b"" if actions is None else self._values(actions).tobytes()
        seen, rewards, ended, truth = self._learner.step(values, list(resets))
        return Batch(
            np.frombuffer(seen, np.float32).reshape(len(ended), -1),
            np.frombuffer(rewards, np.float64),
            np.frombuffer(ended, np.uint8),
            np.frombuffer(truth, np.float64).reshape(len(ended), -1),
        )

    def seed(self, seed: object) -> int | None:
        """A seed as it was told."""
        if seed is None:
            return None
        if not (isinstance(seed, int | np.integer) and 0 <= int(seed) < 1 << 64):
            raise UsageError(
                f"{self._who}.reset: seed: got {seed!r}; expected a whole number from 0 to {(1 << 64) - 1}, or None."
            )
        return int(seed)

    def draw(self, draws: np.random.Generator, seed: int | None, options: Mapping[str, Any] | None) -> tuple[int, int]:
        """The cell and the seed of an episode: as told, or drawn."""
        unknown = [name for name in options or {} if name != "cell"]
        if unknown:
            raise UsageError(
                f"{self._who}.reset: got the option {unknown[0]!r}; {suggest(unknown[0], ['cell'], 'expected')}"
            )
        cell = (options or {}).get("cell")
        if cell is None:
            cell = int(draws.integers(self.cells)) if self.cells > 1 else 0
        elif not (isinstance(cell, int | np.integer) and 0 <= cell < self.cells):
            raise UsageError(
                f"{self._who}.reset: options['cell']: got {cell!r}; expected the number of a cell of the scenario, "
                f"from 0 to {self.cells - 1}."
            )
        return int(cell), int(draws.integers(1 << 62)) if seed is None else seed

    def refuse_step(self, ended: int | None) -> UsageError:
        """Nothing was begun, or it is over."""
        why = "no episode was begun" if ended is None else f"the episode has ended: {_DONE[ended]}"
        return UsageError(f"{self._who}.step: {why}; expected an episode that goes on. Call reset() first.")

    def _values(self, actions: object) -> npt.NDArray[np.float64]:
        shape = self.action_space.shape if self._count is None else (self._count, *self.action_space.shape)
        try:
            values = np.asarray(actions, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array(math.nan)
        if values.shape != shape:
            raise UsageError(
                f"{self._who}.step: got an action of the shape {values.shape}; expected {shape}, a number for each of "
                f"{', '.join(self.controls)}{'' if self._count is None else ' of each environment'}."
            )
        if not np.isfinite(values).all():
            raise UsageError(f"{self._who}.step: got the action {values.tolist()}; expected finite numbers.")
        if not self._scaled:
            return values
        low, high = self._limits.low.astype(np.float64), self._limits.high.astype(np.float64)
        scaled: npt.NDArray[np.float64] = low * (high / low) ** ((values.clip(-1, 1) + 1) / 2)
        return scaled

    def _places(self, argument: str, names: Sequence[str], known: Sequence[Mapping[str, Any]]) -> list[int]:
        listed = [one["name"] for one in known]
        for name in names:
            if name not in listed:
                raise UsageError(f"{self._who}: {argument}: got {name!r}; {suggest(str(name), listed, 'expected')}")
        if not names or len(set(names)) < len(names):
            raise UsageError(
                f"{self._who}: {argument}: got {list(names)}; expected one name or more, none of them twice."
            )
        return [listed.index(name) for name in names]

    def _controls(self, actions: Actions) -> list[tuple[int, float, float]]:
        self.controls = list(actions)
        bounds: Mapping[str, tuple[float, float]] = actions if isinstance(actions, Mapping) else {}
        taken = []
        for place in self._places("actions", self.controls, CONTROLS):
            control = CONTROLS[place]
            try:
                low, high = bounds.get(control["name"], (control["low"], control["high"]))
                is_range = 0 < low < high < math.inf
            except (TypeError, ValueError):
                is_range = False
            if not is_range:
                raise UsageError(
                    f"{self._who}: actions: {control['name']}: got the bounds {bounds[control['name']]!r}; expected "
                    f"two numbers above 0, the lower first, such as ({control['low']:g}, {control['high']:g})."
                )
            taken.append((place, float(low), float(high)))
        of_window = [CONTROLS[place]["of_window"] for place, *_ in taken]
        if len(set(of_window)) < len(of_window):
            raise UsageError(
                f"{self._who}: actions: got {self.controls}; expected one that sets the window, one that sets the "
                "pacing rate, or both."
            )
        return taken

    def _every_ns(self, decide: str) -> int:
        if not isinstance(decide, str):
            raise UsageError(f'{self._who}: decide: got {decide!r}; expected "ack", "round", or a time such as "20ms".')
        try:
            every_ns = _core.duration_ns("decide", decide)
        except UsageError as error:
            raise UsageError(f'{self._who}: {error} Or "ack", or "round".') from None
        if every_ns == 0:
            raise UsageError(f'{self._who}: decide: got {decide!r}; expected "ack", "round", or a time above 0.')
        return every_ns

    def _group(self, flows: Sequence[Mapping[str, Any]], flow: str | int) -> int:
        names = [one["name"] for one in flows]
        if isinstance(flow, int) and 0 <= flow < len(names):
            return flow
        if flow in names:
            return names.index(str(flow))
        raise UsageError(
            f"{self._who}: flow: got {flow!r}; "
            + suggest(str(flow), names, "expected the place of a [[flow]] of the scenario from 0, or its name:")
        )


def _box(bounds: Sequence[Sequence[float]]) -> spaces.Box[np.float32]:
    low, high = np.array(bounds, dtype=np.float32).T
    return spaces.Box(low, high, dtype=np.float32)
