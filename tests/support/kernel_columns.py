"""A runner of a binlog's bytes through the kernel's column modules, in any cuts, which reads the buffers back slowly and plainly."""

import itertools
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.binlog.compression import MOST_HELD_BYTES, unpack_compressed
from protocol.columns.codes.column_codes import DONE, FULL, OPEN_PAYLOAD, OPEN_ROWS, OPEN_TABLE
from protocol.columns.rows.row_batch import VALUE_COLUMNS
from protocol.errors import Malformed

Values = dict[str, Any]


@dataclass
class Columns:
    """Rows as dictionaries, and how the walk ended."""

    rows: list[Values] = field(default_factory=list)
    findings: int = 0
    batches: int = 0
    status: int = 0


def _numbers(data: bytes, kind: str, rows: int) -> list[int]:
    return list(struct.unpack_from(f"<{rows}{kind}", data))


def _valid(bitmap: bytes, row: int) -> bool:
    return bool(bitmap[row >> 3] >> (row & 7) & 1)


def _texts(offsets: bytes, data: bytes, count: int) -> list[str]:
    places = _numbers(offsets, "i", count + 1)
    return [bytes(data[a:b]).decode("utf-8", "backslashreplace") for a, b in itertools.pairwise(places)]


def batch_rows(batch: Any, kinds: dict[str, str]) -> list[Values]:
    """Return the rows of a reader's batch; `kinds` maps a column to its format, as the module's COLUMNS."""
    rows = batch.rows
    values: dict[str, list[Any]] = {}
    for name, kind in kinds.items():
        if kind == "s":
            offsets, data = batch.text_column(name)
            texts = _texts(offsets, data, rows)
            bitmap = batch.validity(name)
            values[name] = [text if _valid(bitmap, i) else None for i, text in enumerate(texts)]
        elif kind == "d":
            which, bitmap, count, text_offsets, data = batch.dictionary_column(name)
            texts = _texts(text_offsets, data, count)
            values[name] = [
                texts[number] if _valid(bitmap, i) else None for i, number in enumerate(_numbers(which, "i", rows))
            ]
        elif kind == "l":
            offsets, count, text_offsets, data = batch.list_column(name)
            places = _numbers(offsets, "i", rows + 1)
            texts = _texts(text_offsets, data, count)
            values[name] = [texts[a:b] for a, b in itertools.pairwise(places)]
        elif kind == "n":
            bitmap = batch.validity(name)
            numbers = _numbers(batch.column(name), "q", rows)
            values[name] = [number if _valid(bitmap, i) else None for i, number in enumerate(numbers)]
        else:
            values[name] = _numbers(batch.column(name), kind, rows)
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def value_rows(columns: Any, rows: int) -> list[list[bytes | None]]:
    """Return the values of each row of a batch's ValueColumns, all columns of them."""
    columns.finish(rows)
    found = []
    for number in range(columns.width):
        places = struct.unpack_from(f"<{rows + 1}i", columns.offset_bytes, columns.offsets_at(number))
        valid = bytes(columns.valid_bytes[columns.valid_at(number) :])
        base = columns.bytes_at(number)
        texts = [bytes(columns.text_bytes[base + a : base + b]) for a, b in itertools.pairwise(places)]
        found.append([text if _valid(valid, row) else None for row, text in enumerate(texts)])
    return [list(row) for row in zip(*found, strict=True)] if found else [[] for _ in range(rows)]


def _walk(
    build: Any,
    data: bytes,
    cuts: Sequence[int],
    take: Callable[[Any, int, Any, int, bytes], None],
    make_buffer: Callable[[bytes], Any],
) -> int:
    """Feed whole events, `take`ing the table of each feed; return the last status."""
    ingest = build.ingest.Ingest()
    ingest.detailed = True
    table = array("q", bytes(8 * 8 * 16))
    ingest.set_table(table, True)
    ingest.begin_file(4)
    start = 4
    status = 0
    for cut in [*sorted({c for c in cuts if 4 < c < len(data)}), len(data)]:
        buffer = make_buffer(data[start:cut])
        stop = build.column_reader.whole_events(buffer, 0, len(buffer))
        if cut == len(data):
            stop = len(buffer)
        used = 0
        while used < stop:
            status = ingest.feed(buffer, used, stop)
            ingest.take_entries()
            progressed = ingest.consumed > used
            used = ingest.consumed
            take(buffer, start, table, ingest.table_rows, ingest.post_lengths())
            if status >= 16 or not progressed:
                return int(status)
        start += used
    return int(status)


