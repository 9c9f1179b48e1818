"""history: every change of one row, in order, also where it had another key, and the definitions of its table in between."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from protocol.sql.tables.source_table import Table
from relay.audit.definitions.schema_changes import SchemaChange, schema_changes
from relay.audit.history.lives import Key, KeyedChange, Move, Order, keys_of_lives, lives_of
from relay.audit.history.row_asked import RowAsked, key_text
from relay.audit.readiness.checks import shown
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.look_alikes import look_alikes
from relay.audit.shared.masked_statement import masked_statement
from relay.audit.shared.statement_tables import changed_table, defined_thing, named_table
from relay.binlog_tables.plan.packed_store import store_of
from relay.commands.outcome import CommandFailed
from relay.report.content import Fact, Kind, ReportTable, Section
from relay.report.text import number_of

_MOST_CHANGES: Final = 1_000_000
"""The most changes that are held here at once: of keys in the whole table, and of rows that had one of the keys."""
_SHOWN_CHARACTERS: Final = 400
_ENDS_ROWS: Final = frozenset({"TRUNCATE TABLE", "TRUNCATE", "DROP TABLE", "CREATE TABLE", "RENAME TABLE"})
_COLUMNS: Final = (
    "file",
    "transaction",
    "row",
    "position",
    "time",
    "gtid",
    "operation",
    "before",
    "after",
    "statement",
)
_PLACE: Final = "file string, transaction bigint, `row` bigint, life int"


def run(audit: Audit) -> AuditResult:
    """Make one pass over the table's rows for changing keys, one for the rows that had one of them, and two over the statements."""
    if audit.options.row is None:
        raise CommandFailed("history is about one row: name it with --table and --key.")
    audit.step("Following definitions of tables")
    changes = schema_changes(store_of(audit.options.archive), audit.files)
    row = _with_key(audit.options.row, changes)
    audit.step("Looking for changes of keys")
    moves = _moves(audit, row)
    keys = keys_of_lives(row.values, moves)
    audit.step("Reading the row's changes")
    touching = audit.keep(_touching(audit, row, keys))
    defined = _definitions(audit, row, changes)
    lives = _lives(audit, row, touching, defined)
    if not lives:
        _check_table(audit, row, defined)
    places = audit.frame_of(_PLACE, [(audit.files[at[0]].name, at[1], at[2], life) for at, life in lives.items()])
    found = audit.keep(touching.join(F.broadcast(places), ["file", "transaction", "row"]))
    first = found.orderBy(*audit.file_order, "transaction", "row").limit(audit.options.limit).collect()
    findings = [*_unnamed(audit, row), *_logged_as_statements(audit, row)]
    count = max(lives.values(), default=0)
    figures: dict[str, object] = {"changes": len(lives), "rows": count, "keys": len(keys)}
    section = Section(
        "History",
        f"Every change of a row of {row.name} that at some time had the key {row.told()}. A row is followed where its key changed, in "
        "both directions. Before and after are as the event has them: an image may lack columns that did not change.",
        tables=[_listing(row, first, defined, _numbers(audit), left_out=len(lives) - len(first), lives=count)],
    )
    facts = [Fact("row", f"{row.name}, {row.told()}", {"table": row.name, "key": dict(row.key)})]
    frames = {"history": found.select("life", *_COLUMNS)}
    return AuditResult(_verdict(row, len(lives), count), findings, [section], frames, facts, figures)


def _verdict(row: RowAsked, changes: int, lives: int) -> str:
    if not changes:
        return f"No row with {row.told()} of {row.name} was changed in these files."
    several = f", of {number_of(lives, 'row')} that had this key one after the other" if lives > 1 else ""
    return f"{number_of(changes, 'change')} of {row.name}, {row.told()}{several}."


def _with_key(asked: RowAsked, changes: Sequence[SchemaChange]) -> RowAsked:
    """Return the row with the columns of its key. Raises: CommandFailed."""
    versions = [
        table for one in changes if ".".join(one.name) == asked.name for table in (one.before, one.after) if table
    ]
    newest: Table | None = versions[-1] if versions else None
    row = asked.with_columns(newest.primary_key if newest else None)
    known = {column.name for table in versions for column in table.columns}
    for column in row.columns:
        if known and column not in known and not column.startswith("@"):
            raise CommandFailed(f"{row.name} has no column {column!r}; it has {', '.join(sorted(known))}.")
    return row


