"""The engine hosts: repetitions between two hosts of the user's, by a helper on each (`tcpknee.remote`).

One pair of helpers serves a whole run, one repetition after the other. A repetition measures the path without load,
compares the clocks, starts both ends at one instant, and fills the tables of what both said at its end. Where packets
are to be captured, a second pair, of root, copies them meanwhile.
"""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tcpknee import workloads
from tcpknee.algorithms import for_kernel, naming
from tcpknee.algorithms.building import Built
from tcpknee.errors import Cancelled, EngineError, KernelUnsupported, TcpkneeError, UsageError
from tcpknee.remote.helper import PATIENCE_SEC, SLOWEST_BYTES_PER_SEC, Clock, Helper, helpers, listen, lock
from tcpknee.remote.transport import LOCAL, source_towards

from . import tables
from .far_settings import HostSettings, names_the_receivers
from .job import Job
from .pair import Pair

_LEAD_NS = 300_000_000
"""From telling the hosts to start to the start: both must have heard by then."""

_NUMBERS = re.compile(r"\d+")

_EARLY_SEC = 0.5
"""How long the sender may go on when the receiver has seen all work done."""

_ROUND_TRIPS, _LEAST_ROUND_TRIPS, _ROUND_TRIPS_NS = 20, 5, 5_000_000_000
"""By which the path is measured, 32 bytes each way; on a long path fewer of them, in so much time."""

_ANSWER_SEC = 5.0
"""How long a helper waits for each answer of the other one (`PATIENCE` of `crates/remote/src/path.rs`)."""

_BURST_MS, _BURST_ROUND_TRIPS = 500, 15
"""How long data is sent to measure the rate: so long, and so many round trips, in which slow start ends."""

_BURST_BITS_PER_SEC, _BURST_MOST_BYTES = 1_000_000_000, 256_000_000
"""The rate that is expected where the scenario says none, and the most that is sent."""


