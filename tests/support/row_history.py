"""The rows that the tables of a binlog contain after each change, and the changes of rows that the binlog does not record:

the effects of foreign keys with CASCADE and SET NULL on other tables (MySQL 5.6 logs the parent's row only), and the columns that
MINIMAL and NOBLOB images leave out.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.support.expression_keys import ExpressionKey
from tests.support.key_judge import BINARY, JudgedTable, KeyJudge, Reference, TableName
from tests.support.logged_rows import ABSENT, Row, RowChange, Value

_SET_NULL: Final = "SET NULL"
_DEEPEST: Final = 20
Identity = tuple[Value, ...]


class TrueChange(NamedTuple):
    """A row of a table before and after, whole as far as it is known. `cascaded` says that a foreign key did it, which no event
    records."""

    table: JudgedTable
    before: Row | None
    after: Row | None
    cascaded: bool


class RowHistory:
    """Rows by their identity. `unknown` counts rows that a log changed and of which nothing was known before."""

    def __init__(self, judge: KeyJudge) -> None:
        self.tables: dict[TableName, JudgedTable] = {}
        self.unknown = 0
        self._cascades = True
        self._judge = judge
        # Several of one identity only where it is the whole row.
        self._rows: dict[TableName, dict[Identity, list[Row]]] = {}
        self._gone: set[tuple[TableName, Identity]] = set()

    def redefine(
        self, tables: dict[TableName, JudgedTable], emptied: set[TableName], renamed: dict[TableName, TableName]
    ) -> None:
        """Use other definitions from here on. `emptied` are tables that were recreated; `renamed` maps old names to new ones."""
        held = {renamed.get(name, name): rows for name, rows in self._rows.items()}
        former = {renamed.get(name, name): table for name, table in self.tables.items()}
        self._rows = {}
        for name, table in tables.items():
            rows = {} if name in emptied else held.get(name, {})
            if rows and [column.name for column in former[name].columns] != [column.name for column in table.columns]:
                raise ValueError(f"{'.'.join(name)} got other columns while it had rows, which is not followed here")
            self._rows[name] = {}
            for row in (row for same in rows.values() for row in same):
                self._rows[name].setdefault(_identity(table, row), []).append(row)
        self.tables = tables

    def rows(self, name: TableName) -> list[Row]:
        """Return the current rows of a table."""
        return [row for same in self._rows[name].values() for row in same]

    def begin_group(self, *, cascades: bool) -> None:
        """Begin another transaction. With `cascades` foreign keys change rows that it does not record."""
        self._cascades = cascades
        self._gone.clear()

    def apply(self, change: RowChange) -> Iterator[TrueChange]:
        """Yield the change of this row, and of those that foreign keys change with it."""
        table = self.tables[change.table.schema, change.table.name]
        if len(table.columns) != len(change.table.types):
            raise ValueError(
                f"{'.'.join(table.name)} has {len(table.columns)} columns, its row {len(change.table.types)}"
            )
        before = None if change.before is None else self._held(table, change.before)
        after = change.after
        if after is not None and before is not None:
            after = tuple(old if new is ABSENT else new for old, new in zip(before, after, strict=True))
        yield from self._put(table, before, after, cascaded=False, follow=self._cascades and change.checked)

    def _held(self, table: JudgedTable, image: Row) -> Row:
        """Return the whole row that a before image means."""
        rows = self._rows[table.name]
        if ABSENT not in (image[column] for column in table.identity or range(len(image))):
            found = rows.get(_identity(table, image))
            if found:
                # The image is the truth: a statement may have changed the rest unseen.
                return tuple(old if new is ABSENT else new for old, new in zip(found[-1], image, strict=True))
        else:
            for row in self.rows(table.name):
                if all(new is ABSENT or new == old for new, old in zip(image, row, strict=True)):
                    return row
        if (table.name, _identity(table, image)) not in self._gone:
            self.unknown += 1
        return image

    def _put(
        self, table: JudgedTable, before: Row | None, after: Row | None, *, cascaded: bool, follow: bool, depth: int = 0
    ) -> Iterator[TrueChange]:
        if depth > _DEEPEST:
            raise ValueError(f"cascades of {'.'.join(table.name)} do not end")
        rows = self._rows[table.name]
        if before is not None:
            identity = _identity(table, before)
            same = rows.get(identity, [])
            if same:
                same.pop()  # of several, all are equal
            if not same:
                rows.pop(identity, None)
            if cascaded:
                self._gone.add((table.name, identity))
        if after is not None:
            same = rows.setdefault(_identity(table, after), [])
            if table.identity:
                same.clear()
            same.append(after)
        yield TrueChange(table, before, after, cascaded)
        if before is None or not follow:
            return
        for reference in table.children:
            yield from self._cascade(reference, before, after, depth)

    def _cascade(self, reference: Reference, before: Row, after: Row | None, depth: int) -> Iterator[TrueChange]:
        old = [before[column] for column in reference.parent_columns]
        new = None if after is None else [after[column] for column in reference.parent_columns]
        rule = reference.on_delete if new is None else reference.on_update
        if old == new or rule not in ("CASCADE", _SET_NULL):
            return
        wanted = self.values(self.tables[reference.parent], reference.parent_columns, before)
        if wanted is None:
            return
        child = self.tables[reference.child]
        for row in self.rows(child.name):
            if row not in self._rows[child.name].get(_identity(child, row), []):
                continue  # it went with a row before it
            if self.values(child, reference.columns, row) != wanted:
                continue
            changed = None
            if rule == _SET_NULL or new is not None:
                given = [None] * len(reference.columns) if rule == _SET_NULL or new is None else new
                values = dict(zip(reference.columns, given, strict=True))
                changed = tuple(values.get(column, value) for column, value in enumerate(row))
            yield from self._put(child, row, changed, cascaded=True, follow=True, depth=depth + 1)

    def values(self, table: JudgedTable, columns: tuple[int, ...], row: Row) -> tuple[object, ...] | None:
        """Return the values of whole columns as the server compares them; None where one is NULL, or not known."""
        return self.key_values(table, tuple((column, 0) for column in columns), row)

    def expression_values(self, key: ExpressionKey, row: Row) -> tuple[int, ...]:
        """Return numbers for the values of a key over expressions; none if NULL is in it, or it is not known."""
        return self._judge.classes_of_row(key, row)

    def key_values(self, table: JudgedTable, parts: tuple[tuple[int, int], ...], row: Row) -> tuple[object, ...] | None:
        """Return the same of the first characters of columns: parts are (column, characters), 0: all."""
        found: list[object] = []
        for column, prefix in parts:
            value = row[column]
            if value is None or value is ABSENT:
                return None
            collation = table.columns[column].collation
            if collation and isinstance(value, bytes):
                whole = value.ljust(table.columns[column].width, b"\0") if collation == BINARY else value
                found.append(self._judge.class_of(collation, whole, prefix))
            else:
                found.append(value)
        return tuple(found)


def _identity(table: JudgedTable, row: Row) -> Identity:
    return tuple(row[column] for column in table.identity) if table.identity else row
