"""The columns of all levels as Spark has them, and how a split is read as them."""

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
)

from relay.audit.decode.levels import ReadOptions, read_split
from relay.audit.plan.packed_store import store_of
from relay.audit.plan.splits import Split
from relay.audit.plan.wanted import Wanted
from relay.audit.typed.column_kinds import JSON
from relay.audit.typed.table_changes import ChangeOptions, read_changes

VARIANT: Final = "variant"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_TYPES: Final[dict[str, DataType]] = {
    "string": StringType(),
    "binary": BinaryType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "float": FloatType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "array<string>": ArrayType(StringType()),
    "array<float>": ArrayType(FloatType()),
    JSON: VariantType(),
}


def spark_type(kind: str) -> DataType:
    """The type of a column of this kind."""
    match = _DECIMAL.fullmatch(kind)
    return DecimalType(int(match[1]), int(match[2])) if match else _TYPES[kind]


def read_for_spark(
    split: Split, options: ReadOptions | ChangeOptions, wanted: Wanted, *, keeps: bool = False
) -> Iterator[pa.RecordBatch]:
    """The batches of a split. Raises: BinlogUnreadable with failfast; with `keeps`, FileLost."""
    store = store_of(split.path)
    if isinstance(options, ReadOptions):
        yield from read_split(store, split, options, wanted, keeps=keeps)
        return
    documents = [column.name for column in options.columns if column.kind == VARIANT and column.name in options.names]
    for batch in read_changes(store, split, options, wanted, keeps=keeps):
        yield _with_variants(batch, documents) if documents else batch


def _with_variants(batch: pa.RecordBatch, documents: list[str]) -> pa.RecordBatch:
    """The batch, with texts of documents as VARIANT."""
    (field,) = to_arrow_schema(StructType([StructField("v", VariantType())]))
    for name in documents:
        at = batch.schema.get_field_index(name)
        texts = batch.column(at).to_pylist()
        values = [None if text is None else VariantVal.parseJson(text) for text in texts]
        made = [None if one is None else {"value": bytes(one.value), "metadata": bytes(one.metadata)} for one in values]
        batch = batch.set_column(at, field.with_name(name), pa.array(made, field.type))
    return batch
