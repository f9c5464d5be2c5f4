"""tcpknee: a workbench for TCP congestion control.

    import tcpknee
    run = tcpknee.compare("cubic", "bbr1", rate="50Mbit/s", rtt="100ms", loss="1.5%")

`run`, `compare` and `open` return a `Run` with its tables, statistics and verdicts; `diff` lays two side by side, and
`beside` sets what was measured elsewhere beside one;
`sockets` returns the TCP sockets of this host, `import_ss` those of dumps of ss, and so on for each importer
(`tcpknee.imports`). `Dataset` is a folder of tables, whatever wrote them; `sql` asks one. Nothing heavy is imported
before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import (
    Cancelled,
    ClusterError,
    EngineError,
    KernelUnsupported,
    MissingColumn,
    MissingTable,
    RunFolderError,
    ScenarioError,
    TcpkneeError,
    UsageError,
)

if TYPE_CHECKING:
    from .datasets.dataset import Dataset, sql
    from .datasets.table import Table
    from .imports.functions import (
        import_flent,
        import_iperf3,
        import_memtier,
        import_mpstat,
        import_netperf,
        import_nginx,
        import_pcap,
        import_perf,
        import_ss,
        import_tc,
        import_tcp_info,
    )
    from .live.record import sockets
    from .measured.put import beside
    from .pages.figure import figure, figures
    from .pages.fleet_report import fleet_report
    from .reading import allow_foreign_files
    from .runs.api import compare, open, run
    from .runs.differences import diff
    from .runs.results import Run
    from .writing import allow_foreign_folders

__all__ = [
    "Cancelled",
    "ClusterError",
    "Dataset",
    "EngineError",
    "KernelUnsupported",
    "MissingColumn",
    "MissingTable",
    "Run",
    "RunFolderError",
    "ScenarioError",
    "Table",
    "TcpkneeError",
    "UsageError",
    "allow_foreign_files",
    "allow_foreign_folders",
    "beside",
    "compare",
    "diff",
    "figure",
    "figures",
    "fleet_report",
    "import_flent",
    "import_iperf3",
    "import_memtier",
    "import_mpstat",
    "import_netperf",
    "import_nginx",
    "import_pcap",
    "import_perf",
    "import_ss",
    "import_tc",
    "import_tcp_info",
    "open",
    "run",
    "sockets",
    "sql",
]

_LAZY = {
    "run": "runs.api",
    "compare": "runs.api",
    "open": "runs.api",
    "diff": "runs.differences",
    "beside": "measured.put",
    "Run": "runs.results",
    "Table": "datasets.table",
    "sockets": "live.record",
    "sql": "datasets.dataset",
    "Dataset": "datasets.dataset",
    "allow_foreign_files": "reading",
    "allow_foreign_folders": "writing",
    "figure": "pages.figure",
    "figures": "pages.figure",
    "fleet_report": "pages.fleet_report",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from ._core import version

        return version()
    module = "imports.functions" if name.startswith("import_") else _LAZY.get(name)
    if module is not None:
        from importlib import import_module

        return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to use, also what is imported at first use."""
    return sorted({*globals(), *__all__, "__version__"})
