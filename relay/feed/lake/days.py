"""The column `day` of a Delta table whose files belong to one day each."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

DAY: Final = "day"


def with_days(rows: pa.Table | pa.RecordBatchReader, day_of: str) -> pa.Table | pa.RecordBatchReader:
    """Return the rows with the column `day`, which is that of the time in `day_of`."""
    if isinstance(rows, pa.Table):
        return rows.append_column(DAY, rows.column(day_of).cast(pa.date32()))
    schema = rows.schema.append(pa.field(DAY, pa.date32()))
    batches = (
        pa.RecordBatch.from_arrays(
            [*one.columns, one.column(one.schema.get_field_index(day_of)).cast(pa.date32())], schema=schema
        )
        for one in rows
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def by_days(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, day_of: str
) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the rows with these columns, those of each batch by day, with the partition of the day."""
    for batch in batches:
        arrays: list[Any] = [batch.column(batch.schema.get_field_index(one.name)).cast(one.type) for one in schema]
        table = pa.Table.from_arrays(arrays, schema=schema)
        days = table.column(day_of).cast(pa.date32())
        for day in pc.unique(days):
            of_day = pc.equal(days, day) if day.is_valid else pc.is_null(days)
            yield {DAY: day.as_py().isoformat() if day.is_valid else None}, table.filter(of_day)
