"""The transactions that a view with `dependencies = "writeset"` would let replicas apply in parallel, for the audit `transactions`.

It uses the code that builds views, with a task for each file.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from protocol.position import is_binlog_name
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, Place
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.recorded import recorded_bytes
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.report.content import Bars, ReportTable, Section
from relay.schema_history.schema_record import parse_lines
from relay.view.inspect.dry_run_waits import WaitsAhead, find_waits
from relay.view.inspect.file_pass import LookedAtFile
from relay.view.rules.settings import ViewSettings
from relay.view.translate.wait_counts import WaitCounts

# The owner of the GTIDs makes no difference.
_SETTINGS: Final = ViewSettings("NAME", "assign", UUID(int=0), dependencies="writeset")
_UNNUMBERED: Final = "binlog.000001"
_TOTAL: Final = "transactions bigint, beside_the_one_before bigint, batches bigint, mean_width double"
_SERIAL: Final = "why string, `table` string, transactions bigint"

WAYS_ON: Final = {
    "no_key": "Give the table a primary key.",
    "values_not_compared": "Nothing; or another collation of the key's columns, or numbers in their place.",
    "table_unknown": "Set record_schema, with its privileges, or an archive that begins before the table was made.",
    "foreign_keys_unknown": "The same; foreign keys are unknown, too, where the parent is.",
    "definition_differs": "The rows do not fit what is known: a definition was not in the binlog (sql_log_bin = 0).",
    "engine": "InnoDB or MyISAM: rows of MERGE, FEDERATED and ARCHIVE tables may depend on each other unseen.",
    "rows_in_order": "Nothing: tables with a column FTS_DOC_ID take rows in ascending order only.",
    "too_many_keys": "The table has more than 256 keys and references.",
    "cascade": "Nothing: the source does not log what a cascade changes.",
    "statement": "binlog_format = ROW; definitions are counted here, too.",
    "large_transaction": "Nothing; smaller transactions.",
    "history_full": "Nothing; smaller transactions.",
    "same_rows": "Nothing: they change rows in common.",
    "values_missing": "binlog_row_image = FULL.",
    "rows_not_read": "binlog_row_image = FULL.",
}
"""The measures that a DBA can take for each cause; docs/VIEWS.md has the same."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class _OnExecutors:
    """A TaskRunner with a Spark task for each."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def __call__(self, function: Callable[[_Task], _Result], tasks: Sequence[_Task], /) -> Sequence[_Result]:
        """Return the results, in the tasks' order."""
        return self._context.parallelize(tasks, len(tasks)).map(function).collect()


def dry_run_waits(audit: Audit) -> WaitsAhead:
    """Return the waits of a view that begins with the archive, and of one for each later source of it. All files up to --until are
    read, because the result depends on how tables were defined; those that were written at another time are not counted. MariaDB's
    files have none."""
    found = WaitsAhead()
    if not any(head.flavour == "mysql" for head in audit.heads):
        return found
    audit.step("Comparing keys")
    store = store_of(audit.options.archive)
    run = _OnExecutors(audit.spark)
    wanted = {file.name for file in audit.files}
    for source in _sources(audit.files_from_the_first):
        shown = {_name(file): file.name for file, _end in source}
        files = [LookedAtFile(_name(file), end, partial(store.open, file.path)) for file, end in source]
        directory = source[0][0].path.rpartition("/")[0] or "."
        recorded = list(parse_lines(recorded_bytes(store, directory)))
        one = find_waits(files, _SETTINGS, recorded, is_wanted=lambda file: shown[file.name] in wanted, run=run)  # noqa: B023
        found.waits.add(one.waits)
        found.unread += [part._replace(file=shown[part.file]) for part in one.unread]
    return found


def _sources(files: Iterable[tuple[SeriesFile, int]]) -> list[list[tuple[SeriesFile, int]]]:
    """Return the files of each source: their numbers go up. A file without a number is separate."""
    found: list[list[tuple[SeriesFile, int]]] = []
    for one in files:
        before = found[-1][-1][0] if found else None
        if before is None or before.generation != one[0].generation or before.number >= one[0].number:
            found.append([])
        found[-1].append(one)
    return found


def _name(file: SeriesFile) -> str:
    base = file.name.rpartition("/")[2]
    return base if is_binlog_name(base) else _UNNUMBERED


def waits_frames(audit: Audit, waits: WaitCounts) -> dict[str, DataFrame]:
    """Return all that was counted."""
    told = waits.record()
    serial = [(one["why"], one["table"], one["transactions"]) for one in told.pop("serial")]
    return {
        "dependencies": audit.frame_of(_TOTAL, [tuple(told.values())]),
        "serial": audit.frame_of(_SERIAL, serial),
    }


def waits_section(waits: WaitCounts, limit: int) -> Section:
    """Return how many may run in parallel, and why the others may not."""
    serial = waits.serial.most_common()
    rows = [
        (why, table or None, count, count / max(1, waits.groups), WAYS_ON[why])
        for (why, table), count in serial[:limit]
    ]
    by_cause = [(why, count) for why, count in waits.by_cause().items() if count]
    text = (
        'A [[view]] with dependencies = "writeset" would let replicas apply these transactions side by side as far as they change '
        f"no row in common: {waits.told()}. Replicas that wait for their disk after each transaction gain by it, up to the number of "
        "their workers."
    )
    return Section(
        "Dependencies",
        text,
        [Bars("Transactions that wait for the one before them", sorted(by_cause, key=lambda one: -one[1]))],
        [
            ReportTable(
                "Why they wait",
                {"cause": "code", "table": "code", "transactions": "count", "share": "percent", "what to do": "text"},
                rows,
                max(0, len(serial) - limit),
                "What follows one that all wait for has its cause.",
            )
        ],
    )


def unread_finding(found: WaitsAhead, limit: int) -> list[AuditFinding]:
    """Return a finding about what is missing from the numbers."""
    if not found.unread:
        return []
    places = [Place(part.file, part.offset, part.text) for part in found.unread[:limit]]
    text = "Their transactions are not in the numbers, and what they define is not known to those behind them."
    title = "Parts of files in which nobody looked at dependencies"
    return [AuditFinding("dependencies_unread", "note", title, text, len(found.unread), places)]
