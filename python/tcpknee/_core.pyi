"""The native module: the scenario parser and the simulator, with Arrow out. Conversions only; see `crates/py`."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from pathlib import Path
from typing import Any, Final

class Cancel:
    """A flag shared with running repetitions; once set they stop with `tcpknee.errors.Cancelled`."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    cancelled: Final[bool]

class Algorithm:
    """One connection's copy of an algorithm, whose ops are called one by one. Raises `UsageError`."""

    def __init__(self, name: str) -> None: ...
    def call(self, op: str, given: Mapping[str, int]) -> dict[str, int]:
        """Sets the fields of `struct cc_in` (`cc/cc.h`) that are given, the others stay, and calls an op, which Linux
        names: `pacing_rate snd_cwnd snd_cwnd_cnt snd_ssthresh ret` after it. An op that the algorithm lacks changes
        nothing."""

class ArrowTable:
    """A table of one repetition. Every field's metadata has `unit`, `doc` and `source`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

class ArrowBatches:
    """A table in several batches. Every field's metadata has `unit`, `doc` and `source`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

class SegmentWriter:
    """Writes a table into one Parquet file of a folder, TABLE-000001.parquet, such that readers find what a killed
    process left: all but the last `group_ms`.

    `like` has the columns; its rows are not written. `distinct`: columns whose texts hardly repeat. Methods raise
    `RunFolderError`; what had been written is in a whole file then.
    """

    def __init__(
        self, folder: Path, table: str, like: ArrowTable, group_ms: int, distinct: list[str] = ...
    ) -> None: ...
    def write(self, rows: ArrowTable) -> None:
        """Appends rows; none: what is old enough is still made safe."""

    def finish(self) -> Path:
        """The file, which is whole now. After an error there may be none, which is an error too."""

class Output:
    """What one repetition of one cell produced."""

    @property
    def flows(self) -> ArrowTable: ...
    @property
    def samples(self) -> ArrowTable: ...
    @property
    def queue(self) -> ArrowTable: ...
    @property
    def events(self) -> ArrowTable: ...
    @property
    def cpu_time(self) -> ArrowTable: ...
    @property
    def host_costs(self) -> ArrowTable: ...
    @property
    def data_packets(self) -> int:
        """Data packets that entered the path."""

    def write_pcapng(self, path: str | PathLike[str], *, payload: bool = False) -> None:
        """Writes the packets captured, headers only unless `payload`; `EngineError` without `capture=True`."""

class LabOutput:
    """What one repetition of one cell produced on the kernel."""

    flows: Final[ArrowTable]
    samples: Final[ArrowTable]
    @property
    def tcp_info(self) -> ArrowTable:
        """Further columns of `samples`, row by row beside it."""

    queue: Final[ArrowTable]
    events: Final[ArrowTable]
    cpu_time: Final[ArrowTable]
    links: Final[ArrowTable]
    programs: Final[ArrowTable]
    host_costs: Final[ArrowTable]
    stacks: Final[ArrowTable]
    @property
    def data_packets(self) -> int:
        """Data packets that entered the path."""

    @property
    def facts(self) -> str:
        """What the lab was, as a JSON object."""

    @property
    def warnings(self) -> list[str]:
        """What makes the figures doubtful."""

