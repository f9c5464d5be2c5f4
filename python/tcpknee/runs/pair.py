"""The two hosts of the engine hosts, as the user names them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tcpknee.errors import UsageError
from tcpknee.remote.transport import LOCAL, check_name


@dataclass(frozen=True)
class Pair:
    """Sender and receiver as ssh knows them, or "local"; "" where none was named. The receiver's `address` for data,
    where it is not the one of ssh; the first `port` to listen at, 0: any. `netem`: the hosts' own
    makes the scenario's path. `programs`: those of the scenario may run there."""

    sender: str
    receiver: str
    address: str | None = None
    port: int = 0
    netem: bool = False
    programs: bool = False

    @staticmethod
    def of(given: Pair | Sequence[str]) -> Pair:
        """What was given, checked. Raises `UsageError`."""
        if isinstance(given, Pair):
            pair = given
        elif isinstance(given, str) or len(given) != 2:
            raise UsageError(f"hosts: got {given!r}; expected two, the sender and the receiver.")
        else:
            pair = Pair(given[0], given[1])
        for option, name in (("--sender", pair.sender), ("--receiver", pair.receiver)):
            if not name:
                raise UsageError(
                    f"{option}: got none with the engine hosts; expected a host as ssh knows it, or {LOCAL}, as in "
                    "--engine hosts --sender local --receiver user@host."
                )
            check_name(option, name)
        if pair.address is not None:
            try:
                address = ipaddress.ip_address(pair.address)
            except ValueError:
                raise UsageError(f"--address: got {pair.address!r}; expected an IP address of the receiver.") from None
            if address.is_link_local:
                raise UsageError(
                    f"--address: got {pair.address!r}, which is of one link alone; expected an address of the receiver "
                    "that holds on every interface of the sender."
                )
        if not 0 <= pair.port < 1 << 16:
            raise UsageError(f"--port: got {pair.port}; expected a port from 1 to 65535.")
        return pair

    def check_ports(self, flows: int, file: str) -> None:
        """Refuses ports beyond the last one: each `[[flow]]` takes the next. Raises `UsageError`."""
        if self.port and self.port + flows - 1 >= 1 << 16:
            raise UsageError(
                f"--port: got {self.port} for {flows} [[flow]] tables of {file}, each of which takes the next port; "
                f"expected {(1 << 16) - flows} at most."
            )

    def facts(self) -> dict[str, Any]:
        """For `run.json`."""
        return asdict(self)
