"""Tables of paths that a scenario's `[[sample]]` names: Parquet as CSV, which is what the scenario's reader takes.

What travels to other processes with a scenario is this text, so they need neither the file nor this module.
"""

from __future__ import annotations

from typing import BinaryIO


def as_csv(file: BinaryIO) -> str:
    """The table in a Parquet file, as CSV with a header. Raises `OSError`."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    out = pa.BufferOutputStream()
    try:
        csv.write_csv(parquet.ParquetFile(file).read(), out)
    except (OSError, pa.ArrowException) as error:
        raise OSError(" ".join(str(error).split()).rstrip(".")) from None
    text: bytes = out.getvalue().to_pybytes()
    return text.decode("utf-8")
