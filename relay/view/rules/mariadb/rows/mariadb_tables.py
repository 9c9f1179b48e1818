"""What a view knows of the source's tables at one place of the binlogs, and what becomes of their Table_maps and rows."""

import json
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from protocol.binlog.table_map import TableMap, UnknownColumnType, decode_table_map
from protocol.errors import Malformed
from protocol.sql.engines import takes_foreign_keys
from relay.schema_history.tables.source_table import (
    CASCADE,
    SET_NULL,
    CharsetDefault,
    Table,
    TableName,
)
from relay.view.rules.mariadb.rows.column_rule import Change, ColumnRule, TargetChoice, column_rules
from relay.view.rules.mariadb.rows.definition_guard import check_definition
from relay.view.rules.mariadb.rows.known_table import KnownTable, TableKind, decode_known_table, recorded
from relay.view.rules.mariadb.rows.learned_tables import ToldDefinition, learn_definition
from relay.view.rules.mariadb.rows.map_metadata import (
    CollationOf,
    column_names,
    translate_metadata,
    vector_dimensions,
)
from relay.view.rules.mariadb.rows.row_images import rows_for_mysql
from relay.view.rules.mariadb.rows.sequence_rows import may_be_sequence
from relay.view.rules.mariadb.statement.known_program import VIEW, KnownProgram, ProgramName, decode_known_program
from relay.view.rules.tables.foreign_keys import REFUSES, KnownForeignKey, References
from relay.view.rules.tables.revocable_facts import RevocableFacts
from relay.view.stops import definition_stops, transaction_stops
from relay.view.stops.stop_reason import named

_ACTING: Final = (CASCADE, SET_NULL)
_ID_BYTES: Final = 6
_MOST_TEMPORARY: Final = 10_000
_MOST_REMEMBERED: Final = 10_000
"""Table_maps whose conversions are kept."""


class ConvertedTable(NamedTuple):
    """Of one Table_map event, and of the rows behind it.

    map_body: for the target; None: the table is left out, with its Annotate and its rows (a sequence). is_same: neither the map nor its
    rows change, but for the version of the row events. rows_are_same: the rows do not.
    """

    name: TableName
    map_body: bytes | None
    is_same: bool
    rows_are_same: bool
    rules: tuple[ColumnRule, ...]

    def rows(self, event_type: int, body: bytes) -> tuple[int, bytes]:
        """Type and body of a row event of the table (types 23-25, 30-32 and the compressed 166-171) as MySQL's of version 2.

        Raises: CannotBeKept; AssertionError for a table that is left out.
        """
        assert self.map_body is not None, "rows of a table that is left out"
        return rows_for_mysql(self.name, event_type, body, self.rules, same=self.rows_are_same)


class _ToldMap(NamedTuple):
    """A conversion without the table's number, which is another one each time that the source opens the table."""

    map_rest: bytes | None
    conversion: ConvertedTable


