"""`knee recommend`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import human, say
from tcpknee.errors import UsageError

from .options import PATH, json_option, quiet_option

if TYPE_CHECKING:
    from tcpknee.doctor import recommend

MOST_PATHS = 12
"""Paths that are simulated: the heaviest of each namespace, then the next of each."""

_COLUMNS = ("netns", "min_rtt_us", "queue_delay_us", "bytes_retrans", "bytes_sent", "bytes_acked")
_TO_OTHERS = (
    "min_rtt_us > 0 and not (coalesce(remote_prefix, '') like '127.%' or coalesce(remote_prefix, '') = '::/48')"
)
"""Connections except those of the host to itself, as far as recorded addresses tell."""
_SPACE = "case when netns like 'net:[%' then '' else coalesce(netns, '') end"
"""A namespace without a name is that of the host which was recorded."""
_BAND = "case when min_rtt_us <= 1000 then 0 when min_rtt_us <= 10000 then 1 when min_rtt_us <= 50000 then 2 else 3 end"
_GROUPS = f"""
    select {_SPACE} as space, {_BAND} as band, null as remote,
        cast(quantile_cont(min_rtt_us, 0.5) as bigint) as rtt_us,
        cast(quantile_cont(queue_delay_us, 0.5) as bigint) as queue_us,
        100.0 * sum(bytes_retrans) / nullif(sum(bytes_sent), 0) as loss_pct, sum(bytes_acked) as weight
    from chosen
    group by space, band
"""
_RATES = f"""
    select {{space}} as space, {_BAND} as band, max(delivery_rate_bits_per_sec) as rate_bits_per_sec
    from {{table}} where min_rtt_us > 0 and delivery_rate_bits_per_sec > 0 {{others}}
    group by all
