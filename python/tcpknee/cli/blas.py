"""numpy without threads of its linear algebra."""

from __future__ import annotations

import os
import sys

_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Imports numpy with one thread of OpenBLAS, of which no command that runs scenarios asks anything.

    Else its threads are started with the library, one per processor, which is half of the time of the import. What this
    process starts later is not told.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
