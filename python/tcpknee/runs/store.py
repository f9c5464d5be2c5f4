"""Parts of a run on a cluster: Parquet files in a folder or an object store that every worker and the client reach.

    PARENT/tcpknee-5f0e1c…/session.json                                  whose it is: the run's scenario and the session
    PARENT/tcpknee-5f0e1c…/{samples,queue,events,cpu_time,host_costs,flows}/c000012-r0003-5f0e1c….parquet
                                                                         the units of one task, one after the other
    PARENT/tcpknee-5f0e1c…/checked/…                                     what workers wrote before the first unit

Each session has a place of its own, in the run folder or where --parts says. Only a place that says that it is this
run's is read or removed, and of it only files of these names. What a run.json says is never obeyed for more than
the last name: the parent is the run folder's, or the one that --parts names now.

A part is complete when its file below `flows/` exists, which is written last. A name is made of the units in the part,
so a task that Dask repeats writes the same bytes to the same name. Every file's schema says which version of tcpknee
wrote it, for which scenario, and which rows belong to which unit.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tcpknee import _core, reading
from tcpknee.errors import RunFolderError, TcpkneeError, UsageError
from tcpknee.shapes import TEXT, WHOLE, Shape, mistake
from tcpknee.writing import cannot_write, new_file

from . import tables
from .pool import Key
from .tables import PARTS

MOST_BYTES = 4 << 30
"""Of a part's table, which its reader holds in memory."""

Got = TypeVar("Got")

LAST = "flows"
"""The table whose file makes a part complete."""

_CHECKED = "checked"
_MARKER = "session.json"
_FORMAT = "tcpknee-parts"
_PLACE = re.compile(r"tcpknee-[0-9a-f]{12}")
"""Last name of a session's place."""

_FOLDERS = (*tables.FROM_ENGINE["sim"], _CHECKED)
_PART = re.compile(r"c\d{6,}-r\d{4,}-[0-9a-f]{16}\.parquet")
_OURS = re.compile(rf"\.?({_PART.pattern}|client|[0-9a-f]{{32}})(\.[0-9a-f]{{16}})?(\.tmp)?")
"""Files in these folders, and what a killed writer leaves of one."""

_ABOUT = b"tcpknee"
"""Key of a part's schema that holds what the part is about, as JSON."""

_PART_SAYS: Shape = {
    "build": {"tcpknee": TEXT},
    "scenario_sha256": TEXT,
    "units": [{"cell": WHOLE, "rep": WHOLE, "note": {"data_packets": WHOLE}}],
    "rows": {},
}


class Place(Protocol):
    """Where files are kept by name; names have slashes. Methods raise RunFolderError."""

    def prepare(self, folders: Sequence[str]) -> None:
        """Makes the folders, where a place has such things: the client does it once, so that a worker that is late
        brings none back that was removed."""

    def put(self, name: str, content: bytes) -> None:
        """Writes a file into a folder; readers see all of it or nothing."""

    def get(self, name: str) -> bytes | None:
        """The content of a file; None: there is none."""

    def names(self, folder: str) -> list[str]:
        """Files in a folder, sorted; none where there is no such folder."""

    def discard(self, names: Sequence[str]) -> None:
        """Removes files, which may be gone already."""

    def discard_empty(self, folders: Sequence[str]) -> None:
        """Removes those of the folders that hold nothing, then the place itself if it holds nothing."""


class Folder:
    """A folder of this host, or one that it shares with others. No link in it is followed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self, folders: Sequence[str]) -> None:
        try:
            held = _core.Folder(self._path)
            for folder in folders:
                held.folder(folder)
        except OSError as error:
            raise cannot_write(self._path, error) from None

    def put(self, name: str, content: bytes) -> None:
        try:
            folder, file = self._of(name)
            if folder is None:
                raise RunFolderError(
                    f"{(self._path / name).parent}: no such folder on this host. Expected one that the client and "
                    "every worker share; give one with --parts."
                )
            with new_file(folder, file) as written:
                written.write(content)
        except OSError as error:
            raise cannot_write(self._path / name, error) from None

    def get(self, name: str) -> bytes | None:
        try:
            return reading.content(self._path / name, most_bytes=MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunFolderError(f"{self._path / name}: cannot be read: {error.strerror}.") from None

    def names(self, folder: str) -> list[str]:
        try:
            held, _ = self._of(f"{folder}/")
            return held.names() if held else []
        except OSError as error:
            raise RunFolderError(f"{self._path / folder}: cannot be read: {error.strerror}.") from None

    def discard(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                folder, file = self._of(name)
                if folder is not None:
                    folder.remove(file)
            except OSError as error:
                raise RunFolderError(f"{self._path / name}: cannot be removed: {error.strerror}.") from None

    def discard_empty(self, folders: Sequence[str]) -> None:
        with suppress(OSError):
            held = _core.Folder(self._path, make=False)
            for folder in folders:
                with suppress(OSError):
                    held.remove_empty(folder)
            _core.Folder(self._path.parent, make=False).remove_empty(self._path.name)

    def _of(self, name: str) -> tuple[_core.Folder | None, str]:
        """The folder of a file, None: there is none; and the file's name in it. Raises OSError, RunFolderError."""
        *folders, file = name.split("/")
        try:
            held: _core.Folder | None = _core.Folder(self._path, make=False)
        except FileNotFoundError:
            return None, file
        for folder in folders:
            held = held and held.open_folder(folder)
        return held, file


