"""`knee export --prometheus`, `--grafana` and `--systemd`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcpknee import say
from tcpknee.errors import RunFolderError
from tcpknee.writing import replacing

from .options import free

_PACKAGED = Path(__file__).resolve().parent.parent / "packaging"
_COMMAND = "/usr/local/bin/knee"
"""As the units have it."""


def prometheus(where: str, asked: dict[str, Any]) -> int:
    """Answers until it is told to end."""
    from tcpknee.live.prometheus.exporter import export

    export(where, asked, ready=lambda urls, absent: _ready(urls, absent, asked))
    return 0


def _ready(urls: Sequence[str], absent: Sequence[str], asked: dict[str, Any]) -> None:
    for name in absent:
        say.warn(f'knee export: there is no cgroup "{name}" below /sys/fs/cgroup yet.')
    if nothing := _nothing(asked):
        say.warn(f"knee export: {nothing}")
    say.line(f"Metrics: {' '.join(urls)}")
    say.flush()


def _nothing(asked: dict[str, Any]) -> str:
    """What filters leave out when there is no socket that they hold for; without filters there may well be none."""
    from tcpknee.live import exclusions, record

    filters = {key: asked[key] for key in exclusions.KEYWORDS if asked.get(key)}
    wanted = {**filters, "netns": asked["netns"]}
    if not filters or record.sockets(**wanted, columns=["cookie"]).num_rows:
        return ""
    return f"{exclusions.text(exclusions.count(wanted), wanted)} It goes on and counts those that come."


def grafana(out: Path) -> None:
    """Writes the dashboard."""
    free(out)
    _write(out, (_PACKAGED / "grafana" / "tcpknee.json").read_text(encoding="utf-8"))
    say.line(f"Dashboard: {out} (Grafana: Dashboards, New, Import)")


def systemd(out: Path) -> None:
    """Writes the units into a folder, with where this command is. Nothing is started."""
    if not out.is_dir():
        raise RunFolderError(f"{out}: is no folder; expected one for units, such as /etc/systemd/system.")
    command = Path(shutil.which(sys.argv[0]) or sys.argv[0]).absolute()
    if command.name != "knee":
        # By `python -m tcpknee`: the command of the same environment.
        command = Path(sys.executable).with_name("knee")
    units = sorted((_PACKAGED / "systemd").glob("*.service"))
    free(*(out / unit.name for unit in units))
    for unit in units:
        _write(out / unit.name, unit.read_text(encoding="utf-8").replace(_COMMAND, str(command)))
    say.line(f"Units: {', '.join(str(out / unit.name) for unit in units)}")
    say.line("       systemctl daemon-reload; systemctl enable --now knee-exporter")
    if command.is_relative_to("/home") or command.is_relative_to("/root"):
        say.warn(
            f"knee export: the units run {command}, and may not look into home folders (ProtectHome). Install "
            "tcpknee outside of them, such as in /opt/tcpknee, and write the units from there."
        )


def _write(path: Path, text: str) -> None:
    """The whole file or nothing."""
    with replacing(path, make=True, public=True) as file:
        file.write(text.encode())