def event_rows(
    build: Any,
    data: bytes,
    wanted: Iterable[str] | None = None,
    *,
    capacity: int = 1000,
    cuts: Sequence[int] = (),
    prepare: Callable[[Any], None] | None = None,
    in_use: bool = False,
    make_buffer: Callable[[bytes], Any] = bytearray,
) -> Columns:
    """Return the events of a file's bytes, magic included. `prepare` sets filters."""
    module = build.event_columns
    names = list(module.COLUMNS if wanted is None else wanted)
    columns = module.EventColumns(names, capacity)
    if prepare is not None:
        prepare(columns)
    result = Columns()
    kinds = {name: module.COLUMNS[name] for name in names}
    begun = False

    def close() -> None:
        result.rows += batch_rows(columns.batch, kinds)
        result.batches += 1

    def take(buffer: Any, base: int, table: Any, count: int, post_lengths: bytes) -> None:
        nonlocal begun
        if not begun:
            columns.begin_file(post_lengths, in_use)
            begun = True
        while columns.take(buffer, base, table, count) == FULL:
            close()
            columns.batch.begin()

    result.status = _walk(build, data, cuts, take, make_buffer)
    close()
    result.findings = columns.batch.findings
    return result


def transaction_rows(
    build: Any,
    data: bytes,
    *,
    capacity: int = 1000,
    cuts: Sequence[int] = (),
    prepare: Callable[[Any], None] | None = None,
    unpack_payload: Callable[[bytes], bytes] | None = None,
    count_rows: bool = True,
    make_buffer: Callable[[bytes], Any] = bytearray,
) -> Columns:
    """Return the transactions of a file's bytes, magic included. `unpack_payload`: a whole Transaction_payload body to events."""
    module = build.transaction_columns
    columns = module.TransactionColumns(capacity, count_rows)
    if prepare is not None:
        prepare(columns)
    result = Columns()
    begun = False

    def close() -> None:
        result.rows += batch_rows(columns.batch, module.COLUMNS)
        result.batches += 1

    def take(buffer: Any, base: int, table: Any, count: int, post_lengths: bytes) -> None:
        nonlocal begun
        if not begun:
            columns.begin_file(post_lengths)
            begun = True
        while (status := columns.take(buffer, base, table, count)) != DONE:
            packed = bytes(buffer[columns.open_start : columns.open_stop])
            if status == FULL:
                close()
                columns.batch.begin()
            elif status == OPEN_PAYLOAD and unpack_payload is not None:
                events = bytearray(unpack_payload(packed))
                assert columns.opened_events(events, 0, len(events)) == DONE
                if columns.opened_at == len(events):
                    columns.payload_done()
                else:
                    columns.not_opened()
            elif status == OPEN_PAYLOAD:
                columns.not_opened()
            else:
                try:
                    columns.opened(unpack_compressed(packed, MOST_HELD_BYTES))
                except Malformed:
                    columns.not_opened()

    result.status = _walk(build, data, cuts, take, make_buffer)
    while columns.finish() == FULL:
        close()
        columns.batch.begin()
    close()
    result.findings = columns.batch.findings
    return result


