"""A fleet that never was: connections of many clients, simulated from a stated mix of paths (docs/fleet-synthetic.md).

from tcpknee.fleet import synthetic
mix = synthetic.read("gallery/fleets/demo.toml")
told = synthetic.write(mix, "fleet")

`mix` reads the mix, `plan` draws paths and assigns arms, `simulate` runs them, `recording` turns what came of it into
tables as `knee record` and `knee assign` write them, one folder for each host.
"""

from __future__ import annotations

from .fleet import write
from .mix import Arm, Mix, read, shipped

__all__ = ["Arm", "Mix", "read", "shipped", "write"]
