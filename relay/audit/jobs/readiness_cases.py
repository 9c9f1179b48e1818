"""The places in an archive where the checks of readiness find something: frames of cases, all with the same columns.

The columns are check, count, text, file, position and time: `count` cases of a check look alike, and the first of them is at the place.
`text` is a statement without its literals, a table, or a type of events.
"""

import functools
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from relay.audit.readiness import defined_tables as tables
from relay.audit.readiness import events, view_checks
from relay.audit.readiness.checks import found_in, shown
from relay.audit.readiness.logged_statement import LoggedStatement
from relay.audit.runner.audit import Audit
from relay.audit.shared.event_counts import event_counts
from relay.audit.shared.group_engines import changed_groups
from relay.audit.shared.statement_tables import changed_table, created_table, head_of

_INSERT_ID: Final = 2
_KEY: Final = ["sql_mode", "seeds", "loads", "schema", "digest_text"]
# This finds month or day 00 in a value of a row's JSON.
_ZERO_DATE: Final = r'"[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)[ "]'


def statement_digests(audit: Audit) -> DataFrame:
    """Return statements by file and digest text, sql_mode and seed, with their count, and the first."""
    read = audit.read("statements", "file", "position", "time", "type", "schema", "sql_mode", "seeds", "digest_text")
    return audit.keep(
        read.where("digest_text IS NOT NULL")
        .selectExpr(
            "file",
            "position",
            "time",
            "sql_mode",
            f"seeds & {_INSERT_ID} AS seeds",
            "type = 'Execute_load_query' AS loads",
            "schema",
            "digest_text",
        )
        .groupBy("file", *_KEY)
        .agg(F.count("*").alias("count"), F.min("position").alias("position"), F.min("time").alias("time"))
    )


def older_table_cases(digests: DataFrame) -> DataFrame:
    """Return tables that statements change, without a CREATE TABLE in what was read. A case is a table in a file."""
    made = digests.select(F.lower(created_table()).alias("made")).where("made IS NOT NULL").distinct()
    changed = digests.withColumn("text", changed_table()).where("text IS NOT NULL AND text NOT LIKE 'mysql.%'")
    return (
        changed.join(F.broadcast(made), F.expr("lower(text) = made"), "left_anti")
        .groupBy("file", "text")
        .agg(F.sum("count").alias("count"), F.min("position").alias("position"), F.min("time").alias("time"))
        .select(F.lit(view_checks.OLDER_TABLES.name).alias("check"), "count", "text", "file", "position", "time")
    )


def logged_changes_cases(digests: DataFrame) -> DataFrame:
    """Return changes of rows that were logged as statements. A case is a kind of them in a file."""
    return (
        digests.withColumn("head", head_of())
        .where("head.changes_rows")
        .withColumn("text", F.col("head.verb"))
        .groupBy("file", "text")
        .agg(F.sum("count").alias("count"), F.min("position").alias("position"), F.min("time").alias("time"))
        .select(F.lit(view_checks.LOGGED_CHANGES.name).alias("check"), "count", "text", "file", "position", "time")
    )


def statement_cases(audit: Audit, by_file: DataFrame, family: str) -> DataFrame:
    """Return statements, judged once for each digest text, sql_mode and seed. `by_file` is the result of `statement_digests`."""
    key = _KEY
    distinct = by_file.groupBy(*key).agg(
        F.sum("count").alias("count"), audit.first_of("position", "time").alias("first")
    )
    flat = distinct.selectExpr(*key, "count", "first.file AS file", "first.position AS position", "first.time AS time")
    judge = F.udf(functools.partial(_judge, family=family), "array<string>", useArrow=False)
    judged = flat.withColumn("checks", judge(*key)).where("size(checks) > 0")
    return judged.withColumn("text", F.udf(shown, "string", useArrow=False)("digest_text")).select(
        F.explode("checks").alias("check"), "count", "text", "file", "position", "time"
    )


def _judge(
    sql_mode: int | None, seeds: int, loads: bool, schema: str | None, digest_text: str, family: str
) -> list[str]:
    """Return names of the checks that find something in a statement; this runs once for each distinct one."""
    statement = LoggedStatement(digest_text, schema or "", sql_mode or 0, seeds, loads)
    return [check.name for check in found_in(statement, family)]


def event_cases(audit: Audit, family: str) -> DataFrame:
    """Return types of events, and files without GTIDs."""
    counted = _types_counted(audit)
    frames = [
        counted.where(F.col("type_code").isin(sorted(types))).select(
            F.lit(check.name).alias("check"), "count", F.col("type").alias("text"), "file", "position", "time"
        )
        for check, types in events.CHECKS.items()
        if check.concerns_servers(family)
    ]
    if events.NO_GTIDS.concerns_servers(family):
        frames.append(_without_gtids(counted))
    return functools.reduce(DataFrame.unionByName, frames)


