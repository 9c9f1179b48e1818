"""hot-keys: the rows of each table that change most, by their keys, counted one by one."""

from typing import Final

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from relay.audit.history.row_asked import key_text
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place
from relay.audit.runner.job import Job
from relay.audit.runner.row_findings import HAS_FINDING, row_findings
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.recorded import reported_schema
from relay.report.content import Bars, ReportTable, Section
from relay.report.text import number_of

_COLUMNS: Final = ("time", "schema", "table", "operation", "before", "after", "finding")
_OF_TABLE: Final = 10
"""The report shows at most so many keys of a table; hot_keys.parquet has --limit of each."""
_CHARTED: Final = 20
_OPERATIONS: Final = {"inserted": "insert", "updated": "update", "deleted": "delete"}


def run(audit: Audit) -> AuditResult:
    """Make one pass over the rows: each is counted for its key. Spark keeps what does not fit into memory on its disk."""
    audit.step("Looking for primary keys")
    keys = _primary_keys(audit)
    audit.step("Counting changes by key")
    table = F.concat_ws(".", "schema", "table")
    counted = audit.keep(_counted(audit, keys))
    limit = audit.options.limit
    order = Window.partitionBy("schema", "table").orderBy(F.desc("changes"), "key")
    hottest = (
        counted.where("key IS NOT NULL")
        .withColumn("place", F.row_number().over(order))
        .where(F.col("place") <= limit)
        .join(F.broadcast(_by_table(counted)), ["schema", "table"])
    )
    kept = audit.keep(hottest.withColumn("share", F.expr("changes / of_table")))
    totals = counted.agg(
        F.sum("changes").alias("changes"),
        F.sum(F.when(F.col("key").isNull(), F.col("changes"))).alias("keyless"),
        F.count("key").alias("keys"),
        F.sum("wrong").alias("wrong"),
    ).collect()[0]
    shown = kept.where(F.col("place") <= _OF_TABLE)
    count = shown.count()
    first = shown.orderBy(F.desc("changes"), "schema", "table", "place").limit(limit).collect()
    findings = row_findings(audit, table, values=True) if totals["wrong"] else []
    findings += _without_key(audit, counted, keys)
    figures: dict[str, object] = {
        "changes": totals["changes"] or 0,
        "changes_without_key": totals["keyless"] or 0,
        "keys": totals["keys"],
    }
    frame = kept.select(
        "schema",
        "table",
        "key",
        "changes",
        *_OPERATIONS,
        "share",
        "first",
        "last",
        F.col("keys").alias("keys_of_table"),
    )
    section = _section(first, keys, count - len(first))
    return AuditResult(_verdict(first, keys), findings, [section], {"hot_keys": frame}, figures=figures)


def _primary_keys(audit: Audit) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the newest known primary key of each table; it is empty if the table has none."""
    store = store_of(audit.options.archive)
    newest = {file.path.rpartition("/")[0]: file for file in audit.files}
    found = {}
    for directory, file in newest.items():
        schema = reported_schema(store, directory or ".", file.path.rpartition("/")[2], file.end)
        found.update({(one.schema, one.name): one.primary_key for one in schema.latest()})
    return found


def _counted(audit: Audit, keys: dict[tuple[str, str], tuple[str, ...]]) -> DataFrame:
    """Return a row for each key of each table, and one without a key for all changes of a table whose key is unknown."""
    named = F.concat_ws(".", "schema", "table")
    rows = audit.read("rows", *_COLUMNS).where(F.col("operation").isNotNull() & audit.wants_table(named))
    known = audit.frame_of(
        "schema string, table string, columns array<string>",
        [(*table, list(columns)) for table, columns in keys.items() if columns],
    )
    image = F.from_json(F.coalesce("before", "after"), "map<string,string>")
    values = F.transform("columns", lambda column: F.element_at(image, column))
    whole = ~F.exists(values, lambda value: value.isNull())
    return (
        rows.join(F.broadcast(known), ["schema", "table"], "left")
        .withColumn("key", F.when(F.col("columns").isNotNull() & whole, values))
        .groupBy("schema", "table", "key")
        .agg(
            F.count("*").alias("changes"),
            *(F.count_if(F.col("operation") == verb).alias(name) for name, verb in _OPERATIONS.items()),
            F.count_if(F.expr(HAS_FINDING)).alias("wrong"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
        )
    )


def _by_table(counted: DataFrame) -> DataFrame:
    return counted.groupBy("schema", "table").agg(F.sum("changes").alias("of_table"), F.count("key").alias("keys"))


def _told_key(row: Row, keys: dict[tuple[str, str], tuple[str, ...]]) -> str:
    return key_text(keys[row["schema"], row["table"]], tuple(row["key"]))


def _verdict(hottest: list[Row], keys: dict[tuple[str, str], tuple[str, ...]]) -> str:
    if not hottest:
        return "No row with a known key was changed."
    one = hottest[0]
    of = f"{number_of(one['of_table'], 'change')} of {one['schema']}.{one['table']}"
    return f"The row that changed most is {_told_key(one, keys)}: {one['changes']:,} of {of}."


def _section(rows: list[Row], keys: dict[tuple[str, str], tuple[str, ...]], left_out: int) -> Section:
    named = [(f"{row['schema']}.{row['table']}", _told_key(row, keys), row) for row in rows]
    listing = ReportTable(
        "Hot keys",
        {
            "table": "code",
            "key": "code",
            "changes": "count",
            "of the table's": "percent",
            **dict.fromkeys(_OPERATIONS, "count"),
            "first": "time",
            "last": "time",
            "keys of the table": "count",
        },
        [
            (table, key, row["changes"], row["share"], *(row[name] for name in _OPERATIONS), row["first"], row["last"], row["keys"])
            for table, key, row in named
        ],
        left_out=left_out,
    )  # fmt: skip
    bars = Bars("Changes of a key", [(f"{table} {key}", row["changes"]) for table, key, row in named[:_CHARTED]])
    return Section(
        "Hot keys",
        f"Every change was counted; nothing is an estimate. The {_OF_TABLE} keys of each table that changed most. A change that gives "
        "a row another key counts for the key before. Statements that a source logged as such have no rows: they are not among these.",
        charts=[bars] if rows else [],
        tables=[listing],
    )


def _without_key(audit: Audit, counted: DataFrame, keys: dict[tuple[str, str], tuple[str, ...]]) -> list[AuditFinding]:
    tables = counted.where("key IS NULL AND table IS NOT NULL").orderBy(F.desc("changes"), "schema", "table")
    rows = tables.limit(audit.options.limit).collect()
    if not rows:
        return []
    places = [
        Place("", None, f"{row['schema']}.{row['table']}: {_why_none(keys.get((row['schema'], row['table'])))}",
              row["first"], row["changes"])
        for row in rows
    ]  # fmt: skip
    return [
        AuditFinding(
            "rows_without_key",
            "note",
            "Changes of tables whose rows have no known key",
            "They are not among the hot keys. A key is known where the relay recorded it, or the table's CREATE is in the archive.",
            tables.agg(F.sum("changes")).collect()[0][0],
            places,
            tables.count(),
        )
    ]


def _why_none(columns: tuple[str, ...] | None) -> str:
    if columns is None:
        return "nobody told its primary key"
    return "the rows have no column of the key's name" if columns else "it has no primary key"


JOB: Final = Job(
    "hot-keys",
    "Keys that change most",
    "Changes of rows were counted by table and primary key.",
    run,
    takes_tables=True,
    not_in_all="It looks into every row and keeps a number for every key. Name tables with --tables.",
)
