"""FLOAT columns of a table that was loaded from a dump: mysqldump and mariadb-dump write six digits of them, which are another number."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.rows.lake_columns import parsed_type
from relay.feed.rows.net_changes import TableRows

_DUMPED_DIGITS = 6


class DumpedFloats:
    """A check whether a dump may have cut numbers of a table: a server that has one with more digits was not made from one."""

    def __init__(self, rows: TableRows) -> None:
        # The server itself rounds FLOAT(7,3) before it is stored.
        self._names = [
            one.name for one in rows.columns if pa.types.is_float32(one.arrow) and "," not in parsed_type(one.source)[1]
        ]
        self._there = False
        self._long = False

    def look_at(self, rows: pa.Table) -> None:
        """Examine some of the table's rows."""
        for name in self._names:
            column = rows.column(name)
            self._there = self._there or column.null_count < rows.num_rows
            self._long = self._long or bool(pc.any(pc.greater(_digits(column), _DUMPED_DIGITS)).as_py())

    @property
    def doubt(self) -> str:
        """Why the table may differ from the source's; empty if it does not."""
        if not self._there or self._long:
            return ""
        return (
            f"a dump has six digits of FLOAT columns ({', '.join(self._names)}): take a copy of the data directory, or a snapshot "
            "of the source itself"
        )


def _digits(column: Any) -> Any:
    """Return how many digits each number has in its shortest form."""
    texts = pc.replace_substring_regex(column.cast(pa.string()), r"[eE].*$|\.0$", "")
    return pc.utf8_length(pc.replace_substring_regex(texts, r"^[-0.]+|[.]", ""))
