"""The heads of statements in columns for Spark: what a statement does, the table that it changes or defines, and the engine of that.

Of several tables in one statement the first is found; those that triggers, functions and procedures change are not.
"""

from collections.abc import Callable
from typing import Final, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from protocol.sql.statements.statement_head import statement_head

_TEXTS: Final = ("verb", "what", "schema", "table", "engine")
_FLAGS: Final = ("temporary", "if_not_exists", "changes_rows")
_HEAD: Final = pa.struct([(name, pa.string()) for name in _TEXTS] + [(name, pa.bool_()) for name in _FLAGS])
_HEAD_OF_SPARK: Final = ", ".join([f"{name} string" for name in _TEXTS] + [f"{name} boolean" for name in _FLAGS])
_UDF: Final = cast("Callable[..., Callable[[Column], Column]]", arrow_udf)
"""Its stub requires the kind of function, which Spark infers from the types."""
_DEFINES: Final = ("CREATE TABLE", "ALTER TABLE")


def head_of(statement: str = "digest_text") -> Column:
    """Return the head of the statement: a struct whose texts are NULL if there is none.

    Its fields are verb, what (of a definition, such as CREATE TABLE), schema, table, engine, temporary, if_not_exists, changes_rows.
    """
    return _UDF(_heads, _HEAD_OF_SPARK)(F.col(statement))


def _heads(statements: pa.Array) -> pa.Array:
    """Return the heads; each different statement is read once."""
    encoded = statements.dictionary_encode()
    return pa.array([_fields(text) for text in encoded.dictionary.to_pylist()], _HEAD).take(encoded.indices)


def _fields(text: str) -> dict[str, object]:
    head = statement_head(text)
    return {
        "verb": head.verb or None,
        "what": f"{head.verb} {head.thing}".rstrip() if head.defines else None,
        "schema": head.schema or None,
        "table": head.table or None,
        "engine": head.engine or None,
        "temporary": head.temporary,
        "if_not_exists": head.if_not_exists,
        "changes_rows": head.changes_rows,
    }


def changed_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table that the INSERT, REPLACE, UPDATE, DELETE or LOAD DATA changes; NULL for other statements."""
    head = head_of(statement)
    return F.when(head["changes_rows"], _table(head, schema))


def defined_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table of the CREATE TABLE or ALTER TABLE; NULL for other statements, and for temporary tables."""
    head = head_of(statement)
    return F.when(head["what"].isin(*_DEFINES) & ~head["temporary"], _table(head, schema))


def created_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table that the CREATE TABLE certainly creates, temporary ones too; NULL for other statements."""
    head = head_of(statement)
    return F.when((head["what"] == "CREATE TABLE") & ~head["if_not_exists"], _table(head, schema))


def named_engine(statement: str = "digest_text") -> Column:
    """Return the engine that a CREATE TABLE or ALTER TABLE gives its table; NULL if it names none."""
    return head_of(statement)["engine"]


def defined_thing(statement: str = "digest_text") -> Column:
    """Return what a definition does, as CREATE TABLE, DROP VIEW, ALTER DATABASE; NULL for other statements."""
    return head_of(statement)["what"]


def named_table(statement: str = "digest_text", schema: str = "schema") -> Column:
    """Return schema.table that a definition of a table or an index names first; NULL for others."""
    head = head_of(statement)
    return F.when(head["what"].isNotNull(), _table(head, schema))


def _table(head: Column, schema: str) -> Column:
    """Return schema.table; NULL if the statement names none."""
    return F.concat(F.coalesce(head["schema"], F.col(schema), F.lit("")), F.lit("."), head["table"])