"""
"""The rates that connections reached at their best. Their medians are what loss let them carry."""
_NOT_TO_ITSELF = (
    "and coalesce(replace(remote_addr, '::ffff:', ''), '') not like '127.%' and coalesce(remote_addr, '') <> '::1'"
)


@click.command("recommend", short_help="Say which algorithm is best for the paths of this host, and why.")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="data-centre or public, where nothing is recorded."
)
@click.option(
    "--from",
    "data",
    multiple=True,
    metavar="DATA",
    type=PATH,
    help="A file of `knee snapshot`, or folders of `knee record`.",
)
@click.option("--netns", "spaces", multiple=True, metavar="NAME|PID", help="Also of this network namespace (root).")
@json_option
@quiet_option
def command(roles: Sequence[str], data: Sequence[Path], spaces: Sequence[str], json: bool, quiet: bool) -> int:
    """Say which congestion control is best, CUBIC or BBR: each path of the connections is simulated under both, and the
    numbers decide. By default the paths are those of this host's connections now.

    Exit code 0; 2 where no path is known.

    Example: knee recommend --role public --role data-centre
    """
    from tcpknee.doctor import recommend
    from tcpknee.runs.progress import Line

    if roles and (data or spaces):
        other = "--from" if data else "--netns"
        raise UsageError(f"knee recommend: got --role and {other}; expected paths by one of them.")
    if data and spaces:
        raise UsageError("knee recommend: got --netns and --from; expected one of them: this host, or DATA.")
    paths = _of_roles(roles) or _paths(data, spaces)
    if not paths:
        raise UsageError(
            "knee recommend: got no connection whose round-trip time and rate are known; expected some. Name a role: "
            "--role data-centre or --role public; or record for a while: knee record --out DIR"
        )
    chosen = recommend.heaviest(paths, MOST_PATHS)
    if len(chosen) < len(paths):
        say.warn(f"knee recommend: {len(paths)} groups of connections; the {MOST_PATHS} heaviest are simulated.")
    with Line(quiet=quiet) as line:
        found = recommend.advised(chosen, tell=line)
    if json:
        say.json(
            {
                "schema": 1,
                "paths": [advice.json() for advice in found],
                "namespaces": [
                    {"netns": one.netns, "default": one.default, "commands": one.commands()}
                    for one in recommend.by_namespace(found)
                ],
            }
        )
    else:
        _show(found)
    return 0


def _of_roles(roles: Sequence[str]) -> list[recommend.Path]:
    """The paths of roles, from a host such as this one."""
    from tcpknee.doctor import recommend
    from tcpknee.doctor.snapshot import take_in

    paths = [path for role in roles for path in recommend.of_role(role)]
    if not any(path.is_in_data_centre for path in paths):
        return paths
    costs = recommend.costs_of(take_in(None))
    return [replace(path, costs=costs) for path in paths]


def _paths(data: Sequence[Path], spaces: Sequence[str]) -> list[recommend.Path]:
    from tcpknee.doctor import recommend
    from tcpknee.doctor.snapshot import Snapshot, take_in

    if not data:
        return [path for name in (None, *spaces) for path in recommend.of_snapshot(take_in(name), "now")]
    files = [path for path in data if path.is_file()]
    folders = [path for path in data if not path.is_file()]
    found = [path for file in files for path in recommend.of_snapshot(Snapshot.read(file))]
    return found + (_recorded(folders) if folders else [])


def _recorded(folders: Sequence[Path]) -> list[recommend.Path]:
    from tcpknee.doctor import recommend
    from tcpknee.fleet import connections

    with connections.opened(folders) as fleet:
        fleet.gather("chosen", ", ".join(_COLUMNS), _TO_OTHERS)
        rows = fleet.database.sql(_GROUPS).to_arrow_table().to_pylist()
    rates = _rates(folders)
    paths = recommend.of_groups(
        {**row, "netns": row["space"], "rate_bits_per_sec": rates.get((row["space"], row["band"]))} for row in rows
    )
    return [replace(path, known_from="recording") for path in paths]


def _rates(folders: Sequence[Path]) -> dict[tuple[str, int], int]:
    """The highest rate of a sample, by namespace and band of round-trip times."""
    from tcpknee.datasets.dataset import Dataset

    found: dict[tuple[str, int], int] = {}
    for folder in folders:
        dataset = Dataset(folder)
        of_host = "sockets" in dataset.tables
        words = {"space": _SPACE, "table": "sockets", "others": _NOT_TO_ITSELF}
        asked = _RATES.format(**(words if of_host else {"space": "''", "table": "samples", "others": ""}))
        for row in dataset.sql(asked).to_pylist():
            key = (row["space"], row["band"])
            found[key] = max(found.get(key, 0), row["rate_bits_per_sec"])
    return found


def _show(found: Sequence[recommend.Advice]) -> None:
    from tcpknee.doctor import recommend

    say.line(f"Simulated, not measured: each path {recommend.SEEDS} times under CUBIC and under BBR.")
    if any(advice.path.is_in_data_centre and advice.path.costs == recommend.GUEST for advice in found):
        say.line(f"A virtual machine within a data centre: its work costs as in the profile {recommend.GUEST}.")
    say.line()
    for advice in found:
        path = advice.path
        rtt, loss = human.quantity("time", path.rtt_us), human.quantity("pct", path.loss_pct)
        facts = (f"RTT {rtt}", f"loss {loss}", human.quantity("rate", path.rate_bits_per_sec))
        where = f"{path.netns}: " if path.netns else ""
        say.line(f"{advice.algorithm:<6} {where}{path.name} ({', '.join(facts)})")
        say.line(f"       {advice.why}")
    say.line()
    for one in recommend.by_namespace(found):
        say.lines(one.commands())
        if one.default == "bbr" or any(advice.algorithm == "bbr" for advice in one.others):
            say.line("knee doctor bbr-without-fq     # is fq where it sends?")
    if any(one.others for one in recommend.by_namespace(found)):
        say.line("# PREFIX … is the route of these far ends, whole, as `ip route` prints it:")
        say.line("# ip route change 198.51.100.0/24 via 192.0.2.1 dev eth0 congctl bbr")
