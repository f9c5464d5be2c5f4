"""Settings in files that somebody applies, at boot or later: sysctl.d, profiles of tuned; and who is installed."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.doctor.snapshot.reader import Reader

Rows = list[dict[str, Any]]

SYSCTL_FOLDERS = ("usr/lib/sysctl.d", "usr/local/lib/sysctl.d", "run/sysctl.d", "etc/sysctl.d")
"""From the weakest to the strongest: a file hides one of the same name in a weaker folder (sysctl.d(5))."""

TUNED_FOLDERS = ("usr/lib/tuned", "usr/lib/tuned/profiles", "etc/tuned", "etc/tuned/profiles")

_JUDGED = re.compile(r"(net\.|kernel\.numa_balancing|vm\.min_free_kbytes|vm\.swappiness)")


_SECRET = tuple(_core.secret_sysctls())
"""Parts of names whose values stay on the host."""


def read(reader: Reader) -> dict[str, Rows]:
    """Rows of `owners` of kind `setting`, `profile` and `present`. Of one sysctl the last row of an owner holds."""
    rows = [*_sysctl_rows(reader), *_tuned(reader)]
    if (reader.roots.root / "etc/cloud/cloud.cfg").is_file():
        rows.append({"owner": "cloud-init", "kind": "present", "path": "/etc/cloud/cloud.cfg"})
    return {"owners": rows}


def _sysctl_rows(reader: Reader) -> Iterator[dict[str, Any]]:
    root = reader.roots.root
    files: dict[str, Path] = {}
    for folder in SYSCTL_FOLDERS:
        files |= {path.name: path for path in reader.entries(root / folder) if path.name.endswith(".conf")}
    ordered = [files[name] for name in sorted(files)]
    # procps applies it last; systemd leaves it alone unless a link below sysctl.d leads to it.
    last = root / "etc/sysctl.conf"
    targets = {path.resolve() for path in ordered}
    if last.is_file() and last.resolve() not in targets:
        ordered.append(last)
    for path in ordered:
        for name, value in _assignments(reader.text(path, "sysctl.d files") or ""):
            yield {
                "owner": "sysctl.d",
                "kind": "setting",
                "path": f"/{path.relative_to(root)}",
                "name": name,
                "value": value,
            }


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """`name = value` with dots; names with a `*` stand for many and are left out."""
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("-").partition("=")
        name = name.strip()
        if not equals or name.startswith(("#", ";")) or "*" in name:
            continue
        # The first of the two separators decides which of them separates (sysctl.d(5)).
        first = re.search(r"[./]", name)
        if first and first[0] == "/":
            name = name.replace(".", "\0").replace("/", ".").replace("\0", "/")
        if _JUDGED.match(name) and not _is_secret(name):
            yield name, " ".join(value.split())


def _is_secret(name: str) -> bool:
    return any(part in name for part in _SECRET)


def _tuned(reader: Reader) -> Iterator[dict[str, Any]]:
    root = reader.roots.root
    active = (reader.text(root / "etc/tuned/active_profile") or "").split()
    if active:
        yield {"owner": "tuned", "kind": "profile", "path": "/etc/tuned/active_profile", "value": " ".join(active)}
    settings: dict[str, tuple[str, str]] = {}
    for profile in active:
        _profile(reader, profile, settings, set())
    for name, (value, path) in settings.items():
        yield {"owner": "tuned", "kind": "setting", "path": path, "name": name, "value": value}


def _profile(reader: Reader, name: str, settings: dict[str, tuple[str, str]], seen: set[str]) -> None:
    """The section `sysctl` of a profile, after those of the profiles that it includes."""
    path = _profile_path(reader, name)
    if path is None or name in seen:
        return
    seen.add(name)
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(reader.text(path, "profiles of tuned") or "")
    except configparser.Error:
        reader.miss(str(path), "not understood", "")
        return
    for included in re.split(r"[\s,]+", parser.get("main", "include", fallback="") or ""):
        if included:
            _profile(reader, included, settings, seen)
    if parser.has_section("sysctl"):
        for key, value in parser.items("sysctl"):
            if _JUDGED.match(key) and value is not None and not _is_secret(key):
                settings[key] = (" ".join(value.strip('"').split()), f"/{path.relative_to(reader.roots.root)}")


def _profile_path(reader: Reader, name: str) -> Path | None:
    if "/" in name or name.startswith("."):
        return None
    paths = [reader.roots.root / folder / name / "tuned.conf" for folder in reversed(TUNED_FOLDERS)]
    return next((path for path in paths if path.is_file()), None)
