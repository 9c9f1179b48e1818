"""Level rows: each row that a transaction changed, with its images as JSON, as Arrow batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from protocol.columns.codes.column_codes import FULL, OPEN_TABLE
from protocol.columns.rows.row_columns import NAMED, OPERATIONS, VALUES, RowColumns
from protocol.columns.rows.value_columns import ValueColumns
from relay.binlog_tables.decode import arrow_arrays as arrays
from relay.binlog_tables.decode.split_reader import SplitReader
from relay.binlog_tables.decode.unpack import take_run
from relay.binlog_tables.plan.read_finding import NAMES, TEXTS, BinlogUnreadable
from relay.binlog_tables.plan.recorded import Describer, reported_schema
from relay.binlog_tables.plan.schemas import arrow_schema
from relay.binlog_tables.plan.splits import Split
from relay.binlog_tables.plan.store import Store
from relay.binlog_tables.plan.wanted import Wanted

_ROWS: Final = 8192
# A statement appears once in the kernel's batch, and once for each of its rows in Spark's: larger batches are split.
_MOST_TEXT_BYTES: Final = 64 << 20

_OPERATIONS: Final = arrays.dictionary([name or None for name in OPERATIONS])
_NAMED: Final = arrays.dictionary([name or None for name in NAMED])
_FINDINGS: Final = arrays.dictionary(NAMES)
_FINDING_TEXTS: Final = arrays.dictionary([TEXTS.get(name or "") for name in NAMES])
_NEEDS: Final = {"finding_text": "finding", "sequence": "transaction"}
_SHARED: Final[tuple[str, ...]] = ("gtid", "schema", "table", "statement")
_IN_ORDER: Final = arrays.rising(_ROWS)


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options: columns, in order; whether the first finding is an error; whether each value also has a column of its own.

    `statement_characters` limits a row's statement, which all rows of it repeat (None: all of it).
    """

    columns: tuple[str, ...]
    failfast: bool
    values: bool = False
    statement_characters: int | None = None


