"""Files of rows for a commit of Iceberg, each with a least and largest of its columns that no reader is misled by."""

import uuid
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import TableProperties

_METRICS: Final = TableProperties.DEFAULT_WRITE_METRICS_MODE


def written_files(metadata: Any, io: Any, rows: pa.Table) -> Iterator[Any]:
    """The rows in files that no commit names yet.

    A file has one group of rows. Parquet has no least and largest of a group with a value above 4096 bytes, and pyiceberg (0.12) takes
    those of the file's other groups for all of it: by these, such a value would be passed over.
    """
    most = int(
        metadata.properties.get(
            TableProperties.PARQUET_ROW_GROUP_LIMIT, TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT
        )
    )
    for start in range(0, rows.num_rows, most):
        yield from _written(metadata, io, rows.slice(start, most))


def _written(metadata: Any, io: Any, rows: pa.Table) -> list[Any]:
    # Files are called by their number and the uuid: the same one would write over the file before.
    try:
        return list(_dataframe_to_data_files(metadata, rows, io, write_uuid=uuid.uuid4()))
    except UnicodeEncodeError:
        # The largest is cut to 16 characters, the last of which is followed by one that is none (U+D7FF): so nobody is told any.
        untold = metadata.model_copy(update={"properties": {**metadata.properties, _METRICS: "counts"}})
        return list(_dataframe_to_data_files(untold, rows, io, write_uuid=uuid.uuid4()))
