"""What a host is set to and what it counted, as one file that a colleague can send."""

from .elsewhere import take_in
from .snapshot import FORMAT, VERSION, Missing, Row, Snapshot
from .take import take

__all__ = ["FORMAT", "VERSION", "Missing", "Row", "Snapshot", "take", "take_in"]
