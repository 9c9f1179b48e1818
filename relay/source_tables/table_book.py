"""The tables that exist at one place of the source's binlogs, with their definitions."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from protocol.errors import RelayError
from protocol.sql.engines import takes_foreign_keys
from protocol.sql.tables.altered_keys import renamed_foreign_keys
from protocol.sql.tables.source_table import CharsetDefault, ForeignKey, Table, TableName
from relay.source_tables.kept_book import BookFacts, NamesAlike, read_kept, row_of, written
from relay.source_tables.known_table import KnownTable, recorded
from relay.source_tables.names import in_lower_case
from relay.source_tables.programs import VIEW, KnownProgram, ProgramName
from relay.source_tables.references import References

_MOST_TEMPORARY: Final = 10_000
_MOST_NAMES: Final = 100_000
"""The most names of absent or doubtful tables and of schemas: where a table is created and dropped each night, they add up."""

_FOLDS: Final = "folds"

_Change = tuple[dict[Any, Any], Any, Any]


class NameWanted(RelayError):
    """Whether `name` exists must be known to continue; (schema, ""): whether the schema does."""

    def __init__(self, name: TableName) -> None:
        super().__init__("whether {}.{} exists must be known".format(*name))
        self.name = name


class SourceTables:
    """The book of tables. A table is known, absent, or doubtful: then it is not known if it exists. Every change can be taken back.

    Names that differ in case alone, of tables or of their schemas: a server with lower_case_table_names = 1 or 2 takes them for one,
    and no binlog says which setting its source has. What the book says is true with either setting, and this follows from it:

    - A CREATE or RENAME that succeeded creates another table than one that is known to exist: the source tells such names apart.
    - A name is missing if its table was removed, or if its own schema's tables are all known and it is none of them. A statement that
      succeeded with such a name meant the only known table that differs in case, so the source takes such names for one ("folds").
      Before such a statement it is not known whether a missing name exists while another that differs in case is known, or doubtful.
    - Whatever else happens to a name, or to a schema, makes those doubtful that differ in case alone.
    - RENAME may mean a view. Where views are not learned, its name means no other table before the source is known to fold.
    """

    certain: ClassVar[bool] = True
    """True if a foreign key that may have changed counts as unknown; else it counts as if it still existed."""
    notes_absent: ClassVar[bool] = True
    """Whether removed tables are kept of schemas that are not complete; else the doubtful tables of these are."""
    learns_views: ClassVar[bool] = False

    def __init__(self) -> None:
        self._newest_lineage = 0
        self._asked: set[TableName] | None = None
        self._touched: dict[TableName, None] = {}
        self._reset()

    def _reset(self) -> None:
        self._journal: list[_Change] | None = None
        """The former values by dictionary and key; None: nothing can be taken back."""
        self._tables: dict[TableName, KnownTable] = {}
        self._alike: dict[TableName, dict[TableName, None]] = {}
        """The names of these by the name in lower case."""
        self._absent: NamesAlike = {}
        """By the name in lower case; a table that becomes doubtful takes away all that differ in case."""
        self._doubtful: NamesAlike = {}
        """The same of schemas that are complete in some spelling, see `notes_absent`."""
        self._doubtful_words: dict[TableName, bool] = {}
        """As `_doubtful`: words of statements that nobody understands, in lower case."""
        self._complete: dict[str, bool] = {}
        """Schemas that the archive's statements created, or dropped (False): all of their tables are known, or doubtful."""
        self._setting: dict[str, bool] = {}
        """_FOLDS, if the source is known to take names that differ in case for one table."""
        self._charsets: dict[str, CharsetDefault] = {}
        """The default of new tables in a schema."""
        self._temporary: dict[tuple[int, str, str], KnownTable] = {}
        """By connection, schema and table."""
        self._programs: dict[ProgramName, KnownProgram] = {}
        self._set_off: dict[TableName, list[KnownProgram]] | None = None
        """The programs by the name that runs them, in lower case; None: it must be computed."""
        self._referring: dict[TableName, dict[TableName, None]] = {}
        """The tables, in lower case, with those whose foreign keys named them once."""
        self._references: References | None = None
        """The references of all tables, changed with them; None: they were not requested yet."""
        self.lineages: dict[TableName, int] = {}
        """The tables derived from one another have one number: an error in one of them is an error in all."""
        self._rows: dict[TableName, str] = {}
        self._state: bytes | None = b""
        self.changes = object()
        """An object that is replaced after each change, except of temporary tables: these are short-lived, and nothing that is derived
        from all tables depends on them."""

    # ---- what is known ----

    def get(self, name: TableName) -> KnownTable | None:
        """Return the table; None: it is absent or doubtful, or not known at all."""
        return self._tables.get(self._resolved(name))

    def table(self, name: TableName) -> Table | None:
        """Return the table of `get`; None also where its columns are not known, and for a sequence."""
        return self.exact(self._resolved(name))

    def exact(self, name: TableName) -> Table | None:
        """Return the table of `table`, by the unchanged name."""
        known = self._tables.get(name)
        return known.table if known is not None and known.columns else None

    def tables(self) -> Iterator[tuple[TableName, Table]]:
        """Yield all tables whose columns are known."""
        return ((name, known.table) for name, known in self._tables.items() if known.columns)

    def exists(self, name: TableName) -> bool | None:
        """Return whether a table, a sequence or a view of that name exists; None: not known."""
        if name in self._tables or (VIEW, *name) in self._programs:
            return True
        lower = in_lower_case(name)
        if lower in self._alike or self._views_alike(name):
            return True if self.folds else None
        if self._is_absent(name):
            return False
        return False if name[0] in self._complete and not self._may_be_doubtful(lower) else None

    @property
    def folds(self) -> bool:
        """Whether the source is known to take names that differ in case for one."""
        return bool(self._setting)

    def _is_absent(self, name: TableName) -> bool:
        names = self._absent.get(in_lower_case(name), frozenset())
        return name in names or (self.folds and bool(names))

    def _may_be_doubtful(self, lower: TableName) -> bool:
        """Whether the name is doubtful in some case."""
        return lower in self._doubtful or lower in self._doubtful_words

    def _is_missing(self, name: TableName) -> bool:
        """Whether there is no table of that name in that case."""
        lower = in_lower_case(name)
        is_doubtful = name in self._doubtful.get(lower, ()) or lower in self._doubtful_words
        return self._is_absent(name) or (name[0] in self._complete and not is_doubtful)

    def _resolved(self, name: TableName) -> TableName:
        """Return the table that a statement means by a name of a table that exists."""
        if name in self._tables or (VIEW, *name) in self._programs:
            return name
        alike = self._alike.get(in_lower_case(name), ())
        return next(iter(alike)) if len(alike) == 1 and (self.folds or self._is_missing(name)) else name

    def meant_by_rename(self, name: TableName) -> TableName:
        """The table or view that a RENAME which succeeded means."""
        return self._resolved(name) if self.learns_views or self.folds else name

    def note_meant(self, name: TableName, meant: TableName) -> None:
        """Note that a statement that succeeded named an existing table by one name, and meant the other."""
        if name != meant and meant in self._tables:
            self._set(self._setting, _FOLDS, True)

    def note_changed_rows(self, name: TableName) -> None:
        """Note that a statement that changed rows found a table by this name."""
        self.note_meant(name, self._resolved(name))

    def charset_of(self, schema: str) -> CharsetDefault:
        """Return the default of new tables that name none; ("", ""): not known."""
        return self._charsets.get(schema, ("", ""))

    @property
    def charsets(self) -> dict[str, CharsetDefault]:
        """The known defaults by schema."""
        return dict(self._charsets)

    def is_temporary(self, thread_id: int, name: TableName) -> bool:
        """Return whether a name means a temporary table of the session."""
        return (thread_id, *name) in self._temporary

    @property
    def has_temporary(self) -> bool:
        """True if any session has a temporary table."""
        return bool(self._temporary)

    @property
    def temporary(self) -> frozenset[tuple[int, TableName]]:
        """The temporary tables, each with its connection."""
        return frozenset((thread, (schema, name)) for thread, schema, name in self._temporary)

    @property
    def references(self) -> References:
        """The references between tables, as far as their definitions are known."""
        if self._references is None:
            self._references = References({name: known.foreign_keys for name, known in self._tables.items()})
        return self._references

    def programs_of(self, name: TableName) -> Sequence[KnownProgram]:
        """Return views, functions and procedures of that name, and the triggers of a table of that name, in any case."""
        if self._set_off is None:
            self._set_off = {}
            for _key, program in sorted(self._programs.items()):
                self._set_off.setdefault(in_lower_case(program.set_off_with), []).append(program)
        return self._set_off.get(in_lower_case(name), ())

    def take_touched(self) -> set[TableName]:
        """Return the tables that changed, or became doubtful, since the last call."""
        touched, self._touched = set(self._touched), {}
        return touched

    # ---- tables ----

    def put(self, name: TableName, known: KnownTable, *, is_new: bool = False) -> None:
        """Note that the table exists, and is this one. `is_new`: a statement created it, which would have failed if it had existed."""
        others = self._others(name) if name not in self._tables else []
        if is_new and others:
            self._set(self._setting, _FOLDS, None)
        for other in () if is_new else others:
            if self.folds:
                self._remove(other)
            else:
                self.doubt(other)
        self._note(self._absent, name, holds=False)
        self._note(self._doubtful, name, holds=False)
        self._set(self._tables, name, known)
        self._touched[name] = None

    def remove(self, name: TableName, *, if_exists: bool = False) -> None:
        """Note that the table, view or sequence does not exist. `if_exists`: it may not have existed before."""
        meant = self._resolved(name)
        if meant not in self._tables:
            self._doubt_alike(meant)
        elif meant != name and if_exists and not self.folds:
            self.doubt(meant)
            return
        else:
            self.note_meant(name, meant)
        self._move_triggers(meant, None)
        self._remove(meant)

    def note_missing(self, name: TableName) -> None:
        """The source reported that it has no table of that name; this says nothing of what it takes names for."""
        if name not in self._tables:
            self._doubt_alike(name)
        self._remove(name)

    def _remove(self, name: TableName) -> None:
        self._set(self._tables, name, None)
        self._note(self._doubtful, name, holds=False)
        is_certain = name[0] in self._complete and not self._may_be_doubtful(in_lower_case(name))
        self._note(self._absent, name, holds=self.notes_absent and not is_certain)
        self._touched[name] = None
        self._bound_names()

    def _note(self, which: NamesAlike, name: TableName, *, holds: bool) -> None:
        """The name is one of these, or is none: then, where the source folds, none is that differs in case."""
        lower = in_lower_case(name)
        names = which.get(lower, frozenset())
        kept = names | {name} if holds else frozenset() if self.folds else names - {name}
        self._set(which, lower, kept or None)

    def forget(self, name: TableName) -> None:
        """Make the table doubtful, and those whose names differ in case."""
        if name not in self._tables:
            self._doubt_alike(name)
        self.doubt(name)

    def doubt(self, name: TableName) -> None:
        """As `forget`, and the others that are known stay as they are."""
        self._set(self._tables, name, None)
        self._set(self._absent, in_lower_case(name), None)
        is_kept = not self.notes_absent or name[0] in self._complete or bool(self._schemas_alike(name[0]))
        self._note(self._doubtful, name, holds=is_kept)
        self._touched[name] = None
        self._bound_names()

    def _doubt_alike(self, name: TableName) -> None:
        for other in self._others(name):
            self.doubt(other)

    def _others(self, name: TableName) -> list[TableName]:
        """Return the known tables whose names differ in case alone."""
        return [other for other in self._alike.get(in_lower_case(name), ()) if other != name]

    def _bound_names(self) -> None:
        """Forget which tables are absent if the names are too many."""
        names = (self._absent, self._doubtful, self._doubtful_words, self._complete)
        if max(len(which) for which in names) > _MOST_NAMES:
            for which in names:
                for key in list(which):
                    self._set(which, key, None)

    def rename(self, old: TableName, new: TableName) -> None:
        """The table or view has another name; one that is not known stays so."""
        named, old = old, self.meant_by_rename(old)
        self.note_meant(named, old)
        views = self._views_alike(old) if old not in self._tables else []
        if len(views) == 1 and (self.folds or views[0].name[1:] == old):
            self.put_program(views[0].name, None)
            self.put_program((VIEW, *new), views[0]._replace(name=(VIEW, *new)))
            return
        self._doubt_views(views)
        known, lineage = self._tables.get(old), self.lineages.get(old)
        self._move_triggers(old, new)
        if known is None:
            self._doubt_alike(old)
            self._remove(old)
            self.forget(new)
            if self.certain:
                self.doubt_references(old)
            else:
                self._follow(old, "", new)
            return
        self._remove(old)
        foreign = renamed_foreign_keys(known.table, new[1])
        moved = replace(known.table, schema=new[0], name=new[1], foreign_keys=foreign)
        self.put(new, known._replace(table=moved), is_new=True)
        if lineage is not None:
            self.lineages[new] = lineage
        self._follow(old, known.engine, new)

    def _follow(self, old: TableName, engine: str, new: TableName) -> None:
        self.refer_to(old, engine, lambda key: replace(key, schema=new[0], table=new[1]))

    def note_recorded(self, tables: Iterable[Table]) -> None:
        """Note tables from before the archive, as reported by the source, with all that refers to them; known facts stay."""
        for table in tables:
            name = (table.schema, table.name)
            known = self._tables.get(name)
            if known is None or not (known.columns or known.kind == "sequence" or known.since_create):
                self.put(name, recorded(table))

    def new_lineage(self, name: TableName) -> None:
        """Note that the table is derived from no other."""
        self._newest_lineage += 1
        self.lineages[name] = self._newest_lineage

    # ---- foreign keys ----

    def _children(self, parent: TableName) -> list[TableName]:
        """Return the known tables whose foreign keys refer to one, whatever the case of its name."""
        lower = in_lower_case(parent)
        referring = self._referring.get(lower, {})
        found = [one for one in referring if one in self._tables and lower in self._tables[one].table.parents]
        if referring:
            self._referring[lower] = dict.fromkeys(found)
        return found

    def doubt_references(self, parent: TableName) -> None:
        """Forget the foreign keys that refer to a table which, or whose columns, may have been renamed."""
        for child in self._children(parent):
            self._put_keys(child, None)

    def refer_to(self, parent: TableName, engine: str, change: Callable[[ForeignKey], ForeignKey]) -> None:
        """Change the foreign keys that refer to a table. Those that name it in another case may refer to another table.

        `engine` is that of the table. A foreign key may refer to a table that is none of InnoDB: it means one that was removed.
        """
        if not takes_foreign_keys(engine):
            return
        lower = in_lower_case(parent)
        for child in self._children(parent):
            foreign = self._tables[child].table.foreign_keys or ()
            about = [
                (one.schema, one.table) for _name, one in foreign if in_lower_case((one.schema, one.table)) == lower
            ]
            if self.certain and any(name != parent for name in about):
                self._put_keys(child, None)
            else:
                self._put_keys(
                    child,
                    tuple((name, change(one) if (one.schema, one.table) in about else one) for name, one in foreign),
                )

    def _put_keys(self, name: TableName, foreign: tuple[tuple[str, ForeignKey], ...] | None) -> None:
        known = self._tables[name]
        self.put(name, known._replace(table=replace(known.table, foreign_keys=foreign)))

    # ---- schemas ----

    def create_schema(self, schema: str, *, if_not_exists: bool = False) -> bool:
        """CREATE DATABASE that succeeded: whether it is known to have created it, and with no tables."""
        if if_not_exists and self.schema_exists(schema) is None:
            self.want((schema, ""))
        if if_not_exists and self.schema_exists(schema) is not False:
            for other in self._schemas_alike(schema):
                self._set(self._complete, other, self._complete.get(other) or None)
            return False
        self.drop_schema(schema)
        self._set(self._complete, schema, True)
        return True

    # ---- names of IF NOT EXISTS ----

    @contextlib.contextmanager
    def asking(self, asked: "set[TableName] | None") -> Iterator[None]:
        """Raise NameWanted for names of IF NOT EXISTS that are not known and not among `asked`; None: for none."""
        self._asked = asked
        try:
            yield
        finally:
            self._asked = None

    def want(self, name: TableName) -> None:
        """Ask for a name that may exist since before the archive. Raises: NameWanted."""
        if self._asked is not None and name not in self._asked:
            raise NameWanted(name)

    def note_absent(self, name: TableName) -> None:
        """Note that no such table exists, or, for an empty name, no such schema."""
        if name[1]:
            self._note(self._absent, name, holds=True)
        else:
            self._set(self._complete, name[0], False)

    def drop_schema(self, schema: str) -> None:
        """DROP DATABASE: it has no tables any more."""
        others = self._schemas_alike(schema)
        dropped = {schema, *others} if self.folds else {schema}
        for name in [name for name in self._tables if name[0].lower() == schema.lower()]:
            if name[0] in dropped:
                self._set(self._tables, name, None)
                self._touched[name] = None
            else:
                self.doubt(name)
        for which in (self._absent, self._doubtful):
            for lower, names in [one for one in which.items() if one[0][0] == schema.lower()]:
                self._set(which, lower, frozenset(name for name in names if name[0] not in dropped) or None)
        for lower in [lower for lower in self._doubtful_words if lower[0] == schema.lower()]:
            self._set(self._doubtful_words, lower, None)
        for key, program in list(self._programs.items()):
            if not dropped.isdisjoint((key[1], program.set_off_with[0])):
                self.put_program(key, None)
            elif key[0] == VIEW and key[1].lower() == schema.lower():
                self._doubt_views([program])
        for one in (schema, *others):
            self._set(self._charsets, one, None)
            self._set(self._complete, one, None)
        self._set(self._complete, schema, False)

    def _schemas_alike(self, schema: str) -> list[str]:
        """The schemas of which something is known, but for tables, and whose names differ in case alone."""
        lower = schema.lower()
        known = {**self._complete, **self._charsets}
        return [other for other in known if other.lower() == lower and other != schema]

    def schema_exists(self, schema: str) -> bool | None:
        """Return whether a statement of the archive created it, or dropped it (False); None: not known."""
        return self._complete.get(schema)

    def alter_charset(self, schema: str, default: CharsetDefault) -> None:
        """A statement that succeeded gave the schema this character set, see `note_charset`."""
        for other in self._schemas_alike(schema):
            self._set(self._charsets, other, None)
        self.note_charset(schema, default)

    def note_charset(self, schema: str, default: CharsetDefault) -> None:
        """Set the default of new tables of the schema; ("", ""): it is not known."""
        self._set(self._charsets, schema, default if default[0] else None)

    # ---- temporary tables ----

    def put_temporary(self, thread_id: int, name: TableName, known: KnownTable) -> None:
        """A session created it. If there are too many, one of the oldest session is dropped from the book: what its name means is
        doubtful."""
        self.drop_temporary(thread_id, name)
        while len(self._temporary) >= _MOST_TEMPORARY:
            thread, *oldest = min(self._temporary)
            self.drop_temporary(thread, (oldest[0], oldest[1]))
            self.forget((oldest[0], oldest[1]))
        self._set(self._temporary, (thread_id, *name), known._replace(temporary=True))

    def drop_temporary(self, thread_id: int, name: TableName) -> bool:
        """Drop it; return whether the session had it."""
        had = (thread_id, *name) in self._temporary
        self._set(self._temporary, (thread_id, *name), None)
        return had

    def note_temporary(self, tables: Iterable[tuple[int, TableName]]) -> None:
        """Note that these temporary tables exist."""
        for thread_id, name in sorted(tables):
            self.put_temporary(thread_id, name, KnownTable(Table(*name)))

    def source_started(self) -> None:
        """Note that the source was started: it has no temporary tables."""
        for key in list(self._temporary):
            self._set(self._temporary, key, None)

    # ---- programs ----

    def put_program(self, name: ProgramName, program: KnownProgram | None) -> None:
        """Set a view, a trigger or a routine; None: it does not exist."""
        self._set(self._programs, name, program)

    def drop_view(self, name: TableName) -> None:
        """DROP VIEW: a view whose name differs in case is doubtful."""
        self.put_program((VIEW, *name), None)
        self._doubt_views(self._views_alike(name))
        self._doubt_alike(name)
        if name in self._tables:
            self.doubt(name)

    def _views_alike(self, name: TableName) -> list[KnownProgram]:
        return [one for one in self.programs_of(name) if one.name[0] == VIEW]

    def _doubt_views(self, views: Iterable[KnownProgram]) -> None:
        for view in views:
            self.put_program(view.name, None)
            self.doubt(view.name[1:])

    def _move_triggers(self, table: TableName, other: TableName | None) -> None:
        """Rename the table of its triggers; None: it does not exist, nor do they."""
        for program in [one for one in self.programs_of(table) if one.table == table]:
            self.put_program(program.name, None if other is None else program._replace(table=other))

    # ---- statements that cannot be read ----

    def clear(self) -> None:
        """Forget everything."""
        touched = {**self._touched, **dict.fromkeys(self._tables)}
        self._reset()
        self._touched = touched

    def forget_words(self, words: Iterable[str] | None) -> None:
        """Note a statement that cannot be read, with these words, in lower case, that may name tables or schemas; None: any."""
        if words is None:
            self.clear()
            return
        found = set(words)
        for schema in {schema.lower() for schema in self._complete}:
            for word in found:
                self._set(self._doubtful_words, (schema, word), True)
        for lower in [lower for lower in self._absent if lower[1] in found]:
            self._set(self._absent, lower, None)
        for name in [name for name in self._tables if name[1].lower() in found]:
            self.forget(name)
        if self.certain:
            for parent in [parent for parent in self._referring if parent[1] in found]:
                self.doubt_references(parent)
        for schema in [schema for schema in self._charsets if schema.lower() in found]:
            self._set(self._charsets, schema, None)
        self._bound_names()

    # ---- every change ----

    def begin(self) -> None:
        """Record changes from here on, so that they can be taken back, such as those of a transaction that may not count."""
        self._journal = []

    def keep(self) -> None:
        """Keep what was learned."""
        self._journal = None

    def take_back(self) -> None:
        """Forget what was learned since `begin`."""
        journal, self._journal = self._journal or [], None
        for which, key, before in reversed(journal):
            self._set(which, key, before)

    def _set(self, which: dict[Any, Any], key: Any, value: Any) -> None:
        """Set a value; None: remove it. All changes are made here."""
        before = which.get(key)
        if before.is_same(value) if isinstance(before, KnownTable) else before == value:
            return
        if self._journal is not None:
            self._journal.append((which, key, before))
        self._state = None
        if which is not self._temporary:
            self.changes = object()
        if value is None:
            del which[key]
        else:
            which[key] = value
        if which is self._tables:
            self._table_changed(key, before, value)
        elif which is self._programs:
            self._set_off = None

    def _table_changed(self, name: TableName, before: KnownTable | None, after: KnownTable | None) -> None:
        self._rows.pop(name, None)
        lower = in_lower_case(name)
        if after is None:
            self.lineages.pop(name, None)
            del self._alike[lower][name]
            if not self._alike[lower]:
                del self._alike[lower]
        else:
            self._alike.setdefault(lower, {})[name] = None
            for parent in after.table.parents:
                self._referring.setdefault(parent, {})[name] = None
        if self._references is not None:
            self._references.change(name, before.foreign_keys if before else (), after.foreign_keys if after else ())

    # ---- the stored state ----

    def state(self) -> bytes:
        """Return all that is known, except lineages; the same knowledge gives the same bytes, and nothing b""."""
        if self._state is None:
            for name, known in self._tables.items():
                if name not in self._rows:
                    self._rows[name] = row_of(known)
            facts = BookFacts(
                self.folds,
                self._charsets,
                self._complete,
                self._absent,
                self._doubtful,
                self._doubtful_words,
                self._temporary,
                self._programs,
            )
            self._state = written(facts, [self._rows[name] for name in sorted(self._tables)])
        return self._state

    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else; b"": nothing. Raises: KeptTablesUnreadable, and nothing is known."""
        if self._state == state:
            return
        self._reset()
        if not state:
            return
        facts, tables = read_kept(state)
        self._setting = {_FOLDS: True} if facts.folds_case else {}
        self._charsets, self._complete = facts.charsets, facts.complete
        self._absent, self._doubtful, self._doubtful_words = facts.absent, facts.doubtful, facts.doubtful_words
        self._temporary, self._programs = facts.temporary, facts.programs
        for known, row in tables:
            name = (known.table.schema, known.table.name)
            self._tables[name] = known
            self._table_changed(name, None, known)
            self._rows[name] = row
        self._state = state
