"""Tables of paths that a scenario's `[[sample]]` names: Parquet as CSV, which is what the scenario's reader takes.

What travels to other processes with a scenario is this text, so they need neither the file nor this module.
"""

from __future__ import annotations

from tcpknee import reading

_ROWS = 1024
"""Decoded at once: a small file may unfold into much more than its size."""


def as_csv(content: bytes, *, most_bytes: int) -> str:
    """Converts a Parquet file to CSV with a header. Raises `OSError` for no table, or one of more bytes."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    out = pa.BufferOutputStream()
    try:
        table = parquet.ParquetFile(pa.BufferReader(content))
        with csv.CSVWriter(out, table.schema_arrow) as written:
            for batch in table.iter_batches(batch_size=_ROWS):
                if out.tell() + batch.nbytes > most_bytes:
                    raise OSError(f"it has more than {most_bytes >> 20} MiB of values")
                written.write_batch(batch)
        return bytes(out.getvalue()).decode("utf-8")
    except reading.parquet_errors() as error:
        raise OSError(" ".join(str(error).split()).rstrip(".")) from None
