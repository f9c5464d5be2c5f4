"""Many environments that go on together, on threads of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tcpknee.errors import UsageError

from .task import OBSERVATIONS, TRUTH, Action, Actions, Batch, Observation, Task


class CongestionVectorEnv(VectorEnv[Observation, Action, npt.NDArray[Any]]):
    """`num_envs` environments of one task, each as a `CongestionEnv` of those arguments with its own seed. They are
    stepped without the GIL, on as many threads as there are processors, or on `threads`.

    One that has ended begins its next episode with the next step, whose action it does not take (gymnasium's
    `AutoresetMode.NEXT_STEP`).
    """

    def __init__(
        self,
        num_envs: int,
        scenario: str | PathLike[str],
        *,
        flow: str | int = 0,
        decide: str = "round",
        observations: Sequence[str] = OBSERVATIONS,
        actions: Actions = ("snd_cwnd_factor",),
        reward: str = "power",
        scaled: bool = False,
        threads: int | None = None,
        render_mode: None = None,
    ) -> None:
        who = type(self).__name__
        threads = len(os.sched_getaffinity(0)) if threads is None else threads
        for name, number in (("num_envs", num_envs), ("threads", threads)):
            if not 1 <= number <= 100_000:
                raise UsageError(f"{who}: {name}: got {number!r}; expected a number from 1 to 100000.")
        threads = min(threads, num_envs)
        self._task = Task(who, scenario, flow, decide, observations, actions, reward, scaled, num_envs, threads)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = self._task.observation_space
        self.single_action_space = self._task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._draws = [seeding.np_random()[0] for _ in range(num_envs)]
        self._ended: npt.NDArray[np.uint8] | None = None

    def reset(
        self,
        *,
        seed: int | np.integer[Any] | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """`seed`: one for each, or one of which each next environment has the next number."""
        self._ended = None
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + place for place in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else [self._task.seed(one) for one in seed]
        if len(seeds) != self.num_envs:
            raise UsageError(
                f"{type(self).__name__}.reset: got {len(seeds)} seeds; expected one for each of {self.num_envs} "
                "environments, or one number."
            )
        for place, one in enumerate(seeds):
            if one is not None:
                self._draws[place] = seeding.np_random(one)[0]
        begun = [(place, *self._task.draw(self._draws[place], one, options)) for place, one in enumerate(seeds)]
        batch = self._task.step(None, begun)
        self._ended = batch.ended
        return batch.seen, self._infos(batch, begun)

    def step(
        self, actions: Action
    ) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        if self._ended is None:
            raise self._task.refuse_step(None)
        begun = [
            (int(place), *self._task.draw(self._draws[place], None, None)) for place in np.flatnonzero(self._ended)
        ]
        batch = self._task.step(actions, begun)
        self._ended = batch.ended
        return batch.seen, batch.rewards, batch.ended == 1, batch.ended == 2, self._infos(batch, begun)

    def _infos(self, batch: Batch, begun: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
        """As gymnasium has them: an array of each, and which environments it is of."""
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        for column, one in enumerate(TRUTH):
            infos |= {one["name"]: batch.truth[:, column], f"_{one['name']}": everyone}
        if begun:
            places = [place for place, *_ in begun]
            fresh = np.zeros(self.num_envs, dtype=np.bool_)
            fresh[places] = True
            for column, name in enumerate(("cell", "seed"), start=1):
                values = np.zeros(self.num_envs, dtype=np.uint64)
                values[places] = [one[column] for one in begun]
                infos |= {name: values, f"_{name}": fresh}
        return infos
