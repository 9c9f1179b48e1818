"""Tables whose rows foreign keys may have changed, where nobody knows which keys there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

import pyarrow as pa  # noqa: E402

from protocol.sql.tables.source_table import Column, ForeignKey, Table, TableName  # noqa: E402
from relay.feed.cascades import note_cascades  # noqa: E402
from relay.feed.feed_batch import FeedBatch, TablePart  # noqa: E402
from relay.feed.rows.feed_place import FeedOffset  # noqa: E402

START, CHANGED, END = (FeedOffset(1, 1, position) for position in (4, 200, 900))
PARENT, CHILD = ("shop", "parent"), ("shop", "child")


@dataclass
class Archive:
    """One batch: a row of `parent` was deleted; of `child` nothing was logged."""

    child: Table | None
    by_engine: frozenset[int] | None = None
    operation: str = "delete"
    asked: list[str] = field(default_factory=list)

    def names_at(self, _place: FeedOffset) -> list[TableName]:
        return [PARENT]

    def table(self, key: TableName, _at: FeedOffset, _upto: FeedOffset) -> Table | None:
        return self.child if key == CHILD else Table(*PARENT, foreign_keys=())

    def changed_rows(self, _start: FeedOffset, _end: FeedOffset) -> Iterator[pa.Table]:
        row = {"file": "mysql-bin.000001", "transaction": CHANGED.position, "operation": self.operation}
        yield pa.Table.from_pylist([row])

    def stale(self, **more: object) -> list[FeedOffset]:
        """Where `child` is stale from."""
        batch = FeedBatch(START, END, {PARENT: TablePart(PARENT)}, by_engine=self.by_engine)
        with duckdb.connect() as connection:
            note_cascades(self, connection, batch, [PARENT, CHILD], **more)  # type: ignore[arg-type]
        part = batch.parts.get(CHILD)
        return [one.start for one in part.unseen] if part is not None else []


@pytest.mark.parametrize("child", [None, Table(*CHILD)], ids=["not known", "its foreign keys are not known"])
@pytest.mark.parametrize("operation", ["delete", "update"])
def test_a_table_of_which_no_foreign_key_is_known_is_stale_where_any_row_is_changed(
    child: Table | None, operation: str
) -> None:
    (place,) = Archive(child, operation=operation).stale()
    assert place.position == CHANGED.position


def test_rows_that_are_only_added_change_no_others() -> None:
    assert Archive(None, operation="insert").stale() == []


def test_a_table_of_which_somebody_said_that_it_has_none_is_not() -> None:
    assert Archive(None).stale(is_excepted=lambda key: key == CHILD) == []


def test_a_table_that_has_none_is_not() -> None:
    assert Archive(Table(*CHILD, foreign_keys=())).stale() == []


@pytest.mark.parametrize(
    ("by_engine", "stale"), [((), []), ((END,), []), ((CHANGED,), [CHANGED]), ((CHANGED, END), [CHANGED])]
)
def test_only_transactions_whose_foreign_keys_the_engine_carries_out_leave_something_out(
    by_engine: tuple[FeedOffset, ...], stale: list[FeedOffset]
) -> None:
    assert Archive(None, frozenset(place.version for place in by_engine)).stale() == stale


@dataclass
class Rows(Archive):
    """As before, with rows: of tables by name, whose images are of (id, n)."""

    key: ForeignKey = field(default_factory=lambda: ForeignKey(("p",), *PARENT, ("id",), "CASCADE", "CASCADE"))
    rows: Mapping[TableName, Sequence[tuple[str | None, str | None]]] = field(default_factory=dict)

    computed: bool = False

    def __post_init__(self) -> None:
        self.child = Table(*CHILD, foreign_keys=(("fk", self.key),))

    def table(self, key: TableName, _at: FeedOffset, _upto: FeedOffset) -> Table | None:
        extra = "STORED GENERATED" if self.computed else ""
        columns = (Column("n", "int(11)"), Column("id", "int(11)", extra=extra))
        return self.child if key == CHILD else Table(*PARENT, columns=columns, foreign_keys=())

    def changed_tables(self, _start: FeedOffset, _end: FeedOffset) -> frozenset[TableName]:
        return frozenset(self.rows)

    def rows_of(self, _start: FeedOffset, _end: FeedOffset, key: TableName) -> Iterator[pa.Table]:
        for before, after in self.rows[key]:
            operation = "update" if before and after else "delete" if before else "insert"
            row = {
                "file": "mysql-bin.000001",
                "transaction": CHANGED.position,
                "operation": operation,
                "before": before,
            }
            named = {"after": after, "named": "log", "finding": None, "schema": key[0], "table": key[1]}
            types = {name: pa.string() for name in ("before", "after", "finding")}
            made = pa.Table.from_pylist([row | named])
            yield made.cast(pa.schema([field.with_type(types.get(field.name, field.type)) for field in made.schema]))


ROW, OTHER_ID, OTHER_N = '{"id": 1, "n": 1}', '{"id": 2, "n": 1}', '{"id": 1, "n": 2}'


@pytest.mark.parametrize("referenced", ["id", "ID"])
def test_a_change_of_what_a_key_refers_to_changes_the_child_whichever_case_the_key_names_it_in(referenced: str) -> None:
    key = ForeignKey(("p",), *PARENT, (referenced,), "CASCADE", "CASCADE")
    assert Rows(None, key=key, rows={PARENT: [(ROW, OTHER_ID)]}).stale()
    assert Rows(None, key=key, rows={PARENT: [(ROW, OTHER_N)]}).stale() == []


@pytest.mark.parametrize("name", ["parent", "Parent", "PARENT"])
def test_rows_of_the_parent_are_looked_for_whichever_case_they_are_logged_in(name: str) -> None:
    assert Rows(None, rows={("shop", name): [(ROW, None)]}).stale()


@pytest.mark.parametrize("changed", ["parent", "PARENT"])
def test_two_tables_whose_names_differ_in_case_are_both_looked_at(changed: str) -> None:
    rows: dict[TableName, list[tuple[str | None, str | None]]] = {
        ("shop", name): [(ROW, None) if name == changed else (None, ROW)] for name in ("parent", "PARENT")
    }
    assert Rows(None, rows=rows).stale()


def test_where_nobody_knows_what_a_key_refers_to_any_update_may_change_the_child_and_rows_that_come_do_not() -> None:
    key = ForeignKey(("p",), *PARENT, (), "RESTRICT", "CASCADE")
    assert Rows(None, key=key, rows={PARENT: [(ROW, OTHER_N)]}).stale()
    assert Rows(None, key=key, rows={PARENT: [(None, ROW), (ROW, None)]}).stale() == []


def test_a_computed_column_that_no_image_behind_the_change_has_may_be_another() -> None:
    assert Rows(None, computed=True, rows={PARENT: [(ROW, '{"n": 2}')]}).stale()
    assert Rows(None, rows={PARENT: [(ROW, '{"n": 2}')]}).stale() == []