def _rows(audit: Audit, row: RowAsked, *columns: str) -> DataFrame:
    """Return the changes of the table; its keys before and after are arrays of texts. This is for one query."""
    frame = audit.read_table("rows", row.schema, row.table, *columns)
    return (
        frame.where("operation IS NOT NULL")
        .withColumn("old", _key(row, "before"))
        .withColumn("new", _key(row, "after"))
        # An image without the key (MINIMAL) is of a row that kept it.
        .withColumn("new", F.when(F.col("after").isNotNull(), F.coalesce("new", "old")))
    )


def _key(row: RowAsked, image: str) -> Column:
    """Return the key in an image; NULL if there is no image, or a column of the key is missing from it."""
    shape = StructType([StructField(column, StringType()) for column in row.columns])
    read = F.from_json(F.col(image), shape)
    values = F.array(*(read.getField(column) for column in row.columns))
    return F.when(F.col(image).isNotNull() & ~F.exists(values, lambda value: value.isNull()), values)


def _moves(audit: Audit, row: RowAsked) -> list[Move]:
    """Return the updates that changed keys. Raises: CommandFailed if there are too many."""
    frame = _rows(audit, row, "file", "transaction", "row", "operation", "before", "after")
    moved = frame.where("old IS NOT NULL AND new IS NOT NULL AND old <> new").select(
        "file", "transaction", "row", "old", "new"
    )
    rows = moved.limit(_MOST_CHANGES + 1).collect()
    _check_count(row, len(rows), "changes of keys")
    number = _numbers(audit)
    return sorted(
        (Move(_order(one, number), tuple(one["old"]), tuple(one["new"])) for one in rows), key=lambda move: move.at
    )


def _touching(audit: Audit, row: RowAsked, keys: set[Key]) -> DataFrame:
    wanted = F.broadcast(audit.frame_of("of array<string>", [(list(key),) for key in keys]))
    rows = _rows(audit, row, *_COLUMNS).withColumn("statement", masked_statement())
    return rows.join(wanted, F.expr("old = of OR new = of"), "left_semi")


def _lives(audit: Audit, row: RowAsked, touching: DataFrame, defined: list[Row]) -> dict[Order, int]:
    rows = touching.select("file", "transaction", "row", "old", "new").limit(_MOST_CHANGES + 1).collect()
    _check_count(row, len(rows), "changes of rows that had one of its keys")
    number = _numbers(audit)
    changes = [KeyedChange(_order(one, number), _tuple(one["old"]), _tuple(one["new"])) for one in rows]
    ends = [one for one in defined if one["what"] in _ENDS_ROWS and one["file"] in number]
    changes += [KeyedChange((number[one["file"]], one["position"], -1), None, None) for one in ends]
    return lives_of(row.values, sorted(changes, key=lambda change: change.at))


def _check_count(row: RowAsked, count: int, what: str) -> None:
    if count > _MOST_CHANGES:
        raise CommandFailed(
            f"{row.name} has more than {_MOST_CHANGES:,} {what} in these files: narrow the time with --since and --until."
        )


def _numbers(audit: Audit) -> dict[str, int]:
    return {file.name: number for number, file in enumerate(audit.files)}


def _order(row: Row, number: dict[str, int]) -> Order:
    return number[row["file"]], row["transaction"], row["row"]


def _tuple(values: Sequence[str] | None) -> Key | None:
    return None if values is None else tuple(values)


def _check_table(audit: Audit, row: RowAsked, defined: list[Row]) -> None:
    """Raise CommandFailed if nothing in these files concerns the table: its name may be wrong."""
    names = audit.read("table_maps", "schema", "table").where("table IS NOT NULL").distinct().collect()
    there = sorted(f"{one['schema']}.{one['table']}" for one in names)
    if row.name in there or defined:
        return
    if audit.read("statements", "schema", "digest_text").where(changed_table() == row.name).limit(1).collect():
        return
    alike = get_close_matches(row.name, there, 5) or there[:5]
    told = f" There are {', '.join(alike)}{' and others' if len(there) > len(alike) else ''}." if there else ""
    raise CommandFailed(f"nothing in these files is about a table {row.name}.{told}")


def _definitions(audit: Audit, row: RowAsked, changes: Sequence[SchemaChange]) -> list[Row]:
    """Return statements that define the table, or empty it."""
    of_table = {(one.file, one.position) for one in changes if one.table == row.name}
    read = audit.read("statements", "file", "position", "time", "schema", "digest_text").where(
        "digest_text IS NOT NULL"
    )
    what = read.withColumn("what", defined_thing()).where("what IS NOT NULL")
    named = what.where(
        (named_table() == row.name) | F.col("position").isin(sorted({position for _, position in of_table}) or [-1])
    )
    rows = (
        named.withColumn("named", named_table()).orderBy(*audit.file_order, "position").limit(_MOST_CHANGES).collect()
    )
    return [one for one in rows if one["named"] == row.name or (one["file"], one["position"]) in of_table]


