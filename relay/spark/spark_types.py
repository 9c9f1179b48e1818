"""The columns of all levels as Spark has them."""

import re
from typing import Final

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
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from relay.binlog_tables.typed.column_kinds import JSON

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
    """Return the type of a column of this kind."""
    match = _DECIMAL.fullmatch(kind)
    return DecimalType(int(match[1]), int(match[2])) if match else _TYPES[kind]
