"""One environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import gymnasium

from .task import OBSERVATIONS, TRUTH, Action, Actions, Batch, Observation, Task

_TRUTH = [one["name"] for one in TRUTH]


class CongestionEnv(gymnasium.Env[Observation, Action]):
    """A connection in the simulator, whose window and pacing rate the agent decides.

    `scenario`: a file, or its text; of one with several cells each episode draws one, unless `options={"cell": …}` of
    `reset` names it. `flow`: the `[[flow]]`, by name or place, in which the agent takes the algorithm's place.
    `decide`: "ack", "round", or a time as "20ms". `observations`: names of `FIELDS`. `actions`: names of `CONTROLS`,
    or a dict of them with bounds; what lies outside counts as the bound. `reward`: a name of `REWARDS`. `scaled`:
    observations are from 0 to 1 and actions from -1 to 1, both by their logarithms; the action 0 multiplies by 1.

    The same seed, cell and actions give the same bytes. `info` has `TRUTH`, and after `reset` `cell` and `seed`.
    """

    def __init__(
        self,
        scenario: str | PathLike[str],
        *,
        flow: str | int = 0,
        decide: str = "round",
        observations: Sequence[str] = OBSERVATIONS,
        actions: Actions = ("snd_cwnd_factor",),
        reward: str = "power",
        scaled: bool = False,
        render_mode: None = None,
    ) -> None:
        self._task = Task(type(self).__name__, scenario, flow, decide, observations, actions, reward, scaled, None, 1)
        self.observation_space = self._task.observation_space
        self.action_space = self._task.action_space
        self.render_mode = render_mode
        self._ended: int | None = None
        self._goes_on = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        self._goes_on, self._ended = False, None
        seed = self._task.seed(seed)
        super().reset(seed=seed)
        cell, seed = self._task.draw(self.np_random, seed, options)
        batch = self._task.step(None, [(0, cell, seed)])
        self._goes_on = True
        return batch.seen[0], {**_info(batch), "cell": cell, "seed": seed}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if not self._goes_on:
            raise self._task.refuse_step(self._ended)
        batch = self._task.step(action)
        ended = int(batch.ended[0])
        self._ended, self._goes_on = ended, ended == 0
        return batch.seen[0], float(batch.rewards[0]), ended == 1, ended == 2, _info(batch)


def _info(batch: Batch) -> dict[str, Any]:
    return dict(zip(_TRUTH, batch.truth[0].tolist(), strict=True))