class MariadbTables(RevocableFacts):
    """What is known at one place. collation_of: the target's number for a collation of the source. told_kinds: `shop.s` -> whether that
    is a table or a sequence, of those from before the archive. plain: those from before it, as `shop.t`, of which nothing is another on
    the replicas.
    """

    def __init__(
        self,
        collation_of: CollationOf,
        choice: TargetChoice | None = None,
        told_kinds: Mapping[str, TableKind] | None = None,
        plain: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self._plain = frozenset(plain)
        self._references: tuple[object, References] | None = None
        self._collation_of = collation_of
        self._choice = choice or TargetChoice()
        self._told_kinds = dict(told_kinds or {})
        self.changes = object()
        """Another one behind each change."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._tables: dict[TableName, KnownTable] = {}
        self._absent: dict[TableName, bool] = {}
        """Those that are not there, and that no complete schema would tell of."""
        self._complete: dict[str, bool] = {}
        """Schemas that were made in the archive: all of their tables are known, or are doubtful."""
        self._doubtful: dict[TableName, bool] = {}
        """Of these nobody knows whether they are there."""
        self._charsets: dict[str, CharsetDefault] = {}
        """Of new tables in a schema."""
        self._temporary: dict[tuple[int, str, str], bool] = {}
        """(connection, schema, table)."""
        self._programs: dict[ProgramName, KnownProgram] = {}
        self._programs_told = ""
        """All of them as `state` has them: there may be many, and they change seldom; "": to be put together."""
        self._behind: dict[TableName, list[KnownProgram]] | None = None
        """By the name that sets them off; None: to be worked out."""
        self._in_lower_case: dict[TableName, dict[TableName, bool]] = {}
        """The tables that are known, by their names in lower case."""
        self._names: list[TableName] = []
        self._lines: dict[TableName, str] = {}
        self._remembered: dict[bytes, _ToldMap] = {}
        self.changes = object()

    # ---- what is known ----

    def get(self, name: TableName) -> KnownTable | None:
        """None: nobody knows the table, or it is not there."""
        return self._tables.get(self._resolved(name))

    def table(self, name: TableName) -> Table | None:
        """As `get`; None also where its columns are not known, and of a sequence."""
        known = self.get(name)
        return known.table if known is not None and known.columns else None

    def is_there(self, name: TableName) -> bool | None:
        """None: nobody knows."""
        if name in self._tables or (VIEW, *name) in self._programs:
            return True
        if name in self._doubtful or self._resolved(name) != name:
            return None
        return False if name in self._absent or name[0] in self._complete else None

    def is_sequence(self, name: TableName) -> bool:
        """Whether it is known, or told, to be one."""
        known = self.get(name)
        return (known.kind if known is not None else self._told_kinds.get(named(name))) == "sequence"

    def is_versioned(self, name: TableName) -> bool:
        """Whether it is known to have system versioning."""
        known = self.get(name)
        return known is not None and known.is_versioned

    def _resolved(self, name: TableName) -> TableName:
        """The table that a name means at the source: with lower_case_table_names = 1 or 2 names are the same in any case, and no binlog
        says which the source has. A name that nothing has, in a schema of which all is known, can only mean the other one."""
        if name in self._tables or name in self._doubtful or name in self._absent or (VIEW, *name) in self._programs:
            return name
        alike = self._in_lower_case.get(_lower(name), {})
        found = next(iter(alike), name)
        return found if len(alike) == 1 and found[0] in self._complete else name

    def charset_of(self, schema: str) -> CharsetDefault:
        """What new tables have that say nothing; ("", ""): not known."""
        return self._charsets.get(schema, ("", ""))

    @property
    def told_by_definition(self) -> str:
        """The first table with columns that rows do not tell from others, VECTOR or JSON that is no text, as `shop.t`; "": none has."""
        kinds = ("vector",) if self._choice.json == "longtext" else ("vector", "json")
        for name, known in self._tables.items():
            if not known.is_recorded and any(column.type.startswith(kinds) for column in known.columns):
                return named(name)
        return ""

    def is_temporary(self, thread_id: int, name: TableName) -> bool:
        """Whether a name means a temporary table of the session."""
        return (thread_id, *name) in self._temporary

    def is_told_plain(self, name: TableName) -> bool:
        """Whether nothing of it is another on the replicas, although its columns are not known."""
        known = self.get(name)
        return (known is not None and known.is_plain) or not self._plain.isdisjoint((named(name), "*"))

    @property
    def references(self) -> References:
        """Which tables refer to which, as far as their definitions are known."""
        told = self._references
        if told is None or told[0] is not self.changes:
            told = self._references = (self.changes, references_of(one.table for one in self._tables.values()))
        return told[1]

    def programs_behind(self, name: TableName) -> Sequence[KnownProgram]:
        """Views, functions and procedures of that name, and the triggers of a table of that name."""
        if self._behind is None:
            self._behind = {}
            for _key, program in sorted(self._programs.items()):
                self._behind.setdefault(program.table or program.name[1:], []).append(program)
        return self._behind.get(name, ())

    # ---- what definitions do ----

    def learn(self, told: ToldDefinition) -> None:
        """A statement of the view's group. Raises: CannotBeKept where the replica's table would not be the source's."""
        learn_definition(self, told)

    def put_program(self, name: ProgramName, program: KnownProgram | None) -> None:
        """A view, a trigger or a routine is this one; None: it is not there."""
        self._set(self._programs, name, program)

    def put(self, name: TableName, known: KnownTable) -> None:
        """The table is there, and is this one."""
        self._set(self._absent, name, None)
        self._set(self._doubtful, name, None)
        self._set(self._tables, name, known)

    def note_recorded(self, tables: Iterable[Table]) -> None:
        """So the source says of tables that were there before the archive; what is known of one stays."""
        for table in tables:
            name = (table.schema, table.name)
            known = self._tables.get(name)
            if known is None or (not known.columns and known.kind == "table"):
                self.put(name, recorded(table))

    def remove(self, name: TableName) -> None:
        """The table is not there."""
        name = self._resolved(name)
        self._set(self._tables, name, None)
        self._set(self._doubtful, name, None)
        self._set(self._absent, name, None if name[0] in self._complete else True)
        self._move_triggers(name, None)

    def forget(self, name: TableName) -> None:
        """Nobody knows any more whether the table is there, nor what it is."""
        self._set(self._tables, name, None)
        self._set(self._absent, name, None)
        self._set(self._doubtful, name, True if name[0] in self._complete else None)

    def rename(self, old: TableName, new: TableName) -> None:
        """The table is called otherwise; one that nobody knows stays so."""
        old = self._resolved(old)
        known = self._tables.get(old)
        view = self._programs.get((VIEW, *old))
        if view is not None:
            self._set(self._programs, (VIEW, *old), None)
            self._set(self._programs, (VIEW, *new), view._replace(name=(VIEW, *new)))
            return
        self._move_triggers(old, new)
        self.remove(old)
        if known is None:
            self.forget(new)
        else:
            table = replace(known.table, schema=new[0], name=new[1])
            self.put(new, known._replace(table=table))

    def _move_triggers(self, table: TableName, other: TableName | None) -> None:
        """The table has another name; None: it is gone, and its triggers are."""
        for program in [one for one in self.programs_behind(table) if one.table == table]:
            self._set(self._programs, program.name, None if other is None else program._replace(table=other))

    def drop_schema(self, schema: str) -> None:
        """The schema is gone, or was made now: it has no tables."""
        for which in (self._tables, self._absent, self._doubtful):
            for name in [name for name in which if name[0] == schema]:
                self._set(which, name, None)
        for program in [key for key in self._programs if key[1] == schema]:
            self._set(self._programs, program, None)
        self._set(self._charsets, schema, None)
        self._set(self._complete, schema, True)

    def note_charset(self, schema: str, default: CharsetDefault) -> None:
        """New tables of the schema have it from now on."""
        self._set(self._charsets, schema, default if default[0] else None)

    def note_temporary(self, thread_id: int, name: TableName, *, is_there: bool) -> None:
        """A session made or dropped a temporary table. Of too many, one is forgotten, and with it what its name may mean."""
        if is_there and len(self._temporary) >= _MOST_TEMPORARY:
            least = min(self._temporary)
            self._set(self._temporary, least, None)
            self.forget(least[1:])
        self._set(self._temporary, (thread_id, *name), True if is_there else None)

    def source_started(self) -> None:
        """The source was started anew: temporary tables are gone."""
        for name in list(self._temporary):
            self._set(self._temporary, name, None)

    # ---- every change ----

    def _set(self, which: dict[Any, Any], key: Any, value: Any) -> None:
        """See `RevocableFacts`."""
        before = which.get(key)
        if before == value:
            return
        self._note(which, key, before)
        self.changes = object()
        self._remembered.clear()
        if value is None:
            del which[key]
        else:
            which[key] = value
        if which is self._programs:
            self._behind = None
            self._programs_told = ""
        if which is self._tables:
            if before is None:
                insort(self._names, key)
                self._in_lower_case.setdefault(_lower(key), {})[key] = True
            if value is None:
                self._forget_lower(key)
                del self._names[bisect_left(self._names, key)]
                del self._lines[key]
            else:
                self._lines[key] = value.encode()

    @property
    def _told_programs(self) -> str:
        if not self._programs_told:
            told = [self._programs[name].encode() for name in sorted(self._programs)]
            self._programs_told = json.dumps(told, ensure_ascii=False)
        return self._programs_told

    def _forget_lower(self, name: TableName) -> None:
        alike = self._in_lower_case[_lower(name)]
        del alike[name]
        if not alike:
            del self._in_lower_case[_lower(name)]

    def state(self) -> bytes:
        """All that was learned; the same knowledge gives the same bytes."""
        known = (self._complete, self._absent, self._doubtful, self._temporary, self._programs)
        if not (self._tables or self._charsets or any(known)):
            return b""
        sets = [
            sorted(self._charsets.items()),
            sorted(self._complete),
            sorted(self._absent),
            sorted(self._doubtful),
            sorted(self._temporary),
        ]
        lines = [
            f"{json.dumps(sets, ensure_ascii=False)[:-1]}, {self._told_programs}]",
            *(f"{json.dumps(name)} {self._lines[name]}" for name in self._names),
        ]
        return "\n".join(lines).encode()

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else. b"": nothing. Raises: ValueError, KeyError, TypeError for what is no state."""
        self._journal = None
        self._begin_anew()
        if not state:
            return
        first, *lines = state.decode().split("\n")
        charsets, complete, absent, doubtful, temporary, programs = json.loads(first)
        self._charsets = {schema: (charset, collation) for schema, (charset, collation) in charsets}
        self._temporary = dict.fromkeys(((number, schema, table) for number, schema, table in temporary), True)
        self._complete = dict.fromkeys(complete, True)
        self._absent = dict.fromkeys(map(_name, absent), True)
        self._doubtful = dict.fromkeys(map(_name, doubtful), True)
        self._programs = {one.name: one for one in map(decode_known_program, programs)}
        decoder = json.JSONDecoder()
        for line in lines:
            told, end = decoder.raw_decode(line)
            name = _name(told)
            self._lines[name] = line[end + 1 :]
            self._tables[name] = decode_known_table(self._lines[name])
            self._names.append(name)
            self._in_lower_case.setdefault(_lower(name), {})[name] = True

    # ---- rows ----

    def convert_map(self, body: bytes, server_version: str = "") -> ConvertedTable:
        """What becomes of a Table_map and of the rows behind it. body: without checksum. Raises: CannotBeKept."""
        told = self._remembered.get(body[_ID_BYTES:])
        if told is None:
            told = self._converted(body)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[body[_ID_BYTES:]] = told
        if told.map_rest is None:
            return told.conversion
        return told.conversion._replace(map_body=body[:_ID_BYTES] + told.map_rest)

    def _converted(self, body: bytes) -> _ToldMap:
        try:
            found = decode_table_map(body)
            found.check_columns()
        except UnknownColumnType as error:
            raise definition_stops.column_type_of_mariadb(error.number, found.name, error.kind) from error
        except Malformed as error:
            raise transaction_stops.malformed(f"a Table_map is damaged: {error}") from error
        try:
            return self._of_table(found, body)
        except Malformed as error:
            raise transaction_stops.malformed(f"the Table_map of {named(found.name)} is damaged: {error}") from error

    def _of_table(self, found: TableMap, body: bytes) -> _ToldMap:
        metadata = list(found.optional_fields())
        names = column_names(metadata, len(found.columns))
        if self._is_sequence(found, names):
            return _ToldMap(None, ConvertedTable(found.name, None, False, False, ()))
        known = self.get(found.name)
        if known is not None and known.is_recorded:
            known = None
        if known is not None:
            check_definition(found, names, known)
        definitions = known.columns if known is not None else None
        rules = column_rules(found.name, found.columns, definitions, self._choice)
        after = tuple(rule.after for rule in rules)
        optional = found.optional
        dimensions = [rule.dimension for rule in rules if rule.change == Change.VECTOR]
        if optional:
            optional = translate_metadata(metadata, found.columns, after, self._collation_of)
        optional += vector_dimensions(dimensions)
        made = found.with_columns(after, optional).encode()
        rows_are_same = all(rule.change == Change.NONE for rule in rules)
        is_same = rows_are_same and made == body
        return _ToldMap(made[_ID_BYTES:], ConvertedTable(found.name, made, is_same, rows_are_same, tuple(rules)))

    def _is_sequence(self, found: TableMap, names: list[bytes] | None) -> bool:
        """Whether the rows are left out. By the definition, or as somebody told. Raises: CannotBeKept where nobody knows."""
        fits = may_be_sequence(found, names)
        known = self.get(found.name)
        told = known.kind if known is not None else self._told_kinds.get(named(found.name))
        if told == "sequence" and not fits:
            raise definition_stops.not_the_sequence(found.name)
        if told is None and fits:
            raise definition_stops.sequence_unknown(found.name)
        return told == "sequence"


def references_of(tables: Iterable[Table]) -> References:
    """By the foreign keys of these."""
    return References({
        (table.schema, table.name): [
            KnownForeignKey(name, (key.schema, key.table), key.on_delete if key.on_delete in _ACTING else REFUSES)
            for name, key in table.foreign_keys or ()
        ]
        for table in tables
        if table.foreign_keys and takes_foreign_keys(table.engine)
    })  # fmt: skip


def _lower(name: TableName) -> TableName:
    return name[0].lower(), name[1].lower()


def _name(told: list[str]) -> TableName:
    schema, table = told
    return schema, table