class Remote:
    """Any other place that fsspec reaches: s3://, gs://, abfs://, sftp://, hdfs:// …"""

    def __init__(self, url: str) -> None:
        import fsspec
        from fsspec.asyn import AsyncFileSystem

        self._url = url
        self._fs, self._root = self._guarded("opened", lambda: fsspec.core.url_to_fs(url))
        # The asynchronous ones are object stores: an object is there when it is complete, and to rename is to copy.
        self._is_atomic = isinstance(self._fs, AsyncFileSystem)

    def prepare(self, folders: Sequence[str]) -> None:
        if not self._is_atomic:
            for folder in folders:
                self._guarded("written", partial(self._fs.makedirs, f"{self._root}/{folder}", exist_ok=True))

    def put(self, name: str, content: bytes) -> None:
        self._guarded("written", lambda: self._put(f"{self._root}/{name}", content))

    def _put(self, path: str, content: bytes) -> None:
        if self._is_atomic:
            self._fs.pipe_file(path, content)
            return
        temporary = f"{path}.tmp"
        self._fs.pipe_file(temporary, content)
        self._fs.mv(temporary, path)

    def get(self, name: str) -> bytes | None:
        def read() -> bytes | None:
            try:
                return bytes(self._fs.cat_file(f"{self._root}/{name}"))
            except FileNotFoundError:
                return None

        return self._guarded("read", read)

    def names(self, folder: str) -> list[str]:
        def listed() -> list[str]:
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(f"{self._root}/{folder}", detail=False)
            except FileNotFoundError:
                return []
            return sorted(path.rpartition("/")[2] for path in found)

        return self._guarded("listed", listed)

    def discard(self, names: Sequence[str]) -> None:
        def gone() -> None:
            with suppress(FileNotFoundError):
                self._fs.rm([f"{self._root}/{name}" for name in names])

        self._guarded("removed", gone)

    def discard_empty(self, folders: Sequence[str]) -> None:
        # An object store has no folders.
        if self._is_atomic:
            return
        for folder in (*folders, ""):
            # Some file systems remove a folder with what it holds.
            if not self.names(folder):
                with suppress(OSError):
                    self._fs.rmdir(f"{self._root}/{folder}".rstrip("/"))

    def _guarded(self, what: str, call: Callable[[], Got]) -> Got:
        """Every store has errors of its own; ours name the place and what was asked of it."""
        try:
            return call()
        except ImportError as error:
            raise RunFolderError(
                f"{self._url}: cannot be {what}: {error}. Install the package of that store here and on every worker, "
                "or choose another --parts."
            ) from None
        except Exception as error:
            said = f"{error.strerror}" if isinstance(error, OSError) and error.strerror else f"{error}"
            raise RunFolderError(
                f"{self._url}: cannot be {what}: {type(error).__name__}: {said.rstrip('.')}. Check the address, room, "
                "rights and credentials there, or choose another --parts."
            ) from None


def place(url: str) -> Place:
    """The place of a URL; a path is a folder."""
    scheme, _, path = url.partition("://")
    if not path:
        return Folder(Path(url))
    return Folder(Path(path)) if scheme in ("file", "local") else Remote(url)


def check_url(url: str) -> None:
    """Refuses what the option --parts cannot be."""
    if urlsplit(url).password is not None:
        raise UsageError(
            "parts: got a URL with a password, which run.json and workers' logs would show; expected one without. Give "
            "the credentials to fsspec's or the store's own configuration, here and on every worker."
        )


@lru_cache(maxsize=1)
def build() -> dict[str, str]:
    """Which tcpknee this process has: the version, and a hash of the native module, which holds the simulator."""
    found = hashlib.sha256()
    with Path(_core.__file__).open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return {"tcpknee": _core.version(), "core": found.hexdigest()}


