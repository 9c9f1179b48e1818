"""Which transactions must wait for which: the compiled write sets against the definition, in both builds.

The model knows rows as dictionaries and compares values; of bytes and numbers it knows nothing.
"""

import random
import struct
from array import array
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER
from protocol.dependencies import write_set_codes as codes
from tests.support.kernel_builds import KernelBuild

ABSENT: Final = object()
"""The image has no such column."""
POST_MAP, POST_ROWS = 8, 10
TEXTS: Final = ("", "a", "A ", "b", "bc", "BC", "aa", "é", "a\t")
Row = dict[int, Any]


@dataclass(frozen=True)
class ColumnKind:
    """How values of a column are made, stored, and compared."""

    type: int
    metadata: bytes
    form: int
    values: tuple[Any, ...]

    def stored(self, value: Any) -> bytes:
        """In a row image."""
        match self.form:
            case codes.FORM_RAW:
                return struct.pack("<i", value)
            case codes.FORM_REAL:
                return struct.pack("<d", value)
        text = value if isinstance(value, bytes) else value.encode()
        return bytes([len(text)]) + text

    def same(self, value: Any, prefix: int) -> Any:
        """What is equal for equal values; ABSENT: nobody can compare it."""
        match self.form:
            case codes.FORM_RAW | codes.FORM_REAL:
                return value + 0
            case codes.FORM_BINARY:
                return (value[:prefix] if prefix else value).rstrip(b"\0")
            case codes.FORM_NONE:
                return ABSENT
        if (prefix or self.form == codes.FORM_FOLDED) and not (value.isascii() and value.isprintable()):
            return ABSENT
        value = (value[:prefix] if prefix else value).rstrip(" ")
        return value.upper() if self.form == codes.FORM_FOLDED else value


KINDS: Final = (
    ColumnKind(3, b"", codes.FORM_RAW, (0, 1, 2, -1)),
    ColumnKind(5, b"\x08", codes.FORM_REAL, (0.0, -0.0, 1.5, -1.5)),
    ColumnKind(15, struct.pack("<H", 40), codes.FORM_FOLDED, TEXTS),
    ColumnKind(15, struct.pack("<H", 40), codes.FORM_EXACT, TEXTS),
    ColumnKind(
        15, struct.pack("<H", 40), codes.FORM_BINARY, (b"", b"a", b"a\0", b"ab", b"\0\0", b"long enough for two")
    ),
    ColumnKind(15, struct.pack("<H", 40), codes.FORM_NONE, TEXTS),
)


@dataclass(frozen=True)
class ModelKey:
    """A key of a table. `name`: keys of two tables with one name have their values in common."""

    name: str
    parts: tuple[tuple[int, int], ...]
    flags: int


