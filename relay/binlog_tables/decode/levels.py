"""A split as Arrow batches: events, transactions, or only findings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.binlog.boundary import BOUNDARY_LABELS
from protocol.binlog.event_type import event_type_name
from protocol.columns import event_columns, statement_columns, transaction_columns
from protocol.columns.codes.column_codes import FULL, ROWS_UNREADABLE
from protocol.columns.column_batch import ColumnBatch
from protocol.columns.event_columns import EventBatch, EventColumns
from protocol.columns.statement_columns import StatementBatch, StatementColumns
from protocol.columns.transaction_columns import TransactionBatch, TransactionColumns
from relay.binlog_tables.decode import arrow_arrays as arrays
from relay.binlog_tables.decode.other_findings import OtherFindings
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.decode.split_reader import SplitReader
from relay.binlog_tables.decode.time_filter import RowFilter
from relay.binlog_tables.decode.unpack import take_run
from relay.binlog_tables.plan.read_finding import NAMES, TEXTS, BinlogUnreadable, Finding, stop_at, stop_at_loss
from relay.binlog_tables.plan.schemas import ARROW_TYPES, arrow_schema
from relay.binlog_tables.plan.sequence import sequence_at
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.store import Store
from relay.binlog_tables.plan.wanted import FAR, Wanted

# So many rows stay in a processor's cache: with four times as many Spark's own thread took 15 % longer.
_EVENT_ROWS: Final = 8192
_TRANSACTION_ROWS: Final = 8192
_STATEMENT_ROWS: Final = 8192
_SECOND: Final = 1_000_000
_LARGEST_UNSEEN: Final = 0xFFFFFFFF * _SECOND

TYPE_NAMES: Final = [event_type_name(code) for code in range(256)]
_TYPES: Final = arrays.dictionary(TYPE_NAMES)
_BOUNDARIES: Final = arrays.dictionary([BOUNDARY_LABELS.get(value, f"Reserved {value}") for value in range(8)])
_CRC: Final = arrays.dictionary(["none", "ok", "bad"])
_KINDS: Final = arrays.dictionary(list(transaction_columns.KINDS))
_CLOSERS: Final = arrays.dictionary([None, *transaction_columns.CLOSERS[1:]])
_FINDINGS: Final = arrays.dictionary(NAMES)
_FINDING_TEXTS: Final = arrays.dictionary([TEXTS.get(name or "") for name in NAMES])
# These findings result only from counting a transaction; the others result from events.
_FIRST_OF_TRANSACTIONS: Final = ROWS_UNREADABLE


def read_split(
    store: Store, split: Split, options: ReadOptions, wanted: Wanted, *, keeps: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one split. Raises: BinlogUnreadable at the first finding with `failfast`; with `keeps`, FileLost.

    With `keeps`, what is not read now is never read again, so an unreadable file does not become a row.
    """
    for finding in split.findings:
        if keeps:
            stop_at_loss(finding)
        yield from _finding_batch(finding, split, options)
    reader = SplitReader(store, split)
    if options.level == "rows":
        # This imports the whole record of table definitions: a tenth of a second, which other levels need not spend
        from relay.binlog_tables.decode.rows import RowOptions, read_rows

        wishes = RowOptions(options.columns, options.failfast, options.values, options.statement_characters)
        batches = read_rows(store, reader, split, wishes, wanted)
    elif _leaves_events_out(options, wanted):
        others = OtherFindings(reader, split, options.level, options.columns, failfast=options.failfast)
        batches = others.beside(_LEVELS[options.level](reader, split, replace(options, columns=others.columns), wanted))
    else:
        batches = _LEVELS[options.level](reader, split, options, wanted)
    batches = _with_cut_named(batches, split) if split.cut else batches
    yield from RowFilter(options.level, options.columns, wanted).of(batches)
    if reader.broken is not None:
        if keeps:
            stop_at_loss(reader.broken)
        yield from _finding_batch(reader.broken, split, options)


def _leaves_events_out(options: ReadOptions, wanted: Wanted) -> bool:
    """Return whether there are events whose findings the level's own rows do not have."""
    if options.level == "events":
        # Spark checks its own filters again, but does not know since and until
        return "time" in wanted.ranges or (options.failfast and bool(wanted.ranges or wanted.names))
    return options.level in ("statements", "table_maps")


