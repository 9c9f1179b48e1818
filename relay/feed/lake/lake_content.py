"""Questions about the rows of a table in a lake."""

import pyarrow as pa
import pyarrow.compute as pc

from relay.feed.lake.lake_table import LakeTable


def is_empty(table: LakeTable) -> bool:
    """Return whether a table has no row."""
    with table.scan() as reader:
        return not any(batch.num_rows for batch in reader)


def has_zero(table: LakeTable, name: str) -> bool:
    """Return whether some row has 0 or NULL in a column."""
    with table.scan([name]) as reader:
        return any(
            pc.any(pc.fill_null(pc.equal(batch.column(0), pa.scalar(0).cast(batch.schema.field(0).type)), True)).as_py()
            for batch in reader
        )
