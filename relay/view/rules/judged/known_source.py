"""What the judge of statements knows of the source where a statement runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from protocol.columns.codes.column_codes import MOST_COLUMNS
from protocol.sql.expressions.constructs import FiredChange, StatementConstructs
from protocol.sql.expressions.readers.column_scope import KnownColumn, kind_of_type
from protocol.sql.survey.value_class import ANY, ValueClass, classes_of_type
from protocol.sql.tables.source_table import Column, TableName
from relay.source_tables.programs import FIRES, TRIGGER, VIEW, KnownProgram
from relay.source_tables.references import References
from relay.view.rules.judged.moved_keys import EVERY_COLUMN

Columns = Callable[[TableName], Sequence[Column]]
Programs = Callable[[TableName], Iterable[KnownProgram]]


class KnownSource(NamedTuple):
    """What is known of the source where a statement runs: the columns of tables, the programs by the name that sets them off, and the
    references between tables. `knows_references`: whether these contain all to a table. `has_programs`: whether some program may run.
    """

    columns: Columns
    programs: Programs
    references: Callable[[], References] = lambda: References({})
    knows_references: Callable[[TableName], bool] = lambda _: True
    has_programs: Callable[[], bool] = lambda: True

    def updated_with(self, table: TableName, assigned: frozenset[str]) -> list[TableName]:
        """Return the tables whose rows may change where these columns, in lower case, of a row do."""
        columns = self.columns(table)
        every = {one.name.lower() for one in columns}
        computed = {one.name.lower() for one in columns if one.generated}
        return self.references().updated_with(table, every if assigned is EVERY_COLUMN else assigned | computed, every)

    def columns_of(self, name: TableName) -> Mapping[str, KnownColumn] | None:
        """Return a table's columns by names in lower case; None: they are not known."""
        columns = self.columns(name)
        return {column.name.lower(): _known(column) for column in columns} if columns else None

    def base_tables(self, name: TableName) -> list[TableName]:
        """Return the tables that a view of this name reads, or the table itself."""
        found, ahead, seen = [], [name], set()
        while ahead:
            one = ahead.pop()
            if one in seen:
                continue
            seen.add(one)
            views = [program for program in self.programs(one) if program.name[0] == VIEW]
            found += [] if views else [one]
            ahead += (table for view in views for table in view.reads)
        return found

    def set_off(self, made: StatementConstructs) -> list[tuple[KnownProgram, FiredChange | None]]:
        """Return the triggers that the changes of a statement fire, each with its change, and the routines that it calls."""
        found: list[tuple[KnownProgram, FiredChange | None]] = []
        for change in made.fired:
            for table in self.base_tables(change.table):
                found += (
                    (program, change)
                    for program in self.programs(table)
                    if program.name[0] == TRIGGER and program.event in FIRES[change.event]
                )
        for name in made.calls:
            found += ((program, None) for program in self.programs(name) if program.name[0] not in (TRIGGER, VIEW))
        return found

    def sets_new_row(self, change: FiredChange) -> bool:
        """Return whether a trigger may assign columns of the rows that an UPDATE changes."""
        programs = (one for table in self.base_tables(change.table) for one in self.programs(table))
        return change.event == "UPDATE" and any(
            one.name[0] == TRIGGER and one.timing != "AFTER" and one.event in FIRES["UPDATE"] for one in programs
        )


@lru_cache(maxsize=MOST_COLUMNS)
def _known(column: Column) -> KnownColumn:
    classes = classes_of_type(column.type) or ANY
    if not column.nullable:
        classes -= {ValueClass.NULL}
    given = column.nullable or column.default is not None or column.generated or "AUTO_INC" in column.extra.upper()
    return KnownColumn(classes, kind_of_type(column.type), column.nullable, given, column.charset)