def _with_cut_named(batches: Iterator[pa.RecordBatch], split: Split) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split that its source's crash cut, whose last transaction therefore has no end."""
    held: pa.RecordBatch | None = None
    try:
        for batch in batches:
            if held is not None:
                yield held
            held = batch
    except BinlogUnreadable as error:
        if error.name != "transaction_unfinished":
            raise
        raise BinlogUnreadable(split.name, error.position, "transaction_cut", TEXTS["transaction_cut"]) from None
    if held is None:
        return
    for name, value in (("finding", "transaction_cut"), ("finding_text", TEXTS["transaction_cut"])):
        at = held.schema.get_field_index(name)
        if at >= 0 and held.num_rows:
            texts = held.column(at).to_pylist()
            last = next((row for row in range(len(texts) - 1, -1, -1) if texts[row] in _UNFINISHED), None)
            if last is not None:
                texts[last] = value
                held = held.set_column(at, held.schema.field(at), pa.array(texts, pa.string()))
    yield held


_UNFINISHED: Final = ("transaction_unfinished", TEXTS["transaction_unfinished"])


def _finding_batch(finding: Finding, split: Split, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield a row for a finding that no event's row can carry."""
    if options.failfast:
        raise stop_at(finding)
    wants_sequence = "sequence" in options.columns
    values: dict[str, Any] = {
        "file": finding.file,
        "position": finding.position,
        "start": finding.position,
        "end": finding.end,
        "time": finding.time * _SECOND if finding.time else None,
        "first_time": finding.time * _SECOND if finding.time else None,
        "last_time": finding.time * _SECOND if finding.time else None,
        "finding": finding.name,
        "finding_position": finding.position,
        "finding_text": finding.text,
        "sequence": sequence_at(split.name, split.sequence_base, finding.position) if wants_sequence else None,
    }
    schema = arrow_schema(options.level, options.columns)
    columns = [pa.array([values.get(field.name)], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


# ---- events ----------------------------------------------------------------------------------------------------------

_EVENT_NEEDS: Final = {"type_code": "type", "finding_text": "finding", "sequence": "position"}


def _event_columns(options: ReadOptions, wanted: Wanted) -> EventColumns:
    needed = {_EVENT_NEEDS.get(name, name) for name in options.columns if name != "file"}
    columns = EventColumns(sorted(needed | {"position", "finding"}), _EVENT_ROWS)
    ranges = wanted.ranges
    if "position" in ranges:
        columns.keep_positions(ranges["position"].low, ranges["position"].high)
    if "time" in ranges:
        columns.keep_times(ranges["time"].low, ranges["time"].high)
    types = set(range(256))
    if "type" in wanted.names:
        types &= {code for code, name in enumerate(TYPE_NAMES) if name in wanted.names["type"]}
    if "type_code" in ranges:
        types &= set(range(max(ranges["type_code"].low, 0), min(ranges["type_code"].high, 255) + 1))
    if len(types) < 256:
        columns.keep_types(types)
    schemas, tables = (
        [value.encode() for value in wanted.names[name]] if name in wanted.names else None
        for name in ("schema", "table")
    )
    if schemas is not None or tables is not None:
        columns.keep_names(schemas, tables)
    return columns


def _events(reader: SplitReader, split: Split, options: ReadOptions, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    columns = _event_columns(options, wanted)
    schema = arrow_schema("events", options.columns)
    file = arrays.Repeated(split.name)
    begun = False
    failed = 0
    for run in reader.runs():
        if not begun:
            columns.begin_file(reader.post_lengths(), split.in_use)
            begun = True
        while columns.take(run.buffer, run.base, run.table, run.rows) == FULL:
            yield _event_batch(columns.batch, options, schema, file, split)
            columns.batch.begin()
        if options.failfast and columns.batch.findings > failed:
            raise _first_event_finding(columns.batch, split)
    if columns.batch.rows:
        yield _event_batch(columns.batch, options, schema, file, split)


def _first_event_finding(batch: ColumnBatch, split: Split) -> BinlogUnreadable:
    codes = arrays.numbers(batch.column("finding"), "B", batch.rows).to_pylist()
    row = next(row for row, code in enumerate(codes) if code)
    position = arrays.numbers(batch.column("position"), "q", batch.rows)[row].as_py()
    name = str(NAMES[codes[row]])
    return BinlogUnreadable(split.name, position, name, TEXTS[name])


def _event_batch(
    batch: EventBatch, options: ReadOptions, schema: pa.Schema, file: arrays.Repeated, split: Split
) -> pa.RecordBatch:
    rows = batch.rows
    made: dict[str, Callable[[], pa.Array]] = {
        "file": lambda: file.take(rows),
        "time": lambda: arrays.times(batch.column("time"), rows),
        "type": lambda: arrays.words(batch.column("type"), rows, _TYPES),
        "type_code": lambda: arrays.numbers(batch.column("type"), "B", rows).cast(pa.int32()),
        "boundary": lambda: arrays.words(batch.column("boundary"), rows, _BOUNDARIES),
        "inferred": lambda: arrays.words(batch.column("inferred"), rows, _BOUNDARIES),
        "stamped": lambda: arrays.truths(batch.column("stamped"), rows),
        "crc": lambda: arrays.words(batch.column("crc"), rows, _CRC),
        "finding": lambda: arrays.words(batch.column("finding"), rows, _FINDINGS),
        "finding_text": lambda: arrays.words(batch.column("finding"), rows, _FINDING_TEXTS),
        "sequence": lambda: _sequences(batch, "position", split),
    }
    return _batch(batch, event_columns.COLUMNS, made, options, schema)


def _sequences(batch: ColumnBatch, place: str, split: Split) -> pa.Array:
    """Return sequences of the column of offsets that is named `place`."""
    return arrays.sequences(split.name, split.sequence_base, arrays.numbers(batch.column(place), "q", batch.rows))


def _batch(
    batch: ColumnBatch,
    kinds: Mapping[str, str],
    made: Mapping[str, Callable[[], pa.Array]],
    options: ReadOptions,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return the wanted columns: those in `made` are computed by its functions, the others are the kernel's own."""
    rows = batch.rows

    def array(name: str) -> pa.Array:
        if name in made:
            return made[name]()
        kind = kinds[name]
        if kind == "s":
            offsets, data = batch.text_column(name)
            return arrays.texts(offsets, data, rows, batch.validity(name))
        if kind == "n":
            return arrays.numbers(batch.column(name), "q", rows, batch.validity(name))
        return arrays.numbers(batch.column(name), kind, rows)

    return pa.RecordBatch.from_arrays([array(name) for name in options.columns], schema=schema)


def _then_another(
    columns: TransactionColumns | StatementColumns, full: Callable[[], Iterator[pa.RecordBatch]]
) -> Callable[[int], Iterator[pa.RecordBatch]]:
    """Return a function for a full batch: it yields what `full` makes of it, and begins another."""

    def stopped(_status: int) -> Iterator[pa.RecordBatch]:
        yield from full()
        columns.batch.begin()

    return stopped


# ---- transactions ----------------------------------------------------------------------------------------------------

_ROW_COUNTS: Final = {"rows_inserted", "rows_updated", "rows_deleted", "finding", "finding_position", "finding_text"}


def _walk_transactions(
    reader: SplitReader, columns: TransactionColumns, full: Callable[[], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Walk all of the split; `full` yields what a full batch, and at the end the last one, becomes."""
    begun = False
    for run in reader.runs():
        if not begun:
            columns.begin_file(reader.post_lengths())
            begun = True
        yield from take_run(columns, run, _then_another(columns, full))
    while columns.finish() == FULL:
        yield from full()
        columns.batch.begin()
    yield from full()


def _transactions(reader: SplitReader, split: Split, options: ReadOptions, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    columns = TransactionColumns(_TRANSACTION_ROWS, bool(_ROW_COUNTS.intersection(options.columns)) or options.failfast)
    first, last = wanted.ranges.get("first_time"), wanted.ranges.get("last_time")
    if first is not None or last is not None:
        columns.keep_times(
            -FAR if first is None else first.low,
            FAR if first is None else first.high,
            -FAR if last is None else last.low,
            FAR if last is None else last.high,
        )
    schema = arrow_schema("transactions", options.columns)
    file = arrays.Repeated(split.name)

    def full() -> Iterator[pa.RecordBatch]:
        if options.failfast and columns.batch.findings:
            raise _first_transaction_finding(columns.batch, split)
        if columns.batch.rows:
            yield _transaction_batch(columns.batch, options, schema, file, split)

    yield from _walk_transactions(reader, columns, full)


def _first_transaction_finding(batch: TransactionBatch, split: Split) -> BinlogUnreadable:
    codes = arrays.numbers(batch.column("finding"), "B", batch.rows).to_pylist()
    row = next(row for row, code in enumerate(codes) if code)
    position = arrays.numbers(batch.column("finding_position"), "q", batch.rows)[row].as_py()
    name = str(NAMES[codes[row]])
    return BinlogUnreadable(split.name, position, name, TEXTS[name])


def _finding_positions(batch: TransactionBatch) -> pa.Array:
    codes = arrays.numbers(batch.column("finding"), "B", batch.rows)
    positions = arrays.numbers(batch.column("finding_position"), "q", batch.rows)
    return pc.if_else(pc.equal(codes, 0), pa.scalar(None, pa.int64()), positions)


def _transaction_batch(
    batch: TransactionBatch, options: ReadOptions, schema: pa.Schema, file: arrays.Repeated, split: Split
) -> pa.RecordBatch:
    rows = batch.rows

    def tables() -> pa.Array:
        lists, count, offsets, data = batch.list_column("tables")
        return arrays.text_lists(lists, count, offsets, data, rows, ARROW_TYPES["array<string>"])

    made: dict[str, Callable[[], pa.Array]] = {
        "file": lambda: file.take(rows),
        "bytes": lambda: pc.subtract(
            arrays.numbers(batch.column("end"), "q", rows), arrays.numbers(batch.column("start"), "q", rows)
        ),
        "first_time": lambda: arrays.times(batch.column("first_time"), rows),
        "last_time": lambda: arrays.times(batch.column("last_time"), rows),
        "kind": lambda: arrays.words(batch.column("kind"), rows, _KINDS),
        "tables": tables,
        "rolled_back": lambda: arrays.truths(batch.column("rolled_back"), rows),
        "closed_by": lambda: arrays.words(batch.column("closed_by"), rows, _CLOSERS),
        "finding": lambda: arrays.words(batch.column("finding"), rows, _FINDINGS),
        "finding_position": lambda: _finding_positions(batch),
        "finding_text": lambda: arrays.words(batch.column("finding"), rows, _FINDING_TEXTS),
        "sequence": lambda: _sequences(batch, "start", split),
    }
    return _batch(batch, transaction_columns.COLUMNS, made, options, schema)


# ---- statements ------------------------------------------------------------------------------------------------------


def _statements(reader: SplitReader, split: Split, options: ReadOptions, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield rows of level statements, or of level table_maps, where a row is a Table_map."""
    wanted_names = {*options.columns, "position"} if "sequence" in options.columns else set(options.columns)
    names = [name for name in statement_columns.COLUMNS if name in wanted_names]
    columns = StatementColumns(names, _STATEMENT_ROWS, options.level == "table_maps")
    if "time" in wanted.ranges:
        columns.keep_times(wanted.ranges["time"].low, wanted.ranges["time"].high)
    schema = arrow_schema(options.level, options.columns)
    file = arrays.Repeated(split.name)

    def full() -> Iterator[pa.RecordBatch]:
        if options.failfast and columns.batch.findings:
            raise _first_event_finding(columns.batch, split)
        if columns.batch.rows:
            yield _statement_batch(columns.batch, options, schema, file, split)

    begun = False
    for run in reader.runs():
        if not begun:
            columns.begin_file(reader.post_lengths())
            begun = True
        yield from take_run(columns, run, _then_another(columns, full))
    yield from full()


def _statement_batch(
    batch: StatementBatch, options: ReadOptions, schema: pa.Schema, file: arrays.Repeated, split: Split
) -> pa.RecordBatch:
    rows = batch.rows
    made: dict[str, Callable[[], pa.Array]] = {
        "file": lambda: file.take(rows),
        "time": lambda: arrays.times(batch.column("time"), rows),
        "type": lambda: arrays.words(batch.column("type"), rows, _TYPES),
        "seeds": lambda: arrays.numbers(batch.column("seeds"), "B", rows).cast(pa.int32()),
        "finding": lambda: arrays.words(batch.column("finding"), rows, _FINDINGS),
        "finding_text": lambda: arrays.words(batch.column("finding"), rows, _FINDING_TEXTS),
        "status_variables": lambda: binaries("status_variables"),
        "table_map": lambda: binaries("table_map"),
        "sequence": lambda: _sequences(batch, "position", split),
    }

    def binaries(name: str) -> pa.Array:
        offsets, data = batch.text_column(name)
        return arrays.binaries(offsets, data, rows, batch.validity(name))

    return _batch(batch, statement_columns.COLUMNS, made, options, schema)


# ---- findings --------------------------------------------------------------------------------------------------------


def _findings(reader: SplitReader, split: Split, options: ReadOptions, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Run both kernels over the same runs; only rows with a finding are ever made."""
    del wanted
    events = EventColumns(["position", "end", "time", "type", "finding"], _EVENT_ROWS)
    events.keep_findings()
    transactions = TransactionColumns(_TRANSACTION_ROWS)
    transactions.keep_findings()
    schema = arrow_schema("findings", options.columns)
    file = arrays.Repeated(split.name)

    def batch(values: dict[str, pa.Array], rows: int) -> Iterator[pa.RecordBatch]:
        if not rows:
            return
        if options.failfast:
            first = {name: values[name][0].as_py() for name in ("position", "finding", "finding_text")}
            raise BinlogUnreadable(split.name, first["position"], first["finding"], first["finding_text"])
        values["file"] = file.take(rows)
        if "sequence" in options.columns:
            values["sequence"] = arrays.sequences(split.name, split.sequence_base, values["position"])
        yield pa.RecordBatch.from_arrays([values[name] for name in options.columns], schema=schema)

    def of_events() -> Iterator[pa.RecordBatch]:
        rows = events.batch.rows
        values = {
            "position": arrays.numbers(events.batch.column("position"), "q", rows),
            "end": arrays.numbers(events.batch.column("end"), "q", rows),
            "time": arrays.times(events.batch.column("time"), rows),
            "type": arrays.words(events.batch.column("type"), rows, _TYPES),
            "finding": arrays.words(events.batch.column("finding"), rows, _FINDINGS),
            "finding_text": arrays.words(events.batch.column("finding"), rows, _FINDING_TEXTS),
        }
        yield from batch(values, rows)

    def of_transactions() -> Iterator[pa.RecordBatch]:
        rows = transactions.batch.rows
        codes = arrays.numbers(transactions.batch.column("finding"), "B", rows)
        own = pc.greater_equal(codes, _FIRST_OF_TRANSACTIONS)
        values = {
            "position": arrays.numbers(transactions.batch.column("finding_position"), "q", rows).filter(own),
            "end": arrays.numbers(transactions.batch.column("end"), "q", rows).filter(own),
            "time": arrays.times(transactions.batch.column("last_time"), rows).filter(own),
            "finding": arrays.words(transactions.batch.column("finding"), rows, _FINDINGS).filter(own),
            "finding_text": arrays.words(transactions.batch.column("finding"), rows, _FINDING_TEXTS).filter(own),
        }
        count = len(values["position"])
        values["type"] = pa.nulls(count, pa.string())
        yield from batch(values, count)

    begun = False
    for run in reader.runs():
        if not begun:
            events.begin_file(reader.post_lengths(), split.in_use)
            transactions.begin_file(reader.post_lengths())
            begun = True
        while events.take(run.buffer, run.base, run.table, run.rows) == FULL:
            yield from of_events()
            events.batch.begin()
        yield from take_run(transactions, run, _then_another(transactions, of_transactions))
    while transactions.finish() == FULL:
        yield from of_transactions()
        transactions.batch.begin()
    yield from of_events()
    yield from of_transactions()


_LEVELS: Final[Mapping[str, Callable[[SplitReader, Split, ReadOptions, Wanted], Iterator[pa.RecordBatch]]]] = {
    "events": _events,
    "transactions": _transactions,
    "statements": _statements,
    "table_maps": _statements,
    "findings": _findings,
}
