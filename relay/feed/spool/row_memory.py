"""More memory for DuckDB where a single row needs it: a value that is larger than its blocks is never written to disk."""

from collections.abc import Callable
from typing import Final

import duckdb

from relay.feed.spool.part_rows import PartRows

_TIMES: Final = 12
"""DuckDB has a row so many times in memory: images before and after, their texts, their values, and rows that are compared."""
_MOST_BYTES: Final = 1536 << 20
"""No row gets more than this: rows of 60 MB need 1 GB."""


def largest_row(rows: PartRows) -> int:
    """Return the bytes of the largest row."""
    return max((piece.slice(at, 1).nbytes for piece in rows.pieces() for at in range(piece.num_rows)), default=0)


def done_in_memory(connection: duckdb.DuckDBPyConnection, rows: PartRows, do: Callable[[], None]) -> bool:
    """Do something with rows that has no effect if it lacks memory; then once more, with what the largest of them needs.

    Return False if that is not enough, or more than any row gets.
    """
    try:
        do()
        return True
    except duckdb.OutOfMemoryException:
        limit = _limit(connection)
        wanted = min(_TIMES * largest_row(rows), _MOST_BYTES)
    if wanted <= limit:
        return False
    connection.execute(f"SET memory_limit = '{wanted}B'")
    try:
        do()
        return True
    except duckdb.OutOfMemoryException:
        return False
    finally:
        connection.execute(f"SET memory_limit = '{limit}B'")


def _limit(connection: duckdb.DuckDBPyConnection) -> int:
    """Return DuckDB's limit in bytes: it prints 244.1 MiB."""
    text = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
    number, unit = text.split()
    return int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB").index(unit))