def _types_counted(audit: Audit) -> DataFrame:
    """Return (file, type, type_code, count, position, time); events that a later source's files repeat count once."""
    key = ("file", "type", "type_code")
    if not audit.repeats:
        return (
            event_counts(audit)
            .where("type_code IS NOT NULL")
            .groupBy(*key)
            .agg(
                F.sum("events").alias("count"),
                F.min("first_position").alias("position"),
                F.min("first_time").alias("time"),
            )
        )
    return audit.keep(
        audit.once(audit.read("events", "file", "position", "time", "type", "type_code"))
        .where("type_code IS NOT NULL")
        .groupBy(*key)
        .agg(F.count("*").alias("count"), F.min("position").alias("position"), F.min("time").alias("time"))
    )


def _without_gtids(counted: DataFrame) -> DataFrame:
    of_gtids = F.col("type_code").isin(sorted(events.GTID_EVENTS))
    of_transactions = F.col("type_code").isin(sorted(events.TRANSACTION_EVENTS))
    return (
        counted.groupBy("file")
        .agg(
            F.sum(F.when(of_gtids, 1).otherwise(0)).alias("gtids"),
            F.sum(F.when(of_transactions, 1).otherwise(0)).alias("transactions"),
            F.min(F.when(of_transactions, F.col("position"))).alias("position"),
            F.min(F.when(of_transactions, F.col("time"))).alias("time"),
        )
        .where("gtids = 0 AND transactions > 0")
        .select(
            F.lit(events.NO_GTIDS.name).alias("check"),
            F.lit(1).cast("bigint").alias("count"),
            F.lit("the whole file").alias("text"),
            "file",
            "position",
            "time",
        )
    )


def table_cases(audit: Audit, mapped: DataFrame, family: str) -> DataFrame:
    """Return tables whose rows are in the archive, by their Table_maps and the recorded schema. A case is a table."""
    named = mapped.withColumn("text", F.concat_ws(".", "schema", "table"))
    by_types = named.select(F.explode("checks").alias("check"), "text", "file", "position", "time")
    frames = [
        by_types.where(F.col("check").isin([one.name for one in tables.OF_TYPES if one.concerns_servers(family)]))
    ]
    for check, condition in (
        (tables.NO_PRIMARY_KEY, "has_primary_key = false"),
        (tables.PRIMARY_KEY_UNKNOWN, "has_primary_key IS NULL"),
        (tables.SYSTEM_TABLE_ROWS, "schema = 'mysql'"),
    ):
        chosen = named.where(condition)
        if check is not tables.SYSTEM_TABLE_ROWS:
            chosen = chosen.where("schema <> 'mysql'")
        frames.append(chosen.select(F.lit(check.name).alias("check"), "text", "file", "position", "time"))
    return (
        functools.reduce(DataFrame.unionByName, frames)
        .groupBy("check", "text")
        .agg(audit.first_of("position", "time").alias("first"))
        .selectExpr(
            "check", "1L AS count", "text", "first.file AS file", "first.position AS position", "first.time AS time"
        )
    )


def zero_date_cases(audit: Audit, dated: list[tuple[str, str]]) -> DataFrame:
    """Return rows of the tables `dated` (schema, table) in which a date has zero parts."""
    rows = audit.read("rows", "file", "position", "time", "schema", "table", "before", "after").where(
        F.col("schema").isin(sorted({schema for schema, _ in dated}))
        & F.col("table").isin(sorted({table for _, table in dated}))
    )
    return (
        rows.where(F.col("after").rlike(_ZERO_DATE) | F.col("before").rlike(_ZERO_DATE))
        .groupBy("file", "schema", "table")
        .agg(F.count("*").alias("count"), F.min("position").alias("position"), F.min("time").alias("time"))
        .select(
            F.lit(tables.ZERO_DATE_ROWS.name).alias("check"),
            "count",
            F.concat_ws(".", "schema", "table").alias("text"),
            "file",
            "position",
            "time",
        )
    )


def mixed_cases(audit: Audit, known: Sequence[tuple[str, int]]) -> DataFrame:
    """Return transactions that change tables with and without transactions, as far as the engines are known, except those at the places
    `known`: (file, position)."""
    mixed = changed_groups(audit).judged.where("transactional AND plain")
    if known:
        told = F.broadcast(audit.frame_of("of string, first bigint", known))
        mixed = mixed.join(told, F.expr("file = of AND start = first"), "left_anti")
    return (
        mixed.groupBy("file", "tables")
        .agg(F.count("*").alias("count"), F.min("start").alias("position"), F.min("time").alias("time"))
        .select(
            F.lit(tables.MIXED_ENGINES.name).alias("check"),
            "count",
            F.array_join("tables", ", ").alias("text"),
            "file",
            "position",
            "time",
        )
    )
