"""Kneepoint: a workbench for TCP congestion control.

    import kneepoint
    run = kneepoint.compare("cubic", "bbr1", rate="50Mbit/s", rtt="100ms", loss="1.5%")

`run`, `compare` and `open` return a `Run` with its tables, statistics and verdicts;
`sockets` returns the TCP sockets of this host, `import_ss` those of dumps of ss, `import_tcp_info` those of M-Lab's
files, `import_nginx` the requests of access logs, `import_pcap` the connections of packet captures, `import_iperf3` and
`import_flent` what these measured, `sql` asks a folder of tables. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import (
    Cancelled,
    EngineError,
    KernelUnsupported,
    KneepointError,
    MissingTable,
    RunFolderError,
    ScenarioError,
    UsageError,
)

if TYPE_CHECKING:
    from .api import compare, open, run
    from .observe.imports import import_flent, import_iperf3, import_nginx, import_pcap, import_ss, import_tcp_info
    from .observe.record import sockets
    from .observe.sql import sql
    from .results import Run, Table
    from .writing import allow_foreign_folders

__all__ = [
    "Cancelled",
    "EngineError",
    "KernelUnsupported",
    "KneepointError",
    "MissingTable",
    "Run",
    "RunFolderError",
    "ScenarioError",
    "Table",
    "UsageError",
    "allow_foreign_folders",
    "compare",
    "import_flent",
    "import_iperf3",
    "import_nginx",
    "import_pcap",
    "import_ss",
    "import_tcp_info",
    "open",
    "run",
    "sockets",
    "sql",
]

_LAZY = {
    "run": "api",
    "compare": "api",
    "open": "api",
    "Run": "results",
    "Table": "results",
    "import_flent": "observe.imports",
    "import_iperf3": "observe.imports",
    "import_nginx": "observe.imports",
    "import_pcap": "observe.imports",
    "import_ss": "observe.imports",
    "import_tcp_info": "observe.imports",
    "sockets": "observe.record",
    "sql": "observe.sql",
    "allow_foreign_folders": "writing",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from ._core import version

        return version()
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
