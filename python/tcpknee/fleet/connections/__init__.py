"""The table `connections`: one row per connection of recordings, imports and runs (docs/fleet.md).

from tcpknee.fleet import connections
table = connections.read(["rec/edge1", "rec/edge2"], ["algorithm", "srtt_us"], where="bytes_acked > 1000000")
connections.write(["rec/edge1"], "conn")
"""

from __future__ import annotations

from .columns import COLUMNS, Column
from .gather import Fleet, opened, read, write
from .lake import Lake

__all__ = ["COLUMNS", "Column", "Fleet", "Lake", "opened", "read", "write"]
