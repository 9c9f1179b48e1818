"""Files of rows for a commit of Iceberg, each with a minimum and maximum of its columns that mislead no reader."""

import uuid
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import TableProperties

_METRICS: Final = TableProperties.DEFAULT_WRITE_METRICS_MODE


def written_files(metadata: Any, io: Any, rows: pa.Table) -> Iterator[Any]:
    """Write the rows into files that no commit names yet.

    A file has one group of rows. Parquet has no minimum and maximum for a group with a value above 4096 bytes, and pyiceberg (0.12) takes those of
    the file's other groups for all of it: such a value would be skipped.
    """
    most = int(
        metadata.properties.get(
            TableProperties.PARQUET_ROW_GROUP_LIMIT, TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT
        )
    )
    for start in range(0, rows.num_rows, most):
        yield from _written(metadata, io, rows.slice(start, most))


def _written(metadata: Any, io: Any, rows: pa.Table) -> list[Any]:
    # Files are named by their number and the uuid: the same one would overwrite the previous file.
    try:
        return list(_dataframe_to_data_files(metadata, rows, io, write_uuid=uuid.uuid4()))
    except UnicodeEncodeError:
        # The maximum is cut to 16 characters, the last of which is followed by one that is invalid (U+D7FF): so none is written.
        untold = metadata.model_copy(update={"properties": {**metadata.properties, _METRICS: "counts"}})
        return list(_dataframe_to_data_files(untold, rows, io, write_uuid=uuid.uuid4()))
