"""Net changes against a model: whatever happened to keyed rows, in whole images or in parts, cut anywhere and repeated."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import itertools

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.columns.codes.column_codes import FORM_BYTES, FORM_NUMBER, FORM_TEXT
from protocol.sql.tables.source_table import Column, Table, whole_key
from relay.feed.lake.delta_lake import DeltaLake
from relay.feed.lake.lake_table import LakeTable, NewTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.lake_columns import lake_columns, lake_schema
from relay.feed.rows.minimal_row_images import completed_changes
from relay.feed.rows.net_changes import CHANGES, ImagesNotWhole, TableRows, net_changes
from relay.feed.rows.value_changes import value_changes

TABLE = Table(
    "shop",
    "t",
    "InnoDB",
    (
        Column("k", "varchar(9)", "utf8mb4", nullable=False),
        Column("n", "int unsigned", nullable=False),
        Column("i", "bigint unsigned", default="7"),
        Column("b", "varbinary(9)"),
        Column("d", "datetime(3)"),
        Column("sequence", "double"),
    ),
    (("PRIMARY", whole_key(("k", "n"), True)),),
)
FORMS = {"k": FORM_TEXT, "n": FORM_NUMBER, "i": FORM_NUMBER, "b": FORM_BYTES, "d": FORM_TEXT, "sequence": FORM_NUMBER}
COLUMNS = lake_columns(TABLE, "here")
ROWS = TableRows("shop.t", COLUMNS, ("k", "n"), "here")

keys = st.tuples(st.sampled_from(["a", "A", 'q"', "ü"]), st.integers(1, 3))
values = st.fixed_dictionaries(
    {
        "i": st.sampled_from([None, 0, 18446744073709551615]),
        "b": st.sampled_from([None, {"base64": ""}, {"base64": "AP8="}]),
        "d": st.sampled_from([None, "2020-02-29 12:00:00.125"]),
        "sequence": st.sampled_from([None, 0.1, -3.0]),
    }
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete", "move"]), keys, keys, values, st.sampled_from(["whole", "part"])
    ),
    min_size=1,
    max_size=25,
)

Key = tuple[str, int]
Rows = dict[Key, dict[str, Any]]


def happen(step: tuple[str, Key, Key, dict[str, Any], str], rows: Rows) -> dict[str, Any] | None:
    """What a step does to rows, and the change as the binlog has it; None: it does nothing."""
    verb, key, other, new, image = step
    if verb == "insert":
        if key in rows:
            return None
        rows[key] = dict(new)
        after = {"k": key[0], "n": key[1], **new}
        if image == "part" and new["i"] is None:
            rows[key]["i"] = 7  # the default, which a MINIMAL image leaves out
            del after["i"]
        return {"operation": verb, "before": None, "after": after}
    if key not in rows:
        return None
    old = rows[key]
    whole = {"k": key[0], "n": key[1], **old}
    short = {"k": key[0], "n": key[1]}
    if verb == "delete":
        del rows[key]
        return {"operation": verb, "before": whole if image == "whole" else short, "after": None}
    if verb == "move":
        if other in rows:
            return None
        rows[other] = rows.pop(key)
        changed: dict[str, Any] = {"k": other[0], "n": other[1]}
        if image == "part":
            changed = {name: value for name, value in changed.items() if value != short[name]}
    else:
        other = key
        rows[key] = dict(new)
        changed = {name: value for name, value in new.items() if value != old[name]}
    after = {"k": other[0], "n": other[1], **rows[other]} if image == "whole" else changed
    return {"operation": "update", "before": whole if image == "whole" else short, "after": after}


def changes_of(found: list[tuple[int, dict[str, Any]]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "sequence": sequence,
                "row": 0,
                "operation": one["operation"],
                **{name: None if one[name] is None else json.dumps(one[name]) for name in ("before", "after")},
            }
            for sequence, one in found
        ],
        schema=CHANGES,
    )


def with_values(found: list[tuple[int, dict[str, Any]]]) -> pa.Table:
    """The same changes as the decoder gives them, with each value in a column of its own."""
    made = {name: pa.array([one[name] for one in changes_of(found).to_pylist()]) for name in ("sequence", "operation")}
    shape = json.dumps([*FORMS.items()])
    made["shape"] = pa.array([shape] * len(found)).dictionary_encode()
    whole = [one["after"] is None or set(one["after"]) == set(FORMS) for _, one in found]
    made["whole"], made["odd"] = pa.array(whole).cast(pa.uint8()), pa.array([0] * len(found), pa.uint8())
    for letter, side in (("b", "before"), ("a", "after")):
        for number, (name, form) in enumerate(FORMS.items()):
            values = [alone(form, (one[side] or {}).get(name)) for _, one in found]
            made[f"{letter}{number}"] = pa.array(values, pa.binary())
    return pa.table(made)


def alone(form: int, value: Any) -> bytes | None:
    if value is None:
        return None
    if form == FORM_BYTES:
        return base64.b64decode(value["base64"])
    text = json.dumps(value, ensure_ascii=False).encode()
    return text[1:-1] if form == FORM_TEXT else text


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    return one.schema == other.schema and sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))


def apply(table: LakeTable, found: list[tuple[int, dict[str, Any]]], place: FeedOffset, connection: Any) -> None:
    fed = table.place
    if fed is not None and fed >= place:
        return
    changes, by_values = changes_of(found), value_changes(connection, with_values(found), ROWS)
    try:
        net = net_changes(connection, changes, ROWS)
        assert by_values is None or same_rows(by_values, net)
    except ImagesNotWhole:
        assert by_values is None
        net = completed_changes(connection, changes, ROWS, table.rows_of)
    if net.num_rows:
        table.merge(net, ("k", "n"), place)


def shown(table: LakeTable) -> list[tuple[Any, ...]]:
    names = [one.name for one in COLUMNS]
    return sorted((tuple(row[name] for name in names) for row in table.scan(names).read_all().to_pylist()), key=repr)


def expected(rows: Rows) -> list[tuple[Any, ...]]:
    columns = {
        "k": [key[0] for key in rows],
        "n": [key[1] for key in rows],
        "i": [None if one["i"] is None else int(one["i"]) for one in rows.values()],
        "b": [
            None if one["b"] is None else {"": b"", "AP8=": b"\x00\xff"}[one["b"]["base64"]] for one in rows.values()
        ],
        "d": pa.array(
            [None if one["d"] is None else one["d"].replace(" ", "T") for one in rows.values()], pa.string()
        ).cast(pa.timestamp("us")),
        "sequence": [one["sequence"] for one in rows.values()],
    }
    made = pa.table([pa.array(columns[one.name], one.arrow) for one in COLUMNS], names=[one.name for one in COLUMNS])
    return sorted((tuple(row.values()) for row in made.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    connection = duckdb.connect()
    directory: Path = tmp_path_factory.mktemp("lakes")
    numbers = iter(range(1_000_000))

    def fresh() -> tuple[LakeTable, Any]:
        lake = DeltaLake(str(directory / str(next(numbers))), {}, connection)
        return lake.create(
            NewTable("current", ("shop", "t"), lake_schema(COLUMNS, has_key=True), FeedOffset(1, 1, 4))
        ), connection

    yield fresh
    connection.close()


@settings(max_examples=40)
@given(steps=steps, cuts=st.lists(st.integers(0, 24), max_size=3), again=st.integers(0, 3))
def test_whatever_happened_wherever_it_was_cut_and_repeated_the_table_is_the_models(
    lakes: Any, steps: Any, cuts: list[int], again: int
) -> None:
    table, connection = lakes()
    rows: Rows = {}
    happened = [(1000 + number, one) for number, step in enumerate(steps) if (one := happen(step, rows)) is not None]
    edges = sorted({0, len(happened), *(cut for cut in cuts if cut < len(happened))})
    batches = [(happened[first:last], FeedOffset(1, 1, 100 + last)) for first, last in itertools.pairwise(edges)]
    for number, (batch, place) in enumerate(batches):
        apply(table, batch, place, connection)
        if number == again:  # a feed that was killed behind the commit reads the batch again, and those before it
            version = table.version
            for repeated, repeated_place in batches[: number + 1]:
                apply(table, repeated, repeated_place, connection)
            assert table.version == version
    assert shown(table) == expected(rows)


def test_changes_in_whole_images_need_no_images(lakes: Any) -> None:
    _table, connection = lakes()
    first = {"k": 'q"\\', "n": 1, "i": None, "b": {"base64": "AP8="}, "d": "2020-02-29 12:00:00.125", "sequence": 0.1}
    moved = {**first, "n": 2, "i": 18446744073709551615, "d": None}
    found = [
        (7, {"operation": "insert", "before": None, "after": first}),
        (8, {"operation": "update", "before": first, "after": moved}),
    ]
    net = value_changes(connection, with_values(found), ROWS)
    assert net is not None and net.num_rows == 2
    assert same_rows(net, net_changes(connection, changes_of(found), ROWS))