class LoneCell:
    """A cell by itself, as `Scenario.write_cell` wrote it."""

    @property
    def facts(self) -> dict[str, Any]:
        """As an element of `Scenario.cells`."""

    def run(
        self,
        rep: int,
        *,
        capture: bool = False,
        cancel: Cancel | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Output:
        """As `Scenario.run_cell`."""

def read_cell(text: str, file: str, algorithms: Sequence[tuple[str, str, str]] = ...) -> LoneCell:
    """Reads what `Scenario.write_cell` wrote; `file` stands in errors, and `algorithms` is as for `parse`. Raises
    `UsageError`."""

class Scenario:
    """A scenario file, read and checked."""

    title: Final[str]
    claim: Final[str | None]
    repeat: Final[int]
    seed: Final[int]
    @property
    def cells(self) -> Sequence[dict[str, Any]]:
        """One dict per cell, in the order of the matrix, each made when it is asked for, of plain Python values:

        `index` int · `hash` str, what an engine is given · `axes` list of (key, value) · `describe` list of (key,
        value, doc) · `duration_ns` `warmup_ns` int · `rate_bits_per_sec` int or None (unlimited) · `rtt_ns` int ·
        `is_random` bool · `bdp_bytes` int or None · `buffer_bytes` int or None · `buffer_pkts` int or None · `flows`
        list of dicts `group` `name` `algorithm` `workload` `count` · `kernel` str or None.
        """

    def without_effect(self, index: int, engine: str) -> list[str]:
        """A sentence for each reason why something that the file sets for that cell has no effect in that engine."""

    @property
    def files(self) -> dict[str, str]:
        """The text of each file that the scenario names, by its path."""

    @property
    def algorithm_files(self) -> list[tuple[str, str, str]]:
        """(path, name, digest) of each file whose algorithm it names."""

    @property
    def renamed(self) -> dict[str, str]:
        """Algorithms that the scenario calls by Linux's name: that, and ours."""

    @property
    def expects(self) -> list[tuple[str, int]]:
        """(`assert`, line in the file) of each `[[expect]]`."""

    @property
    def published(self) -> list[tuple[str, str, str, int]]:
        """(`value`, `figure`, `source`, line of `value` in the file) of each `[[published]]`."""

    def rate_trace(self, index: int) -> str | None:
        """The bottleneck of a cell in mahimahi's format: one turn of its trace, or as long as the run where its rate
        stays; None where it has no limit, or one too small for a packet."""

    def write_cell(self, index: int) -> str:
        """One cell with the files that it needs, as JSON: `read_cell` reads it, in another process as well."""

    def run_cell(
        self,
        index: int,
        rep: int,
        *,
        capture: bool = False,
        cancel: Cancel | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Output:
        """Simulates one repetition without the GIL.

        `progress` is called now and then with the virtual time reached, in ns. Raises `Cancelled`, `EngineError`.
        """

    def run_cell_into(
        self,
        part: Part,
        index: int,
        rep: int,
        *,
        cancel: Cancel | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """The same with the rows written to a part while it runs, which is not kept yet; returns the data packets that
        entered the path. Raises also OSError, RunFolderError."""

    def run_late(
        self,
        index: int,
        rep: int,
        noise_ns: int,
        *,
        cancel: Cancel | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> ArrowTable:
        """The flows of one repetition with that noise at both hosts; no other rows are gathered."""

    def variants(self, index: int) -> dict[str, tuple[str, str, dict[str, int], bool]]:
        """Each algorithm of a cell, by its name with the parameters that are set: what Linux calls its own build
        and what ours, its parameters but those that are a rule of the cell's kernel, and whether a flow has it, and not
        the far ends alone."""

    def check_lab(self) -> dict[str, int]:
        """Refuses what this machine cannot do, as far as that is known before a lab is made; returns the sysctls of the
        whole machine that the cells need, each with its value. Raises `KernelUnsupported`, `EngineError`."""

    def check_hosts(self) -> None:
        """Refuses what two hosts of the user's cannot be asked. Raises `KernelUnsupported`."""

    def between_hosts(
        self,
        index: int,
        rep: int,
        sender: tuple[str, bytes],
        receiver: tuple[str, bytes],
        captured: tuple[bytes, bytes] | None = None,
    ) -> LabOutput:
        """The tables of a repetition of which two helpers told: what each said at its end, as JSON, and its samples;
        and the packets that two more captured, of the sender and of the receiver.
        Raises `EngineError`, `ValueError`."""

    @property
    def names(self) -> list[tuple[str, str]]:
        """Our name and Linux's of each algorithm that a scenario may name."""

    def run_in_lab(
        self,
        index: int,
        rep: int,
        *,
        algorithms: Mapping[str, str],
        output: str,
        progress: Callable[[dict[str, Any]], object],
        run_as: str | None = None,
        capture_bytes: int = 0,
    ) -> LabOutput:
        """Runs one repetition on the kernel; only in a process that `enter_lab` returned in.

        `algorithms`: what the kernel calls each of the scenario's. `output`: the folder for what programs print.
        `run_as`: the user of those programs, a JSON object; None: the lab's own. `capture_bytes`: memory for the
        headers of packets at each host; 0: none are captured.
        `progress` is called now and then with the time since the start, in ns. Raises `EngineError`,
        `KernelUnsupported`.
        """

def write_packets(path: str, host: str, packets: Sequence[tuple[int, bool, int, bytes]]) -> None:
    """Writes a host's packets as pcapng: of each its time, whether the host sent it, its length and its headers."""

def load_module(path: str, words: str) -> None:
    """Loads a module into this kernel, with its parameters as words. Raises OSError."""

def enter_lab(parent: int) -> None:
    """Makes this process, which has one thread, the first of a lab, and returns in a child of it; the caller waits for
    that child and ends as it does. Both die with `parent`. Raises `EngineError`, `KernelUnsupported`."""

class LoadedAlgorithms:
    """Algorithms that the kernel has until this is closed; a context manager."""

    @property
    def names(self) -> dict[str, str]:
        """What the kernel calls each."""

    def close(self) -> None: ...
    def __enter__(self) -> LoadedAlgorithms: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

class Assigned:
    """What came since the last call, and counts of all so far."""

    @property
    def rows(self) -> ArrowTable:
        """Of the table `assignments`; when there are 8192, more waits."""

    @property
    def assigned(self) -> list[int]:
        """Connections of each arm."""

    @property
    def refused(self) -> int:
        """Of those, the ones whose algorithm the kernel refused."""

    @property
    def lost(self) -> int:
        """Connections left as they were, because they could not have been recorded."""

class Assigner:
    """Gives new connections of a cgroup the algorithms of the arms while it lives.

    `asked` is a JSON object with `design` `seed` `unit` `v4_bits` `v6_bits` `arms` `links` `ports` `netns` `ours`,
    `allocation` one with `period` and `shares_pct`, of each link those of each arm; `cgroup` is a folder of cgroup v2.
    Raises `KernelUnsupported`, `EngineError`, `UsageError`.
    """

    def __init__(self, asked: str, allocation: str, cgroup: Path) -> None: ...
    @property
    def algorithms(self) -> dict[str, str]:
        """What the kernel calls each."""

    def allocate(self, allocation: str) -> None:
        """New connections are assigned so from now on."""

    def take(self) -> Assigned: ...
    def end(self) -> None:
        """No connection is assigned any more; what was can still be taken."""

def arms_of(asked: str, allocation: str, clients: list[str]) -> list[int | None]:
    """The arm of each client by its address, where prefixes are the units; None: no arm. The kernel is not asked."""

def load_for_run(scenario: Scenario, *, ours: bool) -> LoadedAlgorithms:
    """Sees to it that the kernel has the algorithms of a scenario: its own builds where it has them, `ours` is false
    and no parameter is set, else ours. Raises `KernelUnsupported`."""

def load(name: str, *, default_in: str | None = None) -> tuple[str, bool]:
    """Loads our build of an algorithm, to stay; returns what the kernel calls it, and whether it was there already.
    `default_in`: a network namespace whose new sockets get it. Raises `KernelUnsupported`."""

def pinned() -> list[str]:
    """Names of algorithms that stay loaded, those of files too."""

def unload(name: str) -> list[dict[str, str]]:
    """Takes our build out; sockets that still run it: `namespace` `source` `destination`. Raises `EngineError`."""

def in_kernel() -> dict[str, dict[str, Any]]:
    """Of each algorithm: `builtin` and `loaded` (what the kernel calls its own build and ours, or None), `pin` (the
    path that holds ours, or None), `loadable`, `not_loadable` (why not, or None)."""

def parse(
    text: str,
    file: str,
    files: Mapping[str, str] | None = None,
    read_file: Callable[[str], tuple[str, bool]] | None = None,
    kernels: Mapping[str, str] = ...,
    algorithms: Sequence[tuple[str, str, str]] = ...,
) -> Scenario:
    """Reads a scenario; `file` stands in errors. The files that it names are `files`, their text by their path, or what
    `read_file` gives: the text, and whether errors may quote it; it raises `OSError`. With neither it may name none.
    `kernels`: what kernels that were built call themselves, by their names. `algorithms`: (path, name, digest) of files
    whose algorithms it may name by their path; `load_algorithm` has loaded them. Raises
    `tcpknee.errors.ScenarioError`."""

class ShellOutcome:
    """How a command behind a path ended."""

    @property
    def exit_code(self) -> int:
        """The command's, or 128 + the number of the signal that ended it; 127: there is none of that name."""

    @property
    def links(self) -> list[dict[str, Any]]:
        """What the link carried towards the command and from it, one dict each: `forwarded_pkts` `forwarded_bytes`
        int · `lost_pkts` `dropped_pkts` int or None (not told) · `achieved_rate_bits_per_sec` `added_delay_us_p99`
        float or None."""

    warnings: Final[list[str]]

def shell(scenario: Scenario, command: Sequence[str], algorithms: Mapping[str, str]) -> ShellOutcome:
    """Runs a command behind the path of the scenario's first cell and returns when it has ended.

    `algorithms`: what the kernel calls each that the scenario names. The command has this process's standard streams
    and terminal. Raises `KernelUnsupported` or `EngineError` where there can be no lab.
    """

def algorithms() -> list[dict[str, Any]]:
    """`name summary source year use_when params` of each. A param is a dict `name default min max` (as a scenario
    writes them) `unit` (in which it is counted) `doc source`."""

def load_algorithm(object: Path, digest: str, name: str | None = None) -> dict[str, Any]:
    """Loads the algorithm of a user's file from a shared object, and says what it is, as of `algorithms`, and the
    `private_bytes` that a source of the kernel asks for (None: it is none). It is called `name`, or as it calls itself;
    `digest` is that of its sources. Raises `UsageError`."""

def guard_process(report: int) -> None:
    """Makes this process one that runs algorithms from files: a call that crashes, takes more than a second of
    processor time or writes where it may not is put down in the file `report` (a descriptor), and ends the process."""

def read_call(report: bytes) -> str | None:
    """A call that was put down, as JSON: `what` went wrong, `algorithm`, `op`, `t_ns`, the fields `in` and `out`, and
    `state` in hexadecimal. None where none was."""

def play_call(name: str, digest: str, call: str) -> str:
    """Makes one call of the algorithm of a file, of what `read_call` gives; as JSON, `out` and `state` after it. Raises
    `UsageError`."""

def add_object(name: str, kernel_name: str, params: Sequence[str], with_flag: bytes, without_flag: bytes) -> None:
    """Takes the BPF objects of an algorithm from a file, for kernels whose cong_control has the arguments ack and flag,
    and for others."""

def queues() -> list[dict[str, Any]]:
    """`name` `summary` `source` `params` of each; a param is a dict as of `algorithms`."""

def sizes() -> list[dict[str, Any]]:
    """Distributions of the sizes of workload web: `name` `summary` `source` `example`."""

def costs() -> list[dict[str, str]]:
    """Operations of a host that cost time: `name` (unit last) `class` `doc`; `counter`: its class in `host_costs`."""

def cost_profiles() -> list[dict[str, str]]:
    """Cost profiles that come with tcpknee: `name` `summary`."""

def cost_profile(name: str) -> dict[str, float]:
    """ns of each operation in such a profile. ValueError: there is none of that name."""

def kernel_rules() -> list[dict[str, Any]]:
    """What differs between releases of Linux: `rule` `doc` of each, `subject` ("hosts": a key of both, "param" of an
    algorithm, "not modelled") and `changes`, the oldest first: `since` (a release) `value` `source` (commits)."""

def losses() -> list[dict[str, Any]]:
    """`name` `summary` `source` of each."""

def impairments() -> list[dict[str, Any]]:
    """`name` `summary` `source` `keys` of each; `both_ways`: on ACKs, too; `netem`: its words, or None."""

def workloads() -> list[dict[str, Any]]:
    """`name` `summary` `keys` of each; `counts`: `goodput` `completion` `requests` or `programs`; `draws`: do its
    connections come and go at random?"""

def keys() -> list[dict[str, Any]]:
    """`path` `default` `accepts` `axis` `engines` `doc` `source` of each key of a scenario file."""

def tables(of: str) -> Mapping[str, list[dict[str, str]]]:
    """Columns of each table of a `run`, `recording`, `trace`, `profile`, `fleet` or `snapshot`: `name` `type` `unit`
    `doc` `source` of each. Of a run, `tcp_info` and `client_output` are further columns of `samples` and `programs`."""

def table_docs(of: str) -> Mapping[str, str]:
    """What a row of each of these tables is."""

def version() -> str: ...

class TraceBatch:
    """What came since the last batch."""

    acks: Final[ArrowTable]
    events: Final[ArrowTable]
    @property
    def connections(self) -> ArrowTable:
        """Those that were closed; in the last batch, all that are left."""

    @property
    def lost(self) -> int:
        """Records that found no room so far, in all."""

def trace_tcp(
    take: Callable[[TraceBatch], object],
    *,
    cookie: int | None = None,
    netns: int | None = None,
    port: int | None = None,
    local_port: int | None = None,
    remote_port: int | None = None,
    address: tuple[IPv4Address | IPv6Address, int] | None = None,
    local: tuple[IPv4Address | IPv6Address, int] | None = None,
    remote: tuple[IPv4Address | IPv6Address, int] | None = None,
) -> dict[str, Any]:
    """Traces connections until `take`, called about twenty times a second, at first as soon as all is attached,
    returns something false; the last batch comes after that. Returns `lost` and `gaps` int and `cost`: `programs`, a
    list of dicts `tracepoint` `runs` `run_time_ns` `missed`, and `not_measured` str or None. Raises what `take`
    raised, `KernelUnsupported`.
    """

def devices(netns: Path | None = None) -> list[str]:
    """Names of the devices in the network namespace of this path, or in ours. Raises `EngineError`."""

def root_qdiscs(netns: Path | None = None) -> list[tuple[str, str, str, int]]:
    """The root qdiscs in the network namespace of this path, or in ours: device, kind, handle, packets dropped so far
    modulo 2^32. Raises `EngineError`."""

def trace_qdisc(
    is_over: Callable[[], object], *, device: str | None = None, netns: int | None = None
) -> dict[str, Any]:
    """Measures waits in qdiscs until `is_over`, asked about twenty times a second, returns something true. Returns
    `qdiscs`, a list of dicts with the fields of `tcpknee.live.qdiscs.Latency`, and `lost` and `cost` as
    `trace_tcp` does.
    """

def profile_registry() -> dict[str, Any]:
    """What `HostSession` knows: `counters` of the table `host_costs`: `name` `unit` `doc`; `instruments`: `name`
    `summary` str · `bpf` bool."""

class HostSession:
    """An interval in which the costs of this host's network are measured. It belongs to the thread that made it.

    `asked` is a JSON object: `instruments`, `stacks_hz`, `netns` (inode and path of the only network namespace that
    counts, or null), `pid` (of the only process, or null), `is_lab` (only the namespaces whose inodes
    `list` names count, each for itself). Raises `KernelUnsupported`, `UsageError`."""

    def __init__(self, asked: str) -> None: ...
    def list(self, sender: int, receiver: int) -> None: ...
    def begin(self) -> None: ...
    def close(self) -> None: ...
    def finish(self, cell: int = 0, rep: int = 0) -> tuple[dict[str, ArrowTable], dict[str, Any]]:
        """Takes the programs out of the kernel. Returns its tables, in rows of that cell and repetition, and `seconds`
        float · `idle_samples` `lost_samples` `unreadable` int · `cost`, as `trace_tcp` has it."""

def duration_ns(what: str, text: str) -> int:
    """`100ms` in nanoseconds. Raises `UsageError`, which begins with `what`."""

class Learner:
    """Environments for learners (`crates/engine/src/learn`) that go on together. For one thread of Python at a time."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        group: int,
        rounds: bool,
        every_ns: int | None,
        fields: Sequence[int],
        controls: Sequence[tuple[int, float, float]],
        reward: int,
        scaled: bool,
        count: int,
        threads: int,
    ) -> None:
        """`every_ns`: decisions by the clock; without it at each ACK, or with `rounds` at the first of each round trip.
        Fields, controls (with bounds) and the reward are places in `learner_registry`. Raises `UsageError`."""

    def step(
        self, values: bytes, resets: Sequence[tuple[int, int, int]]
    ) -> tuple[bytearray, bytearray, bytes, bytearray]:
        """One step of each without the GIL: those in `resets` (place, cell, seed; places rise) begin an episode, the
        others take their action of `values`, an array of f64. Arrays of observations (f32), rewards (f64), ends (u8: 0
        none, 1 complete, 2 out of time) and what is true (f64), environment by environment. Raises `EngineError`,
        `UsageError`."""

def learner_registry() -> dict[str, list[dict[str, Any]]]:
    """What an agent may see (`fields`), set (`controls`) and be rewarded by (`rewards`), and what is told beside that
    (`truth`)."""

def record(asked: str, stop: int, progress: Callable[[int, int], None] | None) -> str:
    """Records sockets until `stop` is readable; `asked` and the report are JSON objects (`crates/live/src/record/`).

    `progress` gets the sockets of the last dump and the rows so far, from another thread.
    """

def export(asked: str, stop: int, publish: Callable[[str], None]) -> None:
    """Samples the sums over sockets until `stop` is readable; `asked` is a JSON object (`crates/live/src/export/`).

    `publish` gets each sample as one, from another thread; what it raises ends it.
    """

def sockets(wanted: str, columns: list[str]) -> ArrowBatches:
    """The TCP sockets as they are now; `wanted` is a JSON object. No columns: all."""

def exclusions(wanted: str) -> str:
    """Of all TCP sockets that there are now, how many each filter leaves out by itself: a JSON object with `sockets`
    and `by`. `wanted` is one as well. Raises `UsageError`, `EngineError`."""

def host_state(proc: Path, sys: Path, root: Path, are_recorded: bool, counts: bool) -> str:
    """The tables of a snapshot that `crates/collect/src/host_state.rs` reads, and what is `missing`, as a JSON object.
    `are_recorded`: the files are of another host, and this kernel is not asked. `counts`: the counters alone."""

def secret_sysctls() -> list[str]:
    """Parts of the names of sysctls whose values stay on the host."""

def ethtool_numbers(interface: str, kind: str) -> dict[str, int]:
    """The numbers of `ring`, `channels` or `coalesce` of an interface, by name. Raises `OSError`."""

def set_ethtool_numbers(interface: str, kind: str, numbers: Mapping[str, int]) -> None:
    """Gives such numbers to the driver; those without a value are 0. Raises `OSError`."""

def ethtool_features(interface: str) -> list[tuple[str, bool, bool]]:
    """The features of an interface: whether each can be changed, and whether it is wanted. Raises `OSError`."""

def set_ethtool_features(interface: str, wanted: Mapping[str, bool]) -> None:
    """Wants features to be on or off. Raises `OSError`."""

def give_back_memory() -> None:
    """Gives back to the system what was freed and the C library keeps, where it can: a fourth of what `knee watch` has
    in use."""

def importers() -> list[dict[str, Any]]:
    """Every importer, as its `Kind` in `crates/import/src/` describes it."""

def recognise_import(path: PathLike[str] | str) -> list[str]:
    """Names of the importers whose own the file looks like, by its first bytes. Raises OSError."""

def client_output(program: str, text: str) -> dict[str, float | None] | None:
    """What a program that a run started printed of itself, by the columns of `client_output`; None: nobody reads that
    program, or it measured nothing."""

def import_files(
    name: str, asked: str, progress: Callable[[int, int], object] | None
) -> tuple[dict[str, Any], list[ArrowBatches] | None]:
    """Reads files by the importer of that name. `asked` is a JSON object: `files`, `out`, `strict`, `dry_run`,
    `anonymize`, and in `options` the importer's own by name.

    The report, and the rows of its tables where `out` is null and `dry_run` false; nothing is written and no row given
    back where there is none, or with `strict` where something is not understood. Raises `UsageError`, `RunFolderError`,
    `OSError` (a file) and what `progress` raises.
    """

class Part:
    """The tables of one repetition as Parquet files NAME.TABLE.parquet of a folder, which have these names when `keep`
    returns, that of the table `last` last of all. One that is dropped before leaves nothing.

    Methods raise OSError, RunFolderError.
    """

    def __init__(self, folder: Folder, name: str, last: str) -> None: ...
    def write(self, table: str, rows: object) -> None:
        """Appends the rows of an Arrow stream to a table, which begins with the first of them, or with none."""

    def keep(self, note: str) -> None:
        """Ends the files; the note stands in that of the table `last`."""

def compose(parts: Sequence[Path], order: str | None, out: int, path: Path) -> list[str | None]:
    """Writes the rows of parts of a table, in their order, to the descriptor `out`; returns their notes.

    `order`: the column that the rows of each part are put in the order of, where they came in another. `path`: what
    errors of writing call the file. Raises OSError, RunFolderError (a part cannot be read).
    """

class Folder:
    """A folder that is held by its descriptor, to be written into; see `crates/store/src/folder.rs`. `make`: it and
    those above are made if need be; `of_root`, which makes it too: nobody but root may write any folder on the way.

    Methods raise OSError, and RunFolderError for what is refused: a folder of another user, for root; a link, a FIFO or
    a device where a file is to be.
    """

    def __init__(self, path: Path, *, make: bool = True, of_root: bool = False) -> None: ...
    made: Final[bool]
    owner: Final[int]
    def names(self) -> list[str]:
        """What it holds, sorted."""

    def folder(self, name: str) -> Folder:
        """One in it, which is made if need be."""

    def open_folder(self, name: str) -> Folder | None:
        """One in it that is there; None: none is. A link is none."""

    def temporary(self, name: str, public: bool) -> tuple[str, int]:
        """A new file that `replace` puts at `name`: its name, which cannot be guessed, and its descriptor."""

    def open_own(self, name: str) -> int | None:
        """The descriptor of a file that nobody but us can have written: another user's, one that others may write, and
        a link are refused. None: not there."""

    def replace(self, temporary: str, name: str) -> None: ...
    def remove(self, name: str) -> None:
        """Removes a file or link, which may be gone already."""

    def remove_empty(self, name: str) -> None:
        """Removes a folder in it that holds nothing."""

    def give(self, name: str, owner: int, group: int) -> None:
        """Leaves a file of ours in it to a user: a regular one, which no other name leads to."""

    def give_made(self, owner: int, group: int) -> None:
        """Likewise the folders that were made for it."""

    def sweep(self) -> None:
        """Removes temporary files that killed writers left; only who locked the folder may."""

    def lock(self, name: str) -> Lock | None:
        """None: another process holds it."""

class Lock:
    """Held until it is let go."""

    def release(self) -> None: ...

class Unfinished:
    """What the whole file of an unfinished segment would be, read from where it is."""

    rows: Final[int]
    def __len__(self) -> int:
        """In bytes."""

    def read_at(self, bytes: int, at: int) -> bytes: ...

def unfinished(folder: Path) -> list[tuple[str, Path, Unfinished | None, str | None]]:
    """The unfinished segments of a folder: table, part, what can be read of it (None: nothing yet), or why nothing can.
    Nothing is changed. Raises RunFolderError."""

def allow_foreign_folders() -> None:
    """From now on, root writes into folders of other users as well."""

def check_readable(path: Path) -> None:
    """Is it a regular file, or a link to one by somebody whom we trust? Raises OSError, RunFolderError."""

def open_readable(path: Path) -> int:
    """The descriptor of such a file: nobody waits for a FIFO's writer. Raises OSError, RunFolderError."""
