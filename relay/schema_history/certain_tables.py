"""Tables from before the archive, as far as all effects of a statement on them are known: their columns and keys, the absence of
triggers, and the tables that refer to them.

The source reports at one place which tables have triggers, and which refer to which (a line `triggers`). That is true of another place
if no statement between the two may have changed it. Such statements are not examined closely: after one, nothing is known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import (
    AddColumn,
    AddForeignKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    CreateDatabase,
    CreateTable,
    DropForeignKey,
    DropKey,
    DropTables,
    ForeignKeyDefinition,
    NoTable,
    RenameColumn,
)
from protocol.sql.tables.source_table import Table, TableName
from relay.schema_history.logged_definition import LoggedDefinition, definition_of
from relay.schema_history.schema_facts import DefinedSpan, Place
from relay.schema_history.schema_record import Line, RecordedSchema
from relay.source_tables.names import in_lower_case


@dataclass(frozen=True, slots=True)
class TriggerRecord:
    """At this place the account was shown all tables, and these had triggers."""

    place: Place
    tables: frozenset[TableName]


@dataclass(slots=True)
class _Watched:
    """A stretch of the binlogs, [first, last], in which every statement that defines tables or triggers was noted."""

    first: Place
    last: Place
    records: list[TriggerRecord] = field(default_factory=list)
    of_triggers: list[Place] = field(default_factory=list)
    definitions: list[tuple[Place, LoggedDefinition]] = field(default_factory=list)


class CertainTables:
    """Tables by the recorded `lines`, in their order. `scanned` contains the later statements that define tables, up to its end,
    `triggers` the places of statements about triggers in it.
    """

    def __init__(
        self, lines: Sequence[Line], scanned: DefinedSpan | None = None, triggers: Iterable[Place] = ()
    ) -> None:
        self._schema = RecordedSchema(lines, [scanned] if scanned is not None else ())
        self._watched: list[_Watched] = []
        self._databases: set[str] = set()
        """All schemas of which the source was asked, in lower case."""
        for one in lines:
            self._take(one)
        if scanned is not None and self._watched:
            last = self._watched[-1]
            last.last = max(last.last, scanned.last)
            last.definitions += [found for found in scanned.definitions if found[0] >= scanned.first]
            last.of_triggers += triggers

    def _take(self, one: Line) -> None:
        if one.kind == "watched" or not self._watched:
            self._watched.append(_Watched(one.place, one.place))
        watched = self._watched[-1]
        watched.last = max(watched.last, one.place)
        if one.kind == "trigger":
            watched.of_triggers.append(one.place)
        elif one.kind == "database":
            self._databases.add(str(one.facts.get("schema")).lower())
        elif one.kind == "definition":
            watched.definitions.append((one.place, _definition(one)))
        elif one.kind == "triggers":
            try:
                tables = frozenset((str(schema), str(table)) for schema, table in one.facts["tables"])
            except (KeyError, TypeError, ValueError):
                return
            watched.records.append(TriggerRecord(one.place, tables))

    def around(self, name: TableName, place: Place) -> list[Table] | None:
        """Return the table for a statement at this place, and those that refer to it, to these, and so on; None: not all of it is
        known, or one of them has triggers."""
        for watched in self._watched:
            if watched.first <= place <= watched.last:
                for record in _nearest(watched.records, place):
                    found = self._around(name, place, record, watched)
                    if found is not None:
                        return found
        return None

    def exists(self, name: TableName, place: Place) -> bool | None:
        """Return whether a table existed at this place, or, for an empty name, a schema; None: that is not known for certain."""
        for watched in self._watched:
            if watched.first <= place <= watched.last:
                for record in _nearest(watched.records, place):
                    found = self._exists(name, place, record, watched)
                    if found is not None:
                        return found
        return None

    def _exists(self, name: TableName, place: Place, record: TriggerRecord, watched: _Watched) -> bool | None:
        first, last = sorted((record.place, place))
        named: set[str] = set()
        for at, one in watched.definitions:
            if first <= at < last:
                if one.names is None:
                    return None
                named |= one.names
        schema, table = in_lower_case(name)
        if schema in named or (table and table in named):
            return None
        alike = [one for one in self._schema.standing(record.place) if one.schema.lower() == schema]
        if not table:
            return bool(alike) or schema in self._databases
        if any((one.schema, one.name) == name for one in alike):
            return True
        return None if any(one.name.lower() == table for one in alike) else False

    def _around(self, name: TableName, place: Place, record: TriggerRecord, watched: _Watched) -> list[Table] | None:
        first, last = sorted((record.place, place))
        if any(first <= at < last for at in watched.of_triggers):
            return None
        between = [one for at, one in watched.definitions if first <= at < last]
        if not _keeps_references(between, is_record_first=record.place <= place):
            return None
        named = {word for one in between for word in one.names or ()}
        standing = self._schema.standing(record.place)
        if any(table.foreign_keys is None for table in standing):
            return None
        found: dict[TableName, Table] = {}
        wanted = [name]
        while wanted:
            key = wanted.pop()
            if key in found:
                continue
            table = self._schema.recorded_at(key, place)
            if table is None or key[1].lower() in named or key in record.tables:
                return None
            found[key] = table
            parent = in_lower_case(key)
            wanted += [(one.schema, one.name) for one in standing if parent in one.parents]
        return list(found.values())


def _nearest(records: Sequence[TriggerRecord], place: Place) -> Iterator[TriggerRecord]:
    """Yield the last report that is not after the place, and the first that is."""
    yield from [one for one in records if one.place <= place][-1:]
    yield from [one for one in records if one.place > place][:1]


def _definition(one: Line) -> LoggedDefinition:
    try:
        return definition_of(one.facts)
    except (KeyError, TypeError, ValueError):
        return LoggedDefinition(None)


def _keeps_references(definitions: Sequence[LoggedDefinition], *, is_record_first: bool) -> bool:
    """Return whether tables that none of these name refer to the same tables at both ends. `is_record_first`: the references are known
    before them, else after them: then a table that was created between is none of those before."""
    made: set[TableName] = set()
    for one in definitions:
        try:
            statement = one.parsed()
        except UnsupportedSyntax:
            return False
        if isinstance(statement, NoTable | AlterDatabase):
            continue
        if isinstance(statement, CreateDatabase) and not statement.or_replace:
            continue
        if isinstance(statement, CreateTable) and not statement.or_replace:
            if is_record_first and _refers(statement):
                return False
            if not statement.if_not_exists and not one.error:
                made.add(statement.name)
        elif isinstance(statement, DropTables):
            if not is_record_first and not statement.temporary and not made.issuperset(statement.names):
                return False
        elif not isinstance(statement, AlterTable) or _may_refer_otherwise(statement):
            return False
    return True


def _refers(made: CreateTable) -> bool:
    return any(column.references is not None for column in made.columns) or any(
        isinstance(key, ForeignKeyDefinition) for key in made.keys
    )


def _may_refer_otherwise(altered: AlterTable) -> bool:
    return altered.rename is not None or any(
        isinstance(clause, AddForeignKey | DropForeignKey | RenameColumn)
        or (isinstance(clause, DropKey) and clause.or_constraint)
        or (isinstance(clause, AddColumn | ChangeColumn) and clause.definition.references is not None)
        for clause in altered.clauses
    )