@dataclass
class ModelTable:
    """A table."""

    number: int
    kinds: tuple[ColumnKind, ...]
    keys: tuple[ModelKey, ...]
    flags: int = 0
    body: bytes = field(init=False)

    def __post_init__(self) -> None:
        name = f"t{self.number}".encode()
        metadata = b"".join(kind.metadata for kind in self.kinds)
        self.body = (
            struct.pack("<I", self.number) + b"\0\0\1\0" + b"\1d\0" + bytes([len(name)]) + name + b"\0"
            + bytes([len(self.kinds)]) + bytes(kind.type for kind in self.kinds) + bytes([len(metadata)]) + metadata
            + b"\xff" * ((len(self.kinds) + 7) // 8)
        )  # fmt: skip

    def plan(self) -> "array[int]":
        """As `WriteSets.add_plan` wants it."""
        plan = [self.flags, -self.number - 1, len(self.keys), self.number]
        for key in self.keys:
            plan += [number_of(key.name), number_of(key.name + " class"), key.flags, len(key.parts)]
            for column, prefix in key.parts:
                plan += [column, self.kinds[column].form, prefix]
        return array("q", plan)


def number_of(name: str) -> int:
    """A number for a name."""
    return random.Random(name).getrandbits(62)


def event(kind: int, body: bytes) -> bytes:
    """Without a checksum."""
    return HEADER.pack(0, kind, 1, 19 + len(body), 0, 0) + body


def image(table: ModelTable, row: Row) -> bytes:
    """A row as the binlog has it."""
    present = [column for column in range(len(table.kinds)) if row[column] is not ABSENT]
    nulls = sum(1 << at for at, column in enumerate(present) if row[column] is None)
    values = [table.kinds[column].stored(row[column]) for column in present if row[column] is not None]
    return nulls.to_bytes((len(present) + 7) // 8, "little") + b"".join(values)


def bitmap(row: Row) -> bytes:
    """Which columns the images have."""
    bits = sum(1 << column for column, value in row.items() if value is not ABSENT)
    return bits.to_bytes((len(row) + 7) // 8, "little")


def rows_event(table: ModelTable, images: list[Row]) -> bytes:
    """An event with one row: its new image, its old one, or both."""
    kind, rows = images[0]["kind"], [{k: v for k, v in row.items() if k != "kind"} for row in images]  # type: ignore[index]
    body = struct.pack("<I", table.number) + b"\0\0\1\0\2\0" + bytes([len(table.kinds)])
    body += b"".join(bitmap(row) for row in rows) + b"".join(image(table, row) for row in rows)
    return event(kind, body)


class Model:
    """What `WriteSets` says, from the definition."""

    def __init__(self) -> None:
        self.floor = 0
        self.history: list[tuple[int, set[Any], set[Any]]] = []
        self.begin()

    def begin(self) -> None:
        self.writes: set[Any] = set()
        self.reads: set[Any] = set()
        self.serial = False

    def finish(self, sequence: int) -> int:
        if self.serial or sequence == 1:
            self.floor = sequence
            return sequence - 1
        last = self.floor
        for number, writes, reads in self.history:
            if number > self.floor and (self.writes & (writes | reads) or self.reads & writes):
                last = max(last, number)
        self.history.append((sequence, self.writes, self.reads))
        return last

    def take(self, table: ModelTable, kind: int, images: list[Row]) -> None:
        deletes = kind == EventType.DELETE_ROWS
        if table.flags & codes.PLAN_SERIAL or (deletes and table.flags & codes.PLAN_CASCADES_DELETE):
            self.serial = True
            return
        if all(value is ABSENT for row in images for value in row.values()):
            self.serial = True  # a row without a byte
            return
        old_named = False
        for at, row in enumerate(images):
            named = False
            for key in table.keys:
                value = self.value(table, key, row)
                unchanged = (
                    kind == EventType.UPDATE_ROWS
                    and value is ABSENT
                    and any(row[column] is ABSENT for column, _ in key.parts)
                    and all(table.kinds[column].form != codes.FORM_NONE for column, _ in key.parts)
                    and all(images[1][column] is ABSENT for column, _ in key.parts)
                )
                if unchanged:
                    named = named or (at == 1 and old_named)
                elif value is not None:
                    token = (key.name, value)
                    if value is ABSENT:
                        self.writes.add((key.name, "any"))
                    else:
                        (self.reads if key.flags & codes.KEY_READS else self.writes).add(token)
                        self.reads.add((key.name, "any"))
                    named = named or bool(key.flags & codes.KEY_NAMES_ROW)
                cascades = kind == EventType.UPDATE_ROWS and at == 1 and key.flags & codes.KEY_CASCADES_UPDATE
                if cascades and self.rewritten(table, key, *images):
                    self.serial = True
            if not named:
                self.writes.add(("nameless", table.number))
            if at == 0:
                old_named = named

    def rewritten(self, table: ModelTable, key: ModelKey, old: Row, new: Row) -> bool:
        """Whether a key's value, which others may name, gets other bytes, as far as that can be told."""
        columns = [column for column, _ in key.parts]
        if any(old[column] is None for column in columns):
            return False
        stored = [
            [
                row[column] if row[column] in (ABSENT, None) else table.kinds[column].stored(row[column])
                for row in (old, new)
            ]
            for column in columns
        ]
        return (
            any(table.kinds[column].form == codes.FORM_NONE for column in columns)
            or any(after is not ABSENT and after != before for before, after in stored)
            or not columns
        )

    def value(self, table: ModelTable, key: ModelKey, row: Row) -> Any:
        """None: a part is NULL; ABSENT: not comparable."""
        found = []
        for column, prefix in key.parts:
            value = row[column]
            if value is None:
                return None
            found.append(ABSENT if value is ABSENT else table.kinds[column].same(value, prefix))
        return ABSENT if any(value is ABSENT for value in found) or not found else tuple(found)


def any_table(chance: random.Random, number: int) -> ModelTable:
    kinds = tuple(chance.choice(KINDS) for _ in range(chance.randrange(1, 10)))
    keys = []
    for place in range(chance.randrange(4)):
        columns = chance.sample(range(len(kinds)), chance.randrange(1, min(3, len(kinds)) + 1))
        parts = tuple((c, chance.choice((0, 0, 1)) if kinds[c].form in (1, 2, 3) else 0) for c in columns)
        flags = chance.choice((codes.KEY_NAMES_ROW, codes.KEY_NAMES_ROW, codes.KEY_READS, 0))
        flags |= chance.choice((0, 0, 0, codes.KEY_CASCADES_UPDATE))
        keys.append(
            ModelKey(
                chance.choice((f"k{number}-{place}", f"shared {[(kinds[c].form, prefix) for c, prefix in parts]}")),
                parts,
                flags,
            )
        )
    return ModelTable(
        number, kinds, tuple(keys), chance.choice((0,) * 8 + (codes.PLAN_SERIAL, codes.PLAN_CASCADES_DELETE))
    )


def any_row(chance: random.Random, table: ModelTable, minimal: bool) -> Row:
    row: Row = {}
    for column, kind in enumerate(table.kinds):
        row[column] = chance.choice((*kind.values, None))
        if minimal and chance.random() < 0.4:
            row[column] = ABSENT
    return row


@pytest.mark.parametrize("seed", range(40))
def test_write_sets_say_what_the_definition_says(build: KernelBuild, seed: int) -> None:
    chance = random.Random(seed)
    sets = build.write_sets.WriteSets(100_000)
    sets.begin_file(POST_MAP)
    model = Model()
    tables = [any_table(chance, number) for number in range(1, 6)]
    waits = 0
    for sequence in range(1, 120):
        sets.begin_group()
        model.begin()
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            table = chance.choice(tables)
            kind = chance.choice((EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS))
            minimal = chance.random() < 0.3
            images = [any_row(chance, table, minimal) for _ in range(2 if kind == EventType.UPDATE_ROWS else 1)]
            map_event = event(EventType.TABLE_MAP, table.body)
            if sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_PLAN:
                assert sets.wanted_map() == table.body
                sets.add_plan(table.plan())
                assert sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_TAKEN
            data = rows_event(table, [{"kind": kind, **row} for row in images])  # type: ignore[dict-item]
            sets.take(data, 0, len(data), POST_ROWS)
            if not model.serial:
                model.take(table, kind, images)
        assert (sets.serial != codes.SERIAL_NOT) == model.serial, sequence
        expected = model.finish(sequence)
        assert sets.finish_group(sequence) == expected, sequence
        waits += expected < sequence - 1
    assert waits > 0


@pytest.mark.parametrize("seed", range(20))
def test_who_begins_behind_a_transaction_that_all_wait_for_says_the_same(build: KernelBuild, seed: int) -> None:
    """A view goes on so where its relay was ended."""
    chance = random.Random(seed)
    table = ModelTable(1, (KINDS[0],), (ModelKey("k", ((0, 0),), codes.KEY_NAMES_ROW),))
    groups = [[event(EventType.TABLE_MAP, table.body)] for _ in range(400)]
    for group in groups:
        for _ in range(chance.randrange(1, 5)):
            row: Row = {"kind": EventType.WRITE_ROWS, 0: chance.randrange(200)}  # type: ignore[dict-item]
            group.append(rows_event(table, [row]))

    def run(sets: Any, first: int) -> list[tuple[int, int]]:
        said = []
        for sequence in range(first, len(groups) + 1):
            sets.begin_group()
            for data in groups[sequence - 1]:
                if sets.take(data, 0, len(data), POST_ROWS) == codes.SET_PLAN:
                    sets.add_plan(table.plan())
                    sets.take(data, 0, len(data), POST_ROWS)
            said.append((sets.finish_group(sequence), sets.floor))
        return said

    whole = run(build.write_sets.WriteSets(50), 1)
    assert len({floor for _, floor in whole}) > 3
    begin = chance.choice([floor for _, floor in whole])
    sets = build.write_sets.WriteSets(50)
    sets.begin_anew(begin)
    assert run(sets, begin + 1) == whole[begin:]


def test_a_value_that_nobody_can_compare_is_told_by_a_minimal_image_all_the_same(build: KernelBuild) -> None:
    """One gives a row a new primary key, the other finds it by that, and changes another column."""
    for kind, value in ((KINDS[5], "Yy"), (KINDS[2], "é")):
        table = ModelTable(1, (kind, KINDS[0]), (ModelKey("k", ((0, 0),), codes.KEY_NAMES_ROW),))
        sets = build.write_sets.WriteSets()
        images: list[list[Row]] = [
            [{"kind": EventType.WRITE_ROWS, 0: "old", 1: 1}],  # type: ignore[dict-item]
            [{"kind": EventType.UPDATE_ROWS, 0: "old", 1: ABSENT}, {0: value, 1: ABSENT}],  # type: ignore[dict-item]
            [{"kind": EventType.UPDATE_ROWS, 0: value, 1: ABSENT}, {0: ABSENT, 1: 2}],  # type: ignore[dict-item]
        ]
        waits = []
        for sequence, rows in enumerate(images, 1):
            sets.begin_group()
            map_event = event(EventType.TABLE_MAP, table.body)
            if sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_PLAN:
                sets.add_plan(table.plan())
            data = rows_event(table, rows)
            sets.take(data, 0, len(data), POST_ROWS)
            waits.append(sets.finish_group(sequence))
        assert waits == [0, 1, 2]


def test_a_value_that_foreign_keys_copy_is_another_one_where_it_only_looks_otherwise(build: KernelBuild) -> None:
    """A cascade gives the rows that name a value its new letters, though the server takes both for equal; and so on from these."""
    for kind, old, new in (
        (KINDS[2], "a", "A "),
        (KINDS[3], "a", "a "),
        (KINDS[4], b"a", b"a\0"),
        (KINDS[1], 0.0, -0.0),
    ):
        key = ModelKey("k", ((0, 0),), codes.KEY_NAMES_ROW | codes.KEY_CASCADES_UPDATE)
        table = ModelTable(1, (kind, KINDS[0]), (key,))
        sets = build.write_sets.WriteSets()
        serial = []
        for values in ((old, old), (old, new)):
            images: list[Row] = [{"kind": EventType.UPDATE_ROWS, 0: values[0], 1: 1}, {0: values[1], 1: 2}]  # type: ignore[dict-item]
            sets.begin_group()
            map_event = event(EventType.TABLE_MAP, table.body)
            if sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_PLAN:
                sets.add_plan(table.plan())
            data = rows_event(table, images)
            sets.take(data, 0, len(data), POST_ROWS)
            serial.append(sets.serial)
        assert serial == [codes.SERIAL_NOT, codes.SERIAL_CASCADE], kind


def test_a_map_with_other_flags_is_of_the_same_table_and_another_map_of_its_number_makes_a_group_serial(
    build: KernelBuild,
) -> None:
    table = ModelTable(1, (KINDS[0],), (ModelKey("k", ((0, 0),), codes.KEY_NAMES_ROW),))
    plain = event(EventType.TABLE_MAP, table.body)
    referred = event(EventType.TABLE_MAP, table.body[:6] + b"\3\0" + table.body[8:])
    other = event(EventType.TABLE_MAP, table.body[:6] + b"\1\0" + table.body[8:].replace(b"t1", b"t2"))
    sets = build.write_sets.WriteSets()

    def asked(group: list[bytes]) -> int:
        """How often plans are given until all of the group is taken."""
        for count in range(5):
            sets.begin_group()
            if all(sets.take(data, 0, len(data), POST_ROWS) == codes.SET_TAKEN for data in group):
                return count
            sets.add_plan(table.plan())
        raise AssertionError("plans are asked for again and again")

    row: Row = {"kind": EventType.WRITE_ROWS, 0: 5}  # type: ignore[dict-item]
    rows = rows_event(table, [row])
    assert (asked([plain, rows, referred, rows, plain, rows]), sets.serial) == (1, codes.SERIAL_NOT)
    assert (asked([referred, rows]), sets.serial) == (0, codes.SERIAL_NOT)
    assert (asked([plain, rows, other, rows]), sets.serial) == (0, codes.SERIAL_MALFORMED)
    assert (asked([other, rows]), sets.serial) == (1, codes.SERIAL_NOT)
    assert (asked([plain, rows, other, rows]), sets.serial) == (1, codes.SERIAL_MALFORMED)


@pytest.mark.parametrize("seed", range(100))
def test_what_is_no_event_is_serial_and_reads_nothing_beyond(build: KernelBuild, seed: int) -> None:
    chance = random.Random(seed)
    table = any_table(chance, 1)
    sets = build.write_sets.WriteSets(100)
    sets.begin_group()
    map_event = event(EventType.TABLE_MAP, table.body)
    if sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_PLAN:
        sets.add_plan(table.plan())
        sets.take(map_event, 0, len(map_event), POST_MAP)
    data = bytearray(rows_event(table, [{"kind": EventType.WRITE_ROWS, **any_row(chance, table, False)}]))  # type: ignore[dict-item]
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(19, len(data))] = chance.randrange(256)
    del data[chance.randrange(19, len(data) + 1) :]
    sets.take(bytes(data), 0, len(data), POST_ROWS)
    assert sets.finish_group(1) == 0


@pytest.mark.parametrize(
    "plan",
    [
        [],
        [0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0, 1, 1, 1, 1],
        [0, 0, 1, 0, 1, 1, 1, 1, 9, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 300, 0],
        [0, 0, -1, 0],
        [0, 0, 0, 256],
        [0, 0, 0, -1],
    ],
)
def test_a_plan_that_cannot_be_is_refused(build: KernelBuild, plan: list[int]) -> None:
    sets = build.write_sets.WriteSets()
    map_event = event(EventType.TABLE_MAP, ModelTable(1, (KINDS[0],), ()).body)
    assert sets.take(map_event, 0, len(map_event), POST_MAP) == codes.SET_PLAN
    with pytest.raises(ValueError, match=r"plan|keys"):
        sets.add_plan(array("q", plan))
