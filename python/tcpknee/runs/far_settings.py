"""Settings of the two hosts of the engine hosts: what the scenario says of them and what they are; with
`allow_host_settings` set for the time of the run, with `netem` a path of their own making; and looked at before and
after. What came of it stands in `told` of the job, which `run.json` keeps of the session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tcpknee import host_files, reading, workloads
from tcpknee.errors import EngineError, UsageError
from tcpknee.remote import holding, settings
from tcpknee.remote.helper import Helper
from tcpknee.remote.transport import LOCAL, addresses_of

from .job import Job

_SPARE_SEC = 600
"""A host puts everything back by itself so long after the run should have been over, ten times over."""

_MOST_SEC = 7 * 86_400


def names_the_receivers(job: Job) -> bool:
    """Whether the file has a `receiver.algorithm`, which all of its cells have then."""
    scenario = reading.toml(json.loads(job.scenario.write_cell(0))["scenario"])
    return "algorithm" in scenario.get("receiver", {})


class HostSettings:
    """A context manager: settings are held within it."""

    def __init__(
        self,
        job: Job,
        pair: Sequence[Helper],
        addresses: Mapping[str, str],
        names: Mapping[str, Mapping[str, str]],
    ) -> None:
        """`names`: what each host calls the scenario's algorithms, by its role."""
        self.job, self.names = job, names
        self.receiver_says = names_the_receivers(job)
        self.pair = {one.role: one for one in pair}
        self.towards = {"sender": addresses["receiver"], "receiver": addresses["sender"]}
        self._stack, self._path = ExitStack(), ExitStack()
        self._holders: dict[str, holding.Holder] = {}
        self._of_cell: dict[str, holding.Holder] = {}
        self._set_for_cell: dict[str, list[settings.Setting]] = {}
        self._windows: dict[str, settings.Setting] = {}
        """Routes with an initial window, of a run in which routes give programs their congestion control: a host has
        one route to the other."""
        self._warnings: list[str] = []
        self._before: dict[str, str] = {}
        self._may_differ = False
        """Something was to be set, whether or not it came to that."""

    def __enter__(self) -> HostSettings:
        job, cells = self.job, self.job.scenario.cells
        texts = [job.scenario.write_cell(index) for index in range(len(cells))]
        given = settings.given(cells, texts, job.file)
        self._before = self._look()
        told: dict[str, dict[str, Any]] = {
            role: {"settings": text, "files": self.pair[role].ask("recorded")} for role, text in self._before.items()
        }
        for role, one_told in told.items():
            if why := host_files.mistake(one_told["files"]["files"]):
                raise EngineError(f"{self.pair[role].where}: the files that it sent of itself: {why}.")
        asked: dict[str, list[settings.Setting]] = {}
        for role, one in given.items():
            asked[role], left = settings.wanted(one, self._before[role], self.towards[role])
            if job.allow_host_settings:
                told[role]["differs"] = [f"{role}: {key} of the scenario: the host has its own" for key in left]
            else:
                told[role]["differs"] = settings.differences(one, self._before[role], self.towards[role])
        for index in range(len(cells)):
            self._check_congestion(index, told)
        if any(map(workloads.of_programs, cells)):
            for role, every in asked.items():
                for route in [setting for setting in every if setting["kind"] == "route"]:
                    self._windows[role] = route
                    every.remove(route)
        assert job.pair is not None
        if job.pair.netem:
            if job.allow_host_settings and any(one["kind"] == "qdisc" for all_ in asked.values() for one in all_):
                raise UsageError(
                    f'{job.file}: got pacing = "fq" or a qdisc of a host together with --netem, which takes its place; '
                    "expected one of them."
                )
            for index in range(len(cells)):
                self.netem(index)
        if job.pair.netem or job.allow_host_settings:
            self._check_towards(asked)
        job.told.update(told)
        try:
            if job.allow_host_settings:
                self._may_differ = True
                names = {role: one.name for role, one in self.pair.items()}
                entered = holding.held(names, asked, self._deadline_sec(), self._warnings)
                self._holders = self._stack.enter_context(entered)
                for role, holder in self._holders.items():
                    told[role]["held"] = _with_routes(holder.held, asked[role])
        except BaseException:
            self.__exit__()
            raise
        return self

    def _check_towards(self, asked: Mapping[str, Sequence[settings.Setting]]) -> None:
        """Refuses an address that only its host tells: the other one's device that root changes is found by it. The
        address of this machine, which is of the other host's telling, decides on that host itself."""
        assert self.job.pair is not None
        every = [asked, *map(self._wanted, range(len(self.job.scenario.cells)))]
        for role, other in (("receiver", "sender"), ("sender", "receiver")):
            name, address = self.pair[role].name, self.towards[other]
            if name == LOCAL or (role == "receiver" and self.job.pair.address):
                continue
            if not any("towards" in one for wanted in every for one in wanted.get(other, ())):
                continue
            by_ssh = addresses_of(name)
            if address not in by_ssh:
                named = "name it with --address" if role == "receiver" else f"HostName {address} in ~/.ssh/config"
                raise EngineError(
                    f"{role} {name}: says that its address is {address}, and ssh knows "
                    f"{', '.join(sorted(by_ssh)) or 'none'}. The {other}'s device that root is to change follows "
                    f"from it, so a host is not believed there. If it is right, {named}."
                )

    def __exit__(self, *_: object) -> None:
        try:
            self._path.close()
        finally:
            self._stack.close()
        for role, before in self._before.items() if self._may_differ else ():
            changed = self._changed(role, before)
            self.job.told[role]["as_before"] = not changed
            if changed:
                where = self.pair[role].where
                self._warnings.append(f"{where}: settings are not as they were before the run: {'; '.join(changed)}")
        self.job.told["warnings"] = self._warnings

    def _changed(self, role: str, before: str) -> list[str]:
        """What of a host is not as it was. Its helper may be what ended the run: another one looks."""
        one = self.pair[role]
        with ExitStack() as stack:
            try:
                again = Helper(role, one.name)
                stack.callback(again.close)
                return settings.compared(before, again.ask("settings", towards=self.towards[role]))
            except EngineError as error:
                return [f"they could not be read ({error})"]

    def _look(self, *roles: str) -> dict[str, str]:
        return {role: self.pair[role].ask("settings", towards=self.towards[role]) for role in roles or self.pair}

    def _deadline_sec(self) -> int:
        cells = self.job.scenario.cells
        block_sec: float = sum(cell["duration_ns"] for cell in cells) / 1e9 + self.job.ending.pause_sec
        return min(round(10 * block_sec * self.job.scenario.repeat) + _SPARE_SEC, _MOST_SEC)

    def _congestion(self, index: int) -> dict[str, str]:
        """What programs are to run in a cell, as the kernel calls it; of the receiver's where the file says so."""
        cell = self.job.scenario.cells[index]
        named = {flow["algorithm"]: self.names["sender"][flow["algorithm"]] for flow in workloads.of_programs(cell)}
        if len(named) > 1:
            raise UsageError(
                f"{self.job.file}: flow.algorithm: got {' and '.join(named)} of programs beside each other; expected "
                "one with the engine hosts, as a host has one for all programs."
            )
        if not named:
            return {}
        found = {"sender": next(iter(named.values()))}
        if self.receiver_says:
            written = {name: value for name, value, *_ in cell["describe"]}["receiver.algorithm"]
            found["receiver"] = self.names["receiver"].get(written, written)
        return found

    def _check_congestion(self, index: int, told: Mapping[str, dict[str, Any]]) -> None:
        """Programs choose no congestion control: refuses what the sender does not give them anyway, where nothing may
        be set; notes what the receiver gives them."""
        if self.job.allow_host_settings:
            return
        for role, wanted in self._congestion(index).items():
            there = self.default(role)
            if there == wanted:
                continue
            if role == "sender":
                raise UsageError(
                    f"{self.job.file}: flow.algorithm: got {wanted} for programs; expected {there}, which is what "
                    f"{self.pair[role].where} gives them. With --allow-host-settings a route to the other host gives "
                    "them another, for the time of the run."
                )
            differs = f"{role}: programs run {there}, and receiver.algorithm is {wanted}"
            told[role]["differs"] = [*dict.fromkeys([*told[role]["differs"], differs])]

    def default(self, role: str) -> str:
        """The congestion control that a host gives sockets which choose none."""
        return settings.sysctls_of(self._before[role]).get("net.ipv4.tcp_congestion_control", "not known")

    def _wanted(self, index: int) -> dict[str, list[settings.Setting]]:
        """What is set on the hosts for one cell."""
        assert self.job.pair is not None
        found: dict[str, list[settings.Setting]] = {}
        if self.job.pair.netem:
            found = {role: [one] for role, one in self.netem(index).items()}
        if self.job.allow_host_settings:
            congestion = self._congestion(index)
            for role in self.pair:
                called = congestion.get(role, self.default(role))
                given = {"congctl": called} if called != self.default(role) else {}
                if route := {**self._windows.get(role, {}), **given}:
                    found.setdefault(role, []).append({"kind": "route", "towards": self.towards[role], **route})
        return found

    def netem(self, index: int) -> dict[str, settings.Setting]:
        """What makes the path of a cell. Raises `UsageError`."""
        cell = self.job.scenario.cells[index]
        return settings.netem(cell, self.towards["sender"], self.towards["receiver"], self.job.file)

    def prepare(self, index: int) -> None:
        """Sets what is of one cell: the path where the hosts make it, and what programs run. Raises `EngineError`."""
        wanted = self._wanted(index)
        if wanted == self._set_for_cell:
            return
        self._path.close()
        self._of_cell, self._set_for_cell = {}, {}
        self._may_differ = True
        names = {role: one.name for role, one in self.pair.items()}
        entered = holding.held(names, wanted, self._deadline_sec(), self._warnings)
        self._of_cell = self._path.enter_context(entered)
        self._set_for_cell = wanted
        for role, holder in self._of_cell.items():
            known = self.job.told[role].setdefault("of_cells", [])
            known += [one for one in _with_routes(holder.held, wanted[role]) if one not in known]

    def held(self, role: str) -> list[dict[str, str]]:
        """What is set on a host now, with what was there."""
        holders = (self._holders.get(role), self._of_cell.get(role))
        return [one for holder in holders if holder is not None for one in holder.held]

    def check(self) -> None:
        """Raises `EngineError` where a host has put its settings back by itself, so that what was measured is not of
        them."""
        for holder in (*self._holders.values(), *self._of_cell.values()):
            holder.check()


def _with_routes(held: Sequence[Mapping[str, str]], wanted: Sequence[settings.Setting]) -> list[dict[str, str]]:
    """What is set, with what a route gives."""
    gives = {
        f"route to {one['towards']}": [f"{name} {one[name]}" for name in ("initcwnd", "congctl") if name in one]
        for one in wanted
        if one["kind"] == "route"
    }
    return [
        {**one, "is": f"{one['is']} with {' and '.join(gives[one['setting']])}"} if one["setting"] in gives else {**one}
        for one in held
    ]