def statement_rows(
    build: Any,
    data: bytes,
    *,
    maps: bool = False,
    capacity: int = 1000,
    cuts: Sequence[int] = (),
    prepare: Callable[[Any], None] | None = None,
    unpack_payload: Callable[[bytes], bytes] | None = None,
    make_buffer: Callable[[bytes], Any] = bytearray,
) -> Columns:
    """Return the statements, or with `maps` the Table_maps, of a file's bytes, magic included."""
    module = build.statement_columns
    columns = module.StatementColumns(list(module.COLUMNS), capacity, maps)
    if prepare is not None:
        prepare(columns)
    result = Columns()
    begun = False

    def close() -> None:
        result.rows += batch_rows(columns.batch, module.COLUMNS)
        result.batches += 1

    def take(buffer: Any, base: int, table: Any, count: int, post_lengths: bytes) -> None:
        nonlocal begun
        if not begun:
            columns.begin_file(post_lengths)
            begun = True
        while (status := columns.take(buffer, base, table, count)) != DONE:
            packed = bytes(buffer[columns.open_start : columns.open_stop])
            if status == FULL:
                close()
                columns.batch.begin()
            elif status == OPEN_PAYLOAD and unpack_payload is not None:
                events = bytearray(unpack_payload(packed))
                start = 0
                while columns.opened_events(events, start, len(events)) == FULL:
                    close()
                    columns.batch.begin()
                    start = columns.opened_at
                assert columns.opened_at == len(events)
                columns.payload_done()
            elif status == OPEN_PAYLOAD:
                columns.not_opened()
            else:
                try:
                    columns.opened(unpack_compressed(packed, MOST_HELD_BYTES))
                except Malformed:
                    columns.not_opened()

    result.status = _walk(build, data, cuts, take, make_buffer)
    close()
    result.findings = columns.batch.findings
    return result


def changed_rows(
    build: Any,
    data: bytes,
    wanted: Iterable[str] | None = None,
    *,
    capacity: int = 1000,
    cuts: Sequence[int] = (),
    prepare: Callable[[Any], None] | None = None,
    describe: Callable[[bytes, bytes, bytes], bytes | None] | None = None,
    unpack_payload: Callable[[bytes], bytes] | None = None,
    make_buffer: Callable[[bytes], Any] = bytearray,
) -> Columns:
    """Return the changed rows of a file's bytes, magic included. `describe`: schema, table and types to a column description;
    `unpack_payload`: a whole Transaction_payload body to events."""
    module = build.row_columns
    names = list(module.COLUMNS if wanted is None else wanted)
    kinds = {name: module.COLUMNS[name] for name in names if name != module.VALUES}
    if module.VALUES in names:
        kinds |= VALUE_COLUMNS
    columns = module.RowColumns(capacity, wanted, describe is not None)
    if prepare is not None:
        prepare(columns)
    result = Columns()
    begun = False

    def close() -> None:
        rows = batch_rows(columns.batch, kinds)
        if module.VALUES in names:
            for name in ("before_values", "after_values"):
                for row, values in zip(rows, value_rows(getattr(columns.batch, name), len(rows)), strict=True):
                    row[name] = values
        result.rows += rows
        result.batches += 1
        columns.batch.begin()

    def answer(status: int) -> None:
        if status == FULL:
            close()
            return
        assert status == OPEN_TABLE
        assert describe is not None
        description = describe(*columns.asked_table[:3])
        if description is None:
            columns.not_described()
        else:
            columns.described(description)

    def take(buffer: Any, base: int, table: Any, count: int, post_lengths: bytes) -> None:
        nonlocal begun
        if not begun:
            columns.begin_file(post_lengths)
            begun = True
        while (status := columns.take(buffer, base, table, count)) != DONE:
            packed = bytes(buffer[columns.open_start : columns.open_stop])
            if status == OPEN_PAYLOAD and unpack_payload is not None:
                events = bytearray(unpack_payload(packed))
                start = 0
                while (inner := columns.opened_events(events, start, len(events))) != DONE:
                    answer(inner)
                    start = columns.opened_at
                assert columns.opened_at == len(events)
                columns.payload_done()
            elif status == OPEN_PAYLOAD:
                columns.not_opened()
            elif status == OPEN_ROWS:
                try:
                    columns.opened(unpack_compressed(packed, MOST_HELD_BYTES))
                except Malformed:
                    columns.not_opened()
            else:
                answer(status)

    result.status = _walk(build, data, cuts, take, make_buffer)
    while columns.finish() == FULL:
        close()
    close()
    result.findings = columns.batch.findings
    return result