class Store:
    """The parts of one session of a run at a URL, written by this build of tcpknee."""

    def __init__(self, url: str, scenario_sha256: str) -> None:
        self.url = url
        self.place = place(url)
        self._build = build()
        self._scenario = scenario_sha256
        self._session = url.rpartition("/")[2]

    def begin(self) -> None:
        """Makes the place, which says whose it is."""
        self.place.prepare(_FOLDERS)
        about = {"format": _FORMAT, "scenario_sha256": self._scenario, "session": self._session}
        self.place.put(_MARKER, json.dumps(about).encode())
        self.place.put(f"{_CHECKED}/client", b"The client can write here.\n")

    def is_ours(self) -> bool:
        """Is it a place that this run's session made?"""
        about = self._marker()
        return self._session == about.get("session") and self._scenario == about.get("scenario_sha256")

    def _marker(self) -> Mapping[str, Any]:
        found: Any = None
        if _PLACE.fullmatch(self._session):
            with suppress(TcpkneeError, ValueError, RecursionError):
                found = json.loads(self.place.get(_MARKER) or b"null")
        return found if isinstance(found, dict) and found.get("format") == _FORMAT else {}

    def remove(self) -> None:
        """Removes files of ours, and the place if nothing else is in it. What it does not let go stays, and so does
        what is no place of ours."""
        if not self._marker():
            return
        with suppress(TcpkneeError):
            for folder in _FOLDERS:
                self.place.discard([f"{folder}/{name}" for name in self.place.names(folder) if _OURS.fullmatch(name)])
            # Last: what was not removed is still known for ours.
            self.place.discard([_MARKER])
            self.place.discard_empty(_FOLDERS)

    def uncheck(self) -> None:
        """Removes what the client and its workers wrote before the first unit."""
        with suppress(TcpkneeError):
            self.place.discard([f"{_CHECKED}/{name}" for name in self.place.names(_CHECKED) if _OURS.fullmatch(name)])

    def write(self, units: Mapping[Key, Mapping[str, pa.Table]]) -> str:
        """Keeps the tables of finished units, each with its note, as one part; returns its name."""
        bare = {key: tables.take_note(found["flows"]) for key, found in units.items()}
        names = [name for name in tables.FROM_ENGINE["sim"] if name != LAST] + [LAST]
        found = {name: [bare[key][0] if name == LAST else unit[name] for key, unit in units.items()] for name in names}
        about = {
            "build": self._build,
            "scenario_sha256": self._scenario,
            "units": [{"cell": cell, "rep": rep, "note": bare[cell, rep][1]} for cell, rep in units],
            "rows": {name: [table.num_rows for table in of_units] for name, of_units in found.items()},
        }
        part = _name(list(units))
        for name, of_units in found.items():
            whole = pa.concat_tables(of_units).unify_dictionaries().combine_chunks()
            metadata = {**(whole.schema.metadata or {}), _ABOUT: json.dumps(about).encode()}
            content = pa.BufferOutputStream()
            pq.write_table(whole.replace_schema_metadata(metadata), content, compression="zstd")
            self.place.put(_file(name, part), content.getvalue().to_pybytes())
        return part

    def parts(self) -> list[str]:
        """Names of the complete parts."""
        return [name.removesuffix(".parquet") for name in self.place.names(LAST) if _PART.fullmatch(name)]

    def read(self, part: str) -> Iterator[tuple[Key, dict[str, pa.Table]]]:
        """Each unit of a part with its tables, as the engine gave them."""
        flows = self._read(LAST, part)
        about = self._about(part, flows)
        whole = {name: flows if name == LAST else self._read(name, part) for name in tables.FROM_ENGINE["sim"]}
        for name, table in whole.items():
            if sum(about["rows"][name]) != table.num_rows:
                raise self._damaged(name, part, "its rows are not those that its note tells of")
        starts = dict.fromkeys(whole, 0)
        for index, unit in enumerate(about["units"]):
            found = {}
            for name, table in whole.items():
                rows = about["rows"][name][index]
                found[name] = _of_unit(table, starts[name], rows)
                starts[name] += rows
            yield (unit["cell"], unit["rep"]), tables.with_note(found, unit["note"])

    def discard(self, part: str) -> None:
        """Removes a part whose units are at home. Where that is not allowed it stays; it is brought home only once."""
        with suppress(TcpkneeError):
            self.place.discard([_file(name, part) for name in (LAST, *tables.FROM_ENGINE["sim"][1:])])

    def _read(self, name: str, part: str) -> pa.Table:
        file = _file(name, part)
        content = self.place.get(file)
        if content is None:
            raise RunFolderError(
                f"{self.url}/{file}: a worker wrote it and it is not here. Expected a place that this host and every "
                "worker reach by the same name; give one with --parts."
            )
        try:
            table = reading.parquet(pa.BufferReader(content)).combine_chunks()
        except reading.parquet_errors() as error:
            raise self._damaged(name, part, str(error)) from None
        return table

    def _damaged(self, name: str, part: str, why: str) -> RunFolderError:
        return RunFolderError(
            f"{self.url}/{_file(name, part)}: cannot be read as a part of a run: {why}. Remove it and --resume again."
        )

    def _about(self, part: str, flows: pa.Table) -> Any:
        """What a part says of itself. Refuses what another version or build of tcpknee, or another scenario, left."""
        try:
            about = json.loads((flows.schema.metadata or {}).get(_ABOUT, b"null"))
        except (ValueError, RecursionError) as error:
            raise self._damaged(LAST, part, str(error)) from None
        wrong = mistake(_PART_SAYS, about)
        if wrong is None:
            each = (WHOLE,) * len(about["units"])
            wrong = mistake(dict.fromkeys(tables.FROM_ENGINE["sim"], each), about["rows"])
        if wrong is not None:
            raise self._damaged(LAST, part, wrong)
        got = about["build"]
        if got != self._build:
            whose = f"tcpknee {got.get('tcpknee')}"
            if got.get("tcpknee") == self._build["tcpknee"]:
                whose = f"another build of {whose}"
            raise RunFolderError(
                f"{self.url}/{_file(LAST, part)}: written by {whose}; this is tcpknee {self._build['tcpknee']}, "
                "whose results may differ. Remove it, or run into another folder."
            )
        if about["scenario_sha256"] != self._scenario:
            raise RunFolderError(
                f"{self.url}/{_file(LAST, part)}: belongs to another scenario. Give each run --parts of its own."
            )
        return about