def read_rows(
    store: Store, reader: SplitReader, split: Split, options: RowOptions, wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split. Raises: BinlogUnreadable at the first finding with `failfast`."""
    made = _row_columns(options, wanted)
    batches = _Batches(made, options, split)
    directory, base = _directory(split.path), _base(split.path)
    answers = _Answers(made, Describer(lambda: reported_schema(store, directory, base, split.stop), base))

    def stopped(status: int) -> Iterator[pa.RecordBatch]:
        if status == OPEN_TABLE:
            answers.answer()
        else:
            yield from batches.full()

    begun = False
    for run in reader.runs():
        if not begun:
            made.begin_file(reader.post_lengths())
            begun = True
        yield from take_run(made, run, stopped)
    while made.finish() == FULL:
        yield from batches.full()
    yield from batches.full()


def _row_columns(options: RowOptions, wanted: Wanted) -> RowColumns:
    needed = {_NEEDS.get(name, name) for name in options.columns if name != "file"}
    if options.values:
        needed.add(VALUES)
    made = RowColumns(_ROWS, sorted(needed | {"position", "finding", "finding_position"}), asks=True)
    schemas, tables = (
        [value.encode() for value in wanted.names[name]] if name in wanted.names else None
        for name in ("schema", "table")
    )
    if schemas is not None or tables is not None:
        made.keep_names(schemas, tables)
    if "time" in wanted.ranges:
        made.keep_times(wanted.ranges["time"].low, wanted.ranges["time"].high)
    if "operation" in wanted.names:
        made.keep_operations(wanted.names["operation"] & set(OPERATIONS[1:]))
    return made


class _Answers:
    """The recorded definitions of the tables that the kernel asks for."""

    def __init__(self, made: RowColumns, describer: Describer) -> None:
        self._made = made
        self._describer = describer

    def answer(self) -> None:
        """Answer a question for a table."""
        asked = self._made.asked_table
        if asked is None:
            return
        schema, table, types, arguments = asked
        description = self._describer.describe(schema, table, types, arguments, self._made.asked_position)
        if description is None:
            self._made.not_described()
        else:
            self._made.described(description.packed, description.named_by)


class _Shared:
    """A column of texts that rows share: it maps each row to one of the texts."""

    def __init__(self, indices: pa.Array, texts: pa.Array) -> None:
        self._indices = indices
        self._texts = texts
        # If each row has its own, the texts are the column: nothing is copied.
        self._are_rows = indices.equals(_IN_ORDER.slice(0, len(indices)))

    def part(self, start: int, count: int) -> pa.Array:
        """Return the texts of `count` rows."""
        if self._are_rows:
            return self._texts.slice(start, count)
        return self._texts.take(self._indices.slice(start, count))

    def parts(self, most_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield (first row, count) of parts with texts of at most so many bytes, or of one row."""
        rows = len(self._indices)
        lengths = pc.binary_length(self._texts)
        if (pc.max(lengths).as_py() or 0) * rows <= most_bytes:
            yield 0, rows
            return
        start = size = 0
        for row, length in enumerate(lengths.take(self._indices).to_pylist()):
            if size + (length or 0) > most_bytes and row > start:
                yield start, row - start
                start, size = row, 0
            size += length or 0
        yield start, rows - start


class _Batches:
    """A converter of the kernel's batches into Arrow batches."""

    def __init__(self, made: RowColumns, options: RowOptions, split: Split) -> None:
        self._made = made
        self._columns = options.columns
        self._split = split
        self._failfast = options.failfast
        self._values = options.values
        self._statement_characters = options.statement_characters
        self._schema = arrow_schema("rows", options.columns)
        self._file = arrays.Repeated(split.name)

    def full(self) -> Iterator[pa.RecordBatch]:
        """Yield the kernel's batch, in one or more of Arrow's; the kernel begins another. Raises: BinlogUnreadable."""
        made = self._made.batch
        if self._failfast and made.findings:
            raise self._first_finding()
        if made.rows:
            shared = {name: self._shared(name) for name in _SHARED if name in self._columns}
            parts = shared["statement"].parts(_MOST_TEXT_BYTES) if "statement" in shared else [(0, made.rows)]
            for start, count in parts:
                yield self._batch(shared, start, count)
        made.begin()

    def _batch(self, shared: dict[str, _Shared], start: int, count: int) -> pa.RecordBatch:
        made, rows = self._made.batch, self._made.batch.rows

        def numbers(name: str, kind: str = "q") -> pa.Array:
            return arrays.numbers(made.column(name), kind, rows).slice(start, count)

        def words(name: str, dictionary: pa.Array) -> pa.Array:
            return dictionary.take(numbers(name, "B"))

        def texts(name: str) -> pa.Array:
            offsets, data = made.text_column(name)
            return arrays.texts(offsets, data, rows, made.validity(name)).slice(start, count)

        special: dict[str, Callable[[], pa.Array]] = {
            "file": lambda: self._file.take(count),
            "time": lambda: arrays.times(made.column("time"), rows).slice(start, count),
            "operation": lambda: words("operation", _OPERATIONS),
            "named": lambda: words("named", _NAMED),
            "before": lambda: texts("before"),
            "after": lambda: texts("after"),
            "finding": lambda: words("finding", _FINDINGS),
            "finding_text": lambda: words("finding", _FINDING_TEXTS),
            "finding_position": lambda: pc.if_else(
                pc.equal(numbers("finding", "B"), 0), pa.scalar(None, pa.int64()), numbers("finding_position")
            ),
            "sequence": lambda: arrays.sequences(self._split.name, self._split.sequence_base, numbers("transaction")),
        }

        def array(name: str) -> pa.Array:
            if name in shared:
                return shared[name].part(start, count)
            return special[name]() if name in special else numbers(name)

        batch = pa.RecordBatch.from_arrays([array(name) for name in self._columns], schema=self._schema)
        if not self._values:
            return batch
        more: dict[str, pa.Array] = {"shape": self._shapes().slice(start, count)}
        more |= {name: numbers(name, "B") for name in ("whole", "odd")}
        more |= {
            name: one.slice(start, count) for name, one in _value_arrays(made.before_values, made.after_values, rows)
        }
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *more.values()],
            schema=pa.schema([*self._schema, *(pa.field(name, one.type) for name, one in more.items())]),
        )

    def _shared(self, name: str) -> _Shared:
        made = self._made.batch
        indices, validity, count, offsets, data = made.dictionary_column(name)
        texts = arrays.texts(offsets, data, count)
        if name == "statement" and self._statement_characters is not None:
            texts = pc.utf8_slice_codeunits(texts, 0, self._statement_characters)
        return _Shared(arrays.numbers(indices, "i", made.rows, validity), texts)

    def _shapes(self) -> pa.Array:
        """Return long texts, of which there are few, as numbers of them."""
        made = self._made.batch
        indices, validity, count, offsets, data = made.dictionary_column("shape")
        return pa.DictionaryArray.from_arrays(
            arrays.numbers(indices, "i", made.rows, validity), arrays.texts(offsets, data, count)
        )

    def _first_finding(self) -> BinlogUnreadable:
        made = self._made.batch
        codes = arrays.numbers(made.column("finding"), "B", made.rows).to_pylist()
        row = next(row for row, code in enumerate(codes) if code)
        name = str(NAMES[codes[row]])
        position = arrays.numbers(made.column("finding_position"), "q", made.rows)[row].as_py()
        return BinlogUnreadable(self._split.name, position, name, TEXTS[name])


def _directory(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _value_arrays(before: ValueColumns, after: ValueColumns, rows: int) -> Iterator[tuple[str, pa.Array]]:
    """Yield name (`b0`, `b1` … of before-images, `a0`, `a1` … of after-images) and values of each column, as bytes: `shape` says which
    are texts."""
    for side, values in (("b", before), ("a", after)):
        values.finish(rows)
        valid, offsets, data = (memoryview(one) for one in (values.valid_bytes, values.offset_bytes, values.text_bytes))

        def used(buffer: memoryview, start: int, size: int) -> pa.Buffer:
            return pa.py_buffer(bytes(buffer[start : start + size]))

        for column in range(values.width):
            buffers = [
                used(valid, values.valid_at(column), (rows + 7) >> 3),
                used(offsets, values.offsets_at(column), 4 * (rows + 1)),
                used(data, values.bytes_at(column), values.size(column)),
            ]
            yield f"{side}{column}", pa.Array.from_buffers(pa.binary(), rows, buffers)
