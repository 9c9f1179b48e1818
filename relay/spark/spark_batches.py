"""The reading of a split as Spark's columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, VariantType, VariantVal

from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.wanted import Wanted
from relay.spark.spark_types import VARIANT

if TYPE_CHECKING:
    from relay.binlog_tables.typed.table_changes import ChangeOptions


def read_for_spark(
    split: Split, options: "ReadOptions | ChangeOptions", wanted: Wanted, *, keeps: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split. Raises: BinlogUnreadable with failfast; with `keeps`, FileLost."""
    store = store_of(split.path)
    if isinstance(options, ReadOptions):
        yield from read_split(store, split, options, wanted, keeps=keeps)
        return
    from relay.binlog_tables.typed.table_changes import read_changes

    documents = [column.name for column in options.columns if column.kind == VARIANT and column.name in options.names]
    for batch in read_changes(store, split, options, wanted, keeps=keeps):
        yield _with_variants(batch, documents) if documents else batch


def _with_variants(batch: pa.RecordBatch, documents: list[str]) -> pa.RecordBatch:
    """Return the batch, with texts of documents as VARIANT."""
    (field,) = to_arrow_schema(StructType([StructField("v", VariantType())]))
    for name in documents:
        at = batch.schema.get_field_index(name)
        texts = batch.column(at).to_pylist()
        values = [None if text is None else VariantVal.parseJson(text) for text in texts]
        made = [None if one is None else {"value": bytes(one.value), "metadata": bytes(one.metadata)} for one in values]
        batch = batch.set_column(at, field.with_name(name), pa.array(made, field.type))
    return batch