def new_place(out: Path, parts: str | None) -> str:
    """Where a session leaves its parts: in the run folder, unless another parent was asked for."""
    return f"{_parent(parts or str(out / PARTS))}/tcpknee-{uuid.uuid4().hex[:12]}"


def is_within(out: Path, url: str) -> bool:
    """Is that place in the run folder?"""
    return url.startswith(f"{_parent(str(out / PARTS))}/")


def within(out: Path, scenario_sha256: str = "") -> list[Store]:
    """Those in a run folder that sessions left."""
    try:
        held = _core.Folder(out, make=False).open_folder(PARTS)
        names = [name for name in held.names() if _PLACE.fullmatch(name) and held.open_folder(name)] if held else []
    except OSError as error:
        raise RunFolderError(f"{out / PARTS}: cannot be read: {error.strerror}.") from None
    return [Store(f"{_parent(str(out / PARTS))}/{name}", scenario_sha256) for name in names]


def earlier(out: Path, meta: Mapping[str, Any], parts: str | None) -> tuple[list[Store], list[str]]:
    """Places of a run's earlier sessions: those in its folder or below `parts`, and the URLs of all others. Another may
    have written these into run.json, so nothing of them is opened."""
    mine, others = within(out, meta["scenario_sha256"]), []
    for url in dict.fromkeys(session["parts"] for session in meta["sessions"] if "parts" in session):
        parent, _, name = url.rpartition("/")
        if parts is not None and parent == _parent(parts) and _PLACE.fullmatch(name):
            mine.append(Store(f"{_parent(parts)}/{name}", meta["scenario_sha256"]))
        else:
            others.append(url)
    return [store for store in mine if store.is_ours()], others


def _parent(parts: str) -> str:
    """As a session's place begins."""
    return (parts if "://" in parts else str(Path(parts).resolve())).rstrip("/")


def _of_unit(table: pa.Table, start: int, rows: int) -> pa.Table:
    """The rows of a unit, as its engine gave them: a dictionary holds only their values, in order of appearance."""
    unit = table.slice(start, rows)
    for index, field in enumerate(unit.schema):
        if pa.types.is_dictionary(field.type):
            values = unit.column(index).cast(field.type.value_type).dictionary_encode()
            unit = unit.set_column(index, field, values)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != _ABOUT}
    return unit.replace_schema_metadata(metadata or None)


def _name(units: list[Key]) -> str:
    """`c000012-r0003-5f0e1c…`: the first unit, and a hash of them all."""
    cell, rep = units[0]
    return f"c{cell:06d}-r{rep:04d}-{hashlib.sha256(json.dumps(units).encode()).hexdigest()[:16]}"


def _file(table: str, part: str) -> str:
    return f"{table}/{part}.parquet"