def _unnamed(audit: Audit, row: RowAsked) -> list[AuditFinding]:
    """Return changes of which it is unknown whether they concern this row."""
    frame = _rows(audit, row, "file", "position", "time", "operation", "before", "after")
    lost = frame.where("old IS NULL AND new IS NULL")
    places, patterns = look_alikes(audit, lost, ("operation",), lambda one: f"{one['operation']}s", position="position")
    if not places:
        return []
    text = (
        "Their images have no column of the key's name: the columns were called otherwise then, or nobody told their names (@1, @2 …), "
        "or the image lacks them. They may be of this row."
    )
    count = sum(place.count for place in places)
    title = "Changes of the table whose keys are not known"
    return [AuditFinding("key_not_known", "warning", title, text, count, places, patterns)]


def _logged_as_statements(audit: Audit, row: RowAsked) -> list[AuditFinding]:
    read = audit.read("statements", "file", "position", "time", "schema", "digest_text").where(
        "digest_text IS NOT NULL"
    )
    changing = read.where(changed_table() == row.name)
    places, patterns = look_alikes(
        audit, changing, ("digest_text",), lambda one: shown(one["digest_text"], _SHOWN_CHARACTERS), position="position"
    )
    if not places:
        return []
    text = "What they did to the row is not seen: the source logged the statement, and no rows."
    count = changing.count()
    title = "Statements that change the table without its rows"
    return [AuditFinding("changed_by_statements", "warning", title, text, count, places, patterns)]


def _listing(
    row: RowAsked, rows: list[Row], defined: list[Row], number: dict[str, int], *, left_out: int, lives: int
) -> ReportTable:
    """Return changes, with definitions of the table between them."""
    columns: dict[str, Kind] = {"place": "place", "time": "time", "what": "word", "key": "code", "what it did": "code"}
    if lives > 1:
        columns["row"] = "count"
    columns |= {"statement": "code", "GTID": "code"}
    cells: list[tuple[tuple[int, ...], list[object]]] = []
    for one in rows:
        key = key_text(row.columns, _tuple(one["new"] or one["old"]))
        told = _cut(changed_columns(one["before"], one["after"]))
        numbered = [one["life"]] if lives > 1 else []
        cells.append(
            (
                (number[one["file"]], one["position"], one["row"]),
                [_place(one), one["time"], one["operation"], key, told, *numbered, _cut(one["statement"]), one["gtid"]],
            )
        )
    last = cells[-1][0] if left_out else (len(number),)
    for one in defined:
        at = (number.get(one["file"], len(number)), one["position"], -1)
        if at < last:
            numbered = [None] if lives > 1 else []
            text = shown(one["digest_text"], _SHOWN_CHARACTERS)
            cells.append((at, [_place(one), one["time"], one["what"], None, None, *numbered, text, None]))
    cells.sort(key=lambda cell: cell[0])
    note = "Definitions of the table stand between its changes."
    return ReportTable("Changes", columns, [cell for _, cell in cells], left_out, note)


def _place(row: Row) -> str:
    return f"{row['file']}:{row['position']}"


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


JOB: Final = Job(
    "history",
    "History of a row",
    "Every change of one row, in the order of the binlog, with what it was before and after.",
    run,
    takes_row=True,
    not_in_all="It is about one row: binlog-relay audit history ARCHIVE --table shop.orders --key 42 --out DIR.",
)


def changed_columns(before: str | None, after: str | None) -> str:
    """Return the changed columns of the row's images, `before` and `after`, as JSON. A column that is missing from an image (MINIMAL)
    did not change."""
    old, new = _image(before), _image(after)
    if old is None or new is None:
        return ", ".join(f"{name} = {_shown_value(value)}" for name, value in (new or old or {}).items())
    differ = [
        f"{name}: {_shown_value(old[name])} → {_shown_value(value)}"
        if name in old
        else f"{name} → {_shown_value(value)}"
        for name, value in new.items()
        if name not in old or old[name] != value
    ]
    return ", ".join(differ) or "the same values"


def _image(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    made = json.loads(text, parse_int=str, parse_float=str)
    return made if isinstance(made, dict) else None


def _shown_value(value: Any) -> str:
    return "NULL" if value is None else value if isinstance(value, str) else json.dumps(value)
