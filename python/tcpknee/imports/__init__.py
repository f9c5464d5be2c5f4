"""What other tools wrote, as tables: dumps of ss, logs of nginx, packet captures, output of iperf3 and others.

    from tcpknee import import_ss, imports
    table = import_ss(["ss-20260821T120000.txt.zst"])
    report = imports.write("nginx", ["access.log"], "imported")
    report = imports.write(imports.recognised("unknown.gz").name, "unknown.gz", "imported")

`IMPORTERS` describes each importer: its tables, its options, what its report counts. It comes from
`crates/import/src/`, and the functions, the command line and the page from it.
"""

from __future__ import annotations

from .kinds import IMPORTERS, Count, Kind, Option, Table
from .reading import NotUnderstood, read, recognised, write

__all__ = ["IMPORTERS", "Count", "Kind", "NotUnderstood", "Option", "Table", "read", "recognised", "write"]