class Hosts:
    """Runs repetitions of a scenario between the hosts of two helpers."""

    def __init__(
        self,
        job: Job,
        sender: Helper,
        receiver: Helper,
        pair: Pair,
        names: Mapping[str, Mapping[str, str]],
        capturing: Sequence[Helper] = (),
    ) -> None:
        """`names`: what each host calls the scenario's algorithms, by its role."""
        self.capturing = tuple(capturing)
        self.job, self.sender, self.receiver, self.pair, self.names = job, sender, receiver, pair, names
        self.cells = job.scenario.cells
        self.secret = list(secrets.token_bytes(16))
        self.block: int | None = None
        self.addresses = {
            "receiver": pair.address or _address_of(receiver, sender),
            "sender": _source(job, sender, receiver, pair.address) if pair.address else _address_of(sender, receiver),
        }
        _check_addresses(self.addresses, pair)
        self.host_settings = HostSettings(job, (sender, receiver), self.addresses, names)

    def run_cell(
        self, index: int, rep: int, *, cancel: Any = None, progress: Callable[[int], object] | None = None
    ) -> dict[str, pa.Table]:
        """The tables of one repetition. Raises `EngineError`, `Cancelled`."""
        where = f"{self.job.file}: cell {index}, repetition {rep}"
        try:
            return self._run_cell(index, rep, cancel, progress)
        except Cancelled:
            raise
        except TcpkneeError as error:
            raise type(error)(f"{where}: {error}") from None

    def _run_cell(
        self, index: int, rep: int, cancel: Any, progress: Callable[[int], object] | None
    ) -> dict[str, pa.Table]:
        pair = (self.sender, self.receiver)
        self.host_settings.prepare(index)
        listening = {one.role: self._prepare(one, index, rep) for one in pair}
        ports = {role: said["ports"] for role, said in listening.items()}
        if any([port is None for port in both].count(True) != 1 for both in zip(*ports.values(), strict=True)):
            raise EngineError(
                f"the hosts listen for other flows than the scenario's: {ports}; expected one of them for each."
            )
        servers = self._servers(listening["sender"]["servers"], index)
        far = {
            "sender": [self._far("receiver", port) for port in ports["receiver"]],
            "receiver": [self._far("sender", port) for port in ports["sender"]],
        }
        path = self._measure_path(far, index, rep)
        of_flows = [port for both in ports.values() for port in both if port is not None]
        devices = self._capture([*of_flows, *(port for of_group in servers for port in of_group)])
        before = {one.role: (one.compare_clocks(), one.ask("counters")) for one in pair}
        slowest_ns = max(clock.uncertainty_ns for clock, _ in before.values())
        start_ns = time.monotonic_ns() + _LEAD_NS + 4 * slowest_ns
        for one in reversed(pair):
            one.tell("start", at_ns=start_ns + before[one.role][0].offset_ns, far=far[one.role], servers=servers)
        done = self._hear_out(index, start_ns, cancel, progress)
        after = {one.role: (one.compare_clocks(), one.ask("counters")) for one in pair}
        said = [(json.dumps(done[one.role]["said"]), done[one.role]["records"]) for one in pair]
        captured = self._captured({role: start_ns + clock.offset_ns for role, (clock, _) in before.items()})
        try:
            output = self.job.scenario.between_hosts(index, rep, said[0], said[1], captured)
        except ValueError as error:
            raise EngineError(f"what a host said of its flows cannot be read: {error}.") from None
        found = tables.of_lab(output, self.cells[index]["samples"])
        of_programs = done["sender"]["said"]["connections"]
        flows = found["flows"].num_rows - len(of_programs)
        for one in pair:
            for name in ("progress", "reports"):
                if (got := len(done[one.role]["said"][name])) != flows:
                    raise EngineError(
                        f"{one.where}: done.{name}: got {got} flows; expected {flows}, as the scenario has."
                    )
        ran = done["sender"]["said"]["congestion"]
        ran |= {str(flow): one["congestion"] for flow, one in enumerate(of_programs, start=flows)}
        self._check_ran(ran, found["flows"].to_pylist())
        found["programs"], failures = self._programs(found["programs"], done)
        self.host_settings.check()
        measured, warnings = _measured(before, after, done, path), list(output.warnings)
        warnings += _doubts(measured)
        warnings += [
            f"{role}: listened at every address of the host, since {self.addresses[role]} is none of its own"
            for role, said in listening.items()
            if said["everywhere"]
        ]
        warnings += self._loaded(index)
        held = self.host_settings.held
        lab = {
            **{one.role: {**one.facts, "name": one.name, "counters": None, "settings": held(one.role)} for one in pair},
            "addresses": self.addresses,
            "measured": measured,
            **({"captured_of": devices} if devices else {}),
        }
        packets = sum(value or 0 for value in found["flows"]["data_segs_out"].to_pylist())
        return tables.with_note(
            found, {"data_packets": packets, "lab": lab, "warnings": warnings, "failures": failures}
        )

    def _loaded(self, index: int) -> list[str]:
        """Which algorithms of the cell's flows are builds that somebody loaded there."""
        files = {used.name for used in naming.used_by(self.job.scenario)}
        return [
            f'sender: {name} is "{called}" there; of which sources that was loaded, its name does not say'
            for name, (builtin, _, _, of_flow) in self.job.scenario.variants(index).items()
            if of_flow and ((called := self.names["sender"][name]) != builtin or name in files)
        ]

    def _servers(self, told: list[list[int]], index: int) -> list[list[int]]:
        """The ports of each `[[flow]]`'s server, as the sender's helper says."""
        groups = len(self.cells[index]["flows"])
        shown = {name: value for name, value, *_ in self.cells[index]["describe"]}
        if len(told) != groups:
            raise EngineError(
                f"{self.sender.where}: listening.servers: got {len(told)}; expected {groups}, one for each [[flow]]."
            )
        for group, ports in enumerate(told):
            command = shown.get(f"flow.{group}.server", "")
            for port in ports:
                # A host may say anything, and root captures packets of these on the other one.
                if port < 1024 and str(port) not in _NUMBERS.findall(command):
                    raise EngineError(
                        f"{self.sender.where}: flow.{group}.server listens at port {port}, which is one of root's and "
                        "which its command does not name; expected one from 1024 on, or a command with that number."
                    )
        return told

    def _programs(self, rows: pa.Table, done: Mapping[str, Mapping[str, Any]]) -> tuple[pa.Table, list[str]]:
        """The table with what clients printed about themselves, and how some failed; what they printed is kept."""
        from . import programs

        with ExitStack() as stack:
            folder = self.job.output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tcpknee-")))
            said = [one for role in ("sender", "receiver") for one in done[role]["said"]["programs"]]
            printed = {(one["group"], one["role"]): one["printed"] for one in said}
            for row in rows.to_pylist():
                programs.keep(folder, row["output"], printed[row["group"], row["role"]])
            return programs.read(rows, folder)

    def _capture(self, ports: Sequence[int]) -> dict[str, str]:
        """Begins to copy the packets of these ports; returns the device of each host."""
        other = {"sender": "receiver", "receiver": "sender"}
        room = self.job.capture_bytes
        return {
            one.role: one.ask("capture", towards=self.addresses[other[one.role]], ports=list(ports), room_bytes=room)
            for one in self.capturing
        }

    def _captured(self, at_ns: Mapping[str, int]) -> tuple[bytes, bytes] | None:
        """What the sender and the receiver copied, with times that begin at that instant of each host's clock."""
        if not self.capturing:
            return None
        patience_sec = PATIENCE_SEC + self.job.capture_bytes / SLOWEST_BYTES_PER_SEC
        sender, receiver = (
            one.ask("captured", patience_sec=patience_sec, at_ns=at_ns[one.role])["records"] for one in self.capturing
        )
        return sender, receiver

    def _prepare(self, one: Helper, index: int, rep: int) -> dict[str, Any]:
        """Where it listens: the port of each `[[flow]]`, and whether at every address of its."""
        listening: dict[str, Any] = one.ask(
            "prepare",
            cell=self.job.scenario.write_cell(index),
            names=self.job.scenario.names,
            files=self.job.scenario.algorithm_files,
            rep=rep,
            side=one.role,
            secret=self.secret,
            algorithms=self._called(one.role, index),
            port=self.pair.port,
            own=self.addresses[one.role],
            other=self.addresses[{"sender": "receiver", "receiver": "sender"}[one.role]],
        )
        ports = listening["ports"]
        if len(ports) != (groups := len(self.cells[index]["flows"])):
            raise EngineError(
                f"{one.where}: listening: got {len(ports)} ports; expected {groups}, one for each [[flow]]."
            )
        for group, port in enumerate(ports):
            if port is not None and not (port == self.pair.port + group if self.pair.port else 1024 <= port < 1 << 16):
                expected = f"port {self.pair.port + group}" if self.pair.port else "one from 1024 to 65535"
                raise EngineError(f"{one.where}: listens at port {port}; expected {expected}, which it was told.")
        return listening

    def _called(self, role: str, index: int) -> Mapping[str, str]:
        """What sockets of that host are given for each algorithm; a receiver of which the file says nothing keeps its
        own."""
        if role == "sender" or self.host_settings.receiver_says:
            return self.names[role]
        shown = {name: value for name, value, *_ in self.cells[index]["describe"]}
        return {**self.names[role], shown["receiver.algorithm"]: self.host_settings.default(role)}

    def _check_ran(self, ran: Mapping[str, str], flows: Sequence[Mapping[str, Any]]) -> None:
        """Refuses figures of another algorithm than was asked for: a route's comes before a socket's."""
        for flow in flows:
            asked, got = self.names["sender"][flow["algorithm"]], ran.get(str(flow["flow"]))
            if got and got != asked:
                raise EngineError(
                    f'{self.sender.where}: flow.{flow["group"]}.algorithm = "{flow["algorithm"]}": the connection ran '
                    f'"{got}", which a route of that host sets before any socket (`ip route show`, congctl). Take it '
                    "out of the route, or compare what the route sets."
                )

    def _far(self, role: str, port: int | None) -> str | None:
        """Where the far end listens, as Rust writes addresses."""
        address = self.addresses[role]
        return None if port is None else f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def _measure_path(self, far: Mapping[str, Sequence[str | None]], index: int, rep: int) -> dict[str, Any]:
        """The path without load; in the first repetition of a block its rate as well."""
        one = next(one for one in (self.sender, self.receiver) if any(far[one.role]))
        rtt_ns = self.cells[index]["rtt_ns"]
        count = min(_ROUND_TRIPS, max(_LEAST_ROUND_TRIPS, _ROUND_TRIPS_NS // max(rtt_ns, 1)))
        words: dict[str, Any] = {"far": next(filter(None, far[one.role])), "secret": self.secret, "count": count}
        burst_bytes = burst_ms = 0
        if rep != self.block and one is self.sender:
            self.block = rep
            burst_ms = max(_BURST_MS, _BURST_ROUND_TRIPS * rtt_ns // 1_000_000)
            rate = self.cells[index]["rate_bits_per_sec"] or _BURST_BITS_PER_SEC
            burst_bytes = min(rate * burst_ms // 8_000, _BURST_MOST_BYTES)
        # Two connections, round trips that may be longer than the scenario says, and the end of the burst.
        patience_sec = PATIENCE_SEC + (count + 2) * _ANSWER_SEC + burst_ms / 1000 + 4 * _ANSWER_SEC
        words |= {"bytes": burst_bytes, "milliseconds": burst_ms}
        try:
            measured: dict[str, Any] = one.ask("path", patience_sec=patience_sec, **words)
        except EngineError:
            (self.receiver if one is self.sender else self.sender).look_for_its_end()
            raise
        return measured

    def _hear_out(
        self, index: int, start_ns: int, cancel: Any, progress: Callable[[int], object] | None
    ) -> dict[str, dict[str, Any]]:
        """What both said at the end. Until then they say nothing, since that might go over the path."""
        over: dict[str, float] = {}
        done: dict[str, dict[str, Any]] = {}
        pair = (self.sender, self.receiver)
        stopped = False
        last_ns = start_ns + self.cells[index]["duration_ns"] + round(PATIENCE_SEC * 1e9)

        def take(one: Helper, said: dict[str, Any]) -> bool:
            if "over" in said:
                over[one.role] = time.monotonic()
            elif "done" in said:
                records = said["done"].pop("records")
                done[one.role] = {"said": said["done"], "records": records}
            return len(done) == len(pair)

        def stop() -> bool:
            nonlocal stopped
            if progress is not None:
                progress(max(0, time.monotonic_ns() - start_ns))
            early = "receiver" in over and time.monotonic() - over["receiver"] > _EARLY_SEC
            if not stopped and (len(over) == len(pair) or early):
                stopped = True
                for one in pair:
                    one.tell("stop")
            if time.monotonic_ns() > last_ns:
                for one in pair:
                    if one.role not in done and not one.is_delivering:
                        raise one.late(PATIENCE_SEC)
            return cancel is not None and bool(cancel.cancelled)

        listen(pair, take, stop)
        if len(done) < len(pair):
            for one in pair:
                one.tell("stop")
            raise Cancelled("the repetition was cancelled before its end")
        return done


@contextmanager
def engine(job: Job) -> Iterator[Hosts]:
    """The engine for a job, with a helper on each host until the end. Raises `EngineError`, `KernelUnsupported`."""
    assert job.pair is not None
    try:
        job.scenario.check_hosts()
    except EngineError as error:
        raise type(error)(f"{job.file}: {error}") from None
    runs_programs = any(map(workloads.of_programs, job.scenario.cells))
    if runs_programs and not job.pair.programs:
        raise UsageError(
            f'{job.file}: flow.workload: got "programs" with the engine hosts; expected --allow-programs as well, by '
            "which they run on both hosts, as the user of the connection."
        )
    with ExitStack() as stack:
        sender, receiver = stack.enter_context(helpers(job.pair.sender, job.pair.receiver))
        lock((sender, receiver))
        names = {one.role: _names(one, job) for one in (sender, receiver)}
        if runs_programs:
            _check_user(job, (sender, receiver))
        capturing: Sequence[Helper] = ()
        if job.capture_bytes:
            capturing = stack.enter_context(helpers(job.pair.sender, job.pair.receiver, as_root=True))
        hosts = Hosts(job, sender, receiver, job.pair, names, capturing)
        with hosts.host_settings:
            yield hosts


def _names(one: Helper, job: Job) -> dict[str, str]:
    """What that host calls each algorithm of the scenario: its kernel's own build, or ours where `knee load` has put it
    and the kernel has none; of a file what it is called once it is loaded. Refuses what a host does not have where it
    is to run."""
    files = {used.name: used.built for used in naming.used_by(job.scenario)}
    found: dict[str, str] = {}
    by_flows: dict[str, str] = {}
    runs_here = one.role == "sender" or names_the_receivers(job)
    for index in range(len(job.scenario.cells)):
        for name, (builtin, ours, _, of_flow) in job.scenario.variants(index).items():
            if built := files.get(name):
                found[name] = _loaded_as(built)
            else:
                available = one.facts["available"]
                found[name] = ours if builtin not in available and ours in available else builtin
            if runs_here and one.role == ("sender" if of_flow else "receiver"):
                key = "flow.algorithm" if of_flow else "receiver.algorithm"
                _check_algorithm(one, found[name], key, built.path if built else name)
            if of_flow and by_flows.setdefault(found[name], name) != name:
                raise UsageError(
                    f"{job.file}: flow.algorithm: got {by_flows[found[name]]} and {name}, which are both "
                    f'"{found[name]}" in a kernel; expected one of them.'
                )
    return found


def _loaded_as(built: Built) -> str:
    """What a kernel calls the algorithm of a file: a module as it says, and what `knee load` loaded as that does."""
    if built.kind == "kernel":
        return built.name
    return for_kernel.kernel_name(naming.Named(built, built.name))


def _check_algorithm(one: Helper, called: str, key: str, name: str) -> None:
    """Refuses what the host does not have, or keeps for root. `name`: as `knee load` takes it."""
    available, allowed = one.facts["available"], one.facts["allowed"]
    # Root has the kernel load its modules as a socket asks for them.
    if called not in available and (one.facts["uid"] != 0 or called.startswith("knee_")):
        module = f"modprobe tcp_{called}, or " if not called.startswith("knee_") else ""
        raise KernelUnsupported(
            f'{one.where}: {key} = "{name}": the kernel {one.facts["kernel"]} there has no "{called}" loaded; '
            f"it has {', '.join(available)}. Load it there as root: {module}knee load {name}."
        )
    if called in available and called not in allowed and one.facts["uid"] != 0:
        raise KernelUnsupported(
            f'{one.where}: {key} = "{name}": the host keeps "{called}" for root; any user may choose '
            f"{', '.join(allowed)}. Allow it there as root: sysctl -w "
            f'net.ipv4.tcp_allowed_congestion_control="{" ".join((*allowed, called))}".'
        )


def _check_user(job: Job, pair: Sequence[Helper]) -> None:
    """A file's commands run as root only where that is asked for."""
    for one in pair:
        if one.facts["uid"] == 0 and not job.programs_as_root:
            raise UsageError(
                f"{one.where}: this run comes there as root, and so would programs of {job.file}; expected another "
                "user, as in me@host. To run them as root, give --programs-as-root."
            )


def _address_of(one: Helper, other: Helper) -> str:
    """By which the other host reaches it: as ssh did, or as it came here by ssh."""
    if one.name != LOCAL:
        ssh = one.facts["ssh"]
        if ssh:
            return str(ssh[1])
    elif other.name == LOCAL:
        return "127.0.0.1"
    elif other.facts["ssh"]:
        return str(other.facts["ssh"][0])
    raise EngineError(f"{one.where}: ssh does not say by which address it is reached; name it with --address.")


def _source(job: Job, sender: Helper, receiver: Helper, address: str) -> str:
    """By which the receiver reaches the sender, where the receiver's `address` is named: that may be of another network
    than that of ssh."""
    source = source_towards(sender.name, address)
    ssh = receiver.facts["ssh"]
    if source and sender.name == LOCAL and ssh and source == source_towards(LOCAL, ssh[1]):
        # The network of ssh, over which addresses may be translated: it told the one that arrives.
        return _address_of(sender, receiver)
    if source is None and (needs := _needs_of_source(job)):
        raise EngineError(
            f"{sender.where}: does not say by which of its addresses it reaches {address} of --address; expected an "
            f"answer to `ip route get {address}` there. {needs}, and the one by which ssh came may be of another "
            "network. Install iproute2 there, or leave --address out and give both hosts their addresses of that "
            "network in ~/.ssh/config (HostName)."
        )
    return source or _address_of(sender, receiver)


def _needs_of_source(job: Job) -> str:
    """What goes by the sender's address; none where all connections go to the receiver's."""
    counts = {workloads.of(flow["workload"])["counts"] for cell in job.scenario.cells for flow in cell["flows"]}
    if "requests" in counts:
        return 'The receiver\'s host connects to it with workload = "request-response"'
    if "programs" in counts:
        return "Programs get this address and connect to it"
    if job.capture_bytes:
        return "The receiver's packets are captured at the device towards it"
    if job.allow_host_settings or (job.pair and job.pair.netem):
        return "What is set of the receiver's device follows from it"
    return ""


def _check_addresses(addresses: Mapping[str, str], pair: Pair) -> None:
    """Refuses what no other host is reached by: a host says itself where the other one connects to."""
    if pair.sender == pair.receiver == LOCAL or (pair.address and ipaddress.ip_address(pair.address).is_loopback):
        return
    for role, name in (("receiver", pair.receiver), ("sender", pair.sender)):
        address = addresses[role]
        if role == "receiver" and pair.address:
            continue
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            found = None
        found = getattr(found, "ipv4_mapped", None) or found
        # An address of one link alone means nothing without its device.
        refused = not found or found.is_loopback or found.is_multicast or found.is_unspecified or found.is_link_local
        if refused or str(found) == _BROADCAST:
            raise EngineError(
                f"{role} {name}: got {address[:60]!r} as its address; expected one by which another host reaches it. "
                "Name the receiver's with --address."
            )


_BROADCAST = "255.255.255.255"


def _measured(
    before: Mapping[str, tuple[Clock, Mapping[str, int]]],
    after: Mapping[str, tuple[Clock, Mapping[str, int]]],
    done: Mapping[str, Mapping[str, Any]],
    path: Mapping[str, Any],
) -> dict[str, float]:
    """Numbers of a repetition for `run.json`."""
    found: dict[str, float] = {}
    for role, (clock, counted) in before.items():
        last, now = after[role]
        found[f"{role}_clock_uncertainty_us"] = max(clock.uncertainty_ns, last.uncertainty_ns) / 1e3
        found[f"{role}_clock_drift_us"] = (last.offset_ns - clock.offset_ns) / 1e3
        found[f"{role}_calendar_off_ms"] = last.calendar_ns / 1e6
        found[f"{role}_samples"] = float(done[role]["said"]["samples"])
        found[f"{role}_samples_missed"] = float(done[role]["said"]["missed"])
        for name, value in now.items():
            found[f"{role}_{name}"] = float(value - counted.get(name, 0))
    if path:
        found["path_rtt_us_least"] = path["rtt_us_least"]
        found["path_rtt_us_median"] = path["rtt_us_median"]
        found["path_bytes"] = float(path["bytes"])
        for name in ("rate_bits_per_sec", "retransmit_pct"):
            if path[name] is not None:
                found[f"path_{name}"] = path[name]
    return found


def _doubts(measured: Mapping[str, float]) -> list[str]:
    """What makes a repetition's figures doubtful."""
    found = []
    for role in ("sender", "receiver"):
        if measured[f"{role}_samples_missed"] * 20 > measured[f"{role}_samples"]:
            found.append(f"{role}: {measured[f'{role}_samples_missed']:.0f} samples could not be taken in time")
        if measured.get(f"{role}_softnet_dropped"):
            found.append(
                f"{role}: the host dropped {measured[f'{role}_softnet_dropped']:.0f} packets before TCP saw them"
            )
    return found
