"""The book of tables with the answers that a view of a MySQL needs: engines, triggers, and the tables that refer to others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from protocol.sql.engines import default_engine, has_transactions, takes_foreign_keys
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_table import alter_table
from protocol.sql.tables.ddl_statement import AlterTable, needs_everything
from protocol.sql.tables.foreign_key_names import last_number, made_up_name
from protocol.sql.tables.source_table import Column, ForeignKey, Table, TableName
from relay.source_tables.known_table import UNKNOWN_ENGINE, KnownTable
from relay.source_tables.names import in_lower_case
from relay.source_tables.programs import TRIGGER, VIEW, KnownProgram
from relay.source_tables.table_book import SourceTables
from relay.view.rules.tables.stored_bodies import StoredBodies

ANY_TABLE: Final = "*"
"""The key in `known_engines` and `plain_tables` for all tables of which nothing is known."""
NamedKeys = Sequence[tuple[str, ForeignKey]]
"""Foreign keys with their names; "": the server generates one."""


class TableEngines(SourceTables):
    """The book with `known` and `plain`, the configured answers about tables from before the archive, see ViewSettings."""

    certain = False
    notes_absent = False
    learns_views = True

    def __init__(self, known: Mapping[str, str] | None = None, plain: Collection[str] = ()) -> None:
        self._known = dict(known or {})
        self._plain = frozenset(plain)
        self._told_without = any(has_transactions(engine) is False for engine in self._known.values())
        super().__init__()

    def _reset(self) -> None:
        super()._reset()
        self._bodies: StoredBodies | None = None
        self._behind_each: dict[TableName, frozenset[TableName]] | None = None
        """The tables in lower case behind each view; None: they must be computed."""
        self._worked_out_at: object = None
        self._without = 0

    def _table_changed(self, name: TableName, before: KnownTable | None, after: KnownTable | None) -> None:
        super()._table_changed(name, before, after)
        for known, count in ((before, -1), (after, 1)):
            self._without += count * bool(known is not None and known.keeps_rollbacks)

    @property
    def any_without_transactions(self) -> bool:
        """True if some table that exists keeps what is rolled back."""
        return self._told_without or self._without > 0

    def without_transactions(self) -> list[TableName] | None:
        """Return the tables that are known to keep what is rolled back; None: it may be any."""
        if has_transactions(self._known.get(ANY_TABLE, "")) is False:
            return None
        without = [name for name, engine in self._known.items() if has_transactions(engine) is False]
        names = [(schema, table) for schema, _, table in (name.partition(".") for name in without)]
        if not self._without:
            return names
        return names + [name for name, known in self._tables.items() if known.keeps_rollbacks]

    def with_triggers(self) -> list[TableName]:
        """Return the tables that are known to have triggers."""
        return [program.table for program in self._programs.values() if program.table is not None]

    def facts(self, name: TableName, thread_id: int | None = None) -> KnownTable | None:
        """Return a table as a connection (None: row events) sees it; None: it is from before the archive, and was not reported."""
        if thread_id is not None and self._temporary:
            temporary = self._temporary.get((thread_id, *name))
            if temporary is not None:
                return temporary
        found = self.get(name)
        if found is not None and found.has_engine:
            return found
        engine = self._known.get(f"{name[0]}.{name[1]}", self._known.get(ANY_TABLE))
        lower = in_lower_case(name)
        if any(other != name for other in self._alike.get(lower, ())):
            return None
        if lower in self._doubtful:  # it may be from the archive: only an answer about this very table counts
            engine = self._known.get(f"{name[0]}.{name[1]}")
        return None if engine is None else KnownTable(Table(*name, engine), since_create=True)

    @property
    def bodies(self) -> StoredBodies:
        """The triggers and routines that are known."""
        self._check_worked_out()
        if self._bodies is None:
            self._bodies = StoredBodies(self._programs.values(), self.behind_views)
        return self._bodies

    def _check_worked_out(self) -> None:
        if self._set_off is None or self._worked_out_at is not self._set_off:
            self.programs_of(("", ""))
            self._worked_out_at = self._set_off
            self._bodies = self._behind_each = None

    def behind_views(self, names: Iterable[TableName]) -> tuple[TableName, ...]:
        """Return the tables that these names stand for: those that a known view reads."""
        found: dict[TableName, None] = {}
        open_ends = list(names)
        seen: set[TableName] = set()
        while open_ends:
            name = open_ends.pop(0)
            views = self._views_alike(name)
            if not views:
                found[name] = None
            elif in_lower_case(name) not in seen:
                seen.add(in_lower_case(name))
                open_ends += (table for view in views for table in view.reads)
        return tuple(found)

    def with_views(self, names: Iterable[TableName]) -> list[TableName]:
        """Return these tables, and the known views that stand for one of them."""
        wanted = list(names)
        self._check_worked_out()
        if self._behind_each is None:
            views = [in_lower_case(program.name[1:]) for program in self._programs.values() if program.name[0] == VIEW]
            self._behind_each = {view: frozenset(map(in_lower_case, self.behind_views((view,)))) for view in views}
        lower = frozenset(map(in_lower_case, wanted))
        return [*wanted, *(view for view, tables in self._behind_each.items() if not lower.isdisjoint(tables))]

    def knows_references_to(self, name: TableName, thread_id: int) -> bool:
        """Return whether `references` contains every foreign key to a table that would delete or change rows."""
        facts = self.facts(name, thread_id)
        known = facts is not None and (facts.temporary or facts.references_known or facts.keeps_rollbacks is True)
        return known or self.is_known_plain(name)

    def is_known_plain(self, name: TableName) -> bool:
        """Return whether a table from before the archive is configured to have no such foreign keys to it and no DELETE triggers."""
        return ANY_TABLE in self._plain or f"{name[0]}.{name[1]}" in self._plain

    @property
    def all_told_plain(self) -> bool:
        """True if this is configured for all tables of which nothing is known."""
        return ANY_TABLE in self._plain

    def triggers_of(self, name: TableName) -> list[KnownProgram] | None:
        """Return the triggers of a table; None: there may be some from before the archive.

        A configured engine implies that such triggers write no table without transactions.
        """
        facts = self.facts(name)
        return self.known_triggers(name) if facts is not None and facts.since_create else None

    def known_triggers(self, name: TableName) -> list[KnownProgram]:
        """Return the triggers of a table that the archive's statements created; there may be others."""
        return [program for program in self.programs_of(name) if program.name[0] == TRIGGER]

    def knows_triggers_of(self, name: TableName) -> bool:
        """Return whether the archive contains the statement that created the table, so that it has no other triggers: a configured
        engine implies nothing about those."""
        known = self.get(name)
        return known is not None and known.since_create

    @property
    def has_triggers(self) -> bool:
        """True if triggers are known."""
        return any(program.name[0] == TRIGGER for program in self._programs.values())

    def changing_among(self, names: Collection[str] | None) -> list[TableName]:
        """Return the tables with one of these names, in lower case (None: of any), that may keep what is rolled back."""
        plain = self.without_transactions()
        if plain is None:
            return [(ANY_TABLE, ANY_TABLE)]
        return [name for name in plain if names is None or name[1].lower() in names]

    # ---- the effects of definitions ----

    def create(
        self,
        name: TableName,
        engine: str,
        server_version: str,
        *,
        if_not_exists: bool = False,
        keys: NamedKeys = (),
        checked: bool = True,
        columns: tuple[Column, ...] = (),
    ) -> None:
        """CREATE TABLE that succeeded. checked: under foreign_key_checks = 1, so that no table can refer to it yet."""
        if if_not_exists and self._may_have_existed(name, keys):
            return
        foreign = _named((), name[1], keys)
        is_complete = name[0] in self._complete
        made = KnownTable(
            Table(*name, engine, columns, foreign_keys=foreign),
            default_engine=default_engine(server_version),
            since_create=True,
            references_known=checked or is_complete,
        )
        self.put(name, made, is_new=True)

    def _may_have_existed(self, name: TableName, keys: NamedKeys = ()) -> bool:
        """Whether CREATE TABLE IF NOT EXISTS may have done nothing; then the table that exists keeps what is known of it."""
        exists = self.exists(name)
        if exists is None:
            self.want(name)
        if exists is None and in_lower_case(name) in self._alike:
            self.doubt(name)
            self.alter_foreign_keys(name, added=keys)
        elif exists is None:
            self._doubt_views(self._views_alike(name))
            # It may have existed before the archive, with another engine.
            foreign = _named((), name[1], keys)
            self.put(name, KnownTable(Table(*name, UNKNOWN_ENGINE, foreign_keys=foreign)))
        return exists is not False

    def create_temporary(
        self, thread_id: int, name: TableName, engine: str, server_version: str, columns: tuple[Column, ...] = ()
    ) -> None:
        """Apply CREATE TEMPORARY TABLE."""
        default = default_engine(server_version)
        made = KnownTable(Table(*name, engine, columns), default_engine=default, since_create=True)
        self.put_temporary(thread_id, name, made)

    def columns_of(self, name: TableName, thread_id: int) -> tuple[Column, ...]:
        """Return the columns of a table as a connection sees it; none: they are not known."""
        temporary = self._temporary.get((thread_id, *name)) if self._temporary else None
        known = temporary or self.get(name)
        return known.columns if known is not None else ()

    def alter_columns(self, name: TableName, made: AlterTable, thread_id: int) -> None:
        """Apply the clauses of ALTER TABLE to the columns; they are not known any more where one cannot be read. Nor are those of
        tables that differ in case alone, where no such table is known: it may be one of them.
        """
        temporary = self._temporary.get((thread_id, *name))
        known = temporary or self.get(name)
        if known is None:
            for other in self._others(name):
                self._put_table(self._tables[other]._replace(table=replace(self._tables[other].table, columns=())))
            return
        if not known.columns:
            return
        try:
            needs_everything(made)
            columns = alter_table(known.table, made.clauses, ("", "")).columns
        except UnsupportedSyntax:
            columns = ()
        altered = known._replace(table=replace(known.table, columns=columns))
        if temporary is not None:
            self._set(self._temporary, (thread_id, *name), altered)
        else:
            self._put_table(altered)

    def create_like(
        self,
        name: TableName,
        like: TableName,
        thread_id: int,
        *,
        temporary: bool,
        if_not_exists: bool = False,
        checked: bool = True,
    ) -> None:
        """Apply CREATE TABLE … LIKE, which copies no foreign keys. `checked` is as for `create`."""
        source = self.facts(like, thread_id) or KnownTable(Table(*like, UNKNOWN_ENGINE))
        table = replace(source.table, schema=name[0], name=name[1], foreign_keys=())
        made = source._replace(table=table, since_create=True, is_recorded=False)
        if temporary:
            self.put_temporary(thread_id, name, made)
        elif not (if_not_exists and self._may_have_existed(name)):
            known = checked or name[0] in self._complete
            self.put(name, made._replace(temporary=False, references_known=known), is_new=True)

    def alter_engine(self, name: TableName, engine: str, thread_id: int) -> None:
        """Apply ALTER TABLE … ENGINE."""
        temporary = self._temporary.get((thread_id, *name))
        if temporary is not None:
            table = replace(temporary.table, engine=engine)
            self._set(self._temporary, (thread_id, *name), temporary._replace(table=table))
            return
        known = self.get(name) or KnownTable(Table(*name, foreign_keys=()))
        foreign = known.table.foreign_keys if takes_foreign_keys(engine) else ()
        table = replace(known.table, engine=engine, foreign_keys=foreign)
        self._put_table(known._replace(table=table, default_engine=""))

    def alter_foreign_keys(self, name: TableName, *, dropped: Collection[str] = (), added: NamedKeys = ()) -> None:
        """ALTER TABLE; what is added without a name gets the table's and the next number.

        Of a table that is not known, those that differ in case alone get what is added: it may be one of them.
        """
        known = self.get(name)
        meant = [self._tables[other] for other in self._others(name)] if known is None else [known]
        removed = {one.lower() for one in dropped} if known is not None else set()
        engine = UNKNOWN_ENGINE if in_lower_case(name) in self._doubtful and self.facts(name) is None else ""
        for table in meant or [KnownTable(Table(*name, engine, foreign_keys=()))]:
            had = table.table.foreign_keys or ()
            have = tuple((key, one) for key, one in had if key.lower() not in removed)
            have += _named(had, table.table.name, added)
            if have != had:
                self._put_table(table._replace(table=replace(table.table, foreign_keys=have)))

    def _put_table(self, known: KnownTable) -> None:
        self.put((known.table.schema, known.table.name), known)

    def rename_table(self, old: TableName, new: TableName, thread_id: int) -> None:
        """Apply RENAME TABLE, ALTER TABLE … RENAME."""
        temporary = self._temporary.get((thread_id, *old))
        if temporary is not None:
            self.drop_temporary(thread_id, old)
            self.put_temporary(thread_id, new, temporary)
            return
        known, facts = self.get(old), self.facts(old)
        if facts is not None and not self._views_alike(old) and (known is None or not known.has_engine):
            foreign = known.table.foreign_keys if known is not None else ()
            self.put(old, facts._replace(table=replace(facts.table, foreign_keys=foreign)))
        self.rename(old, new)

    def drop_program(self, kind: str, name: TableName) -> None:
        """Apply DROP TRIGGER, DROP VIEW, DROP FUNCTION, DROP PROCEDURE."""
        if kind == TRIGGER:
            self.put_program((kind, *name), None)
            return
        if kind == VIEW:
            self.drop_view(name)
            return
        for program in self.programs_of(name):
            if program.name[0] == kind:
                self.put_program(program.name, None)

    def doubt_words(self, words: frozenset[str] | None, *, references: bool = False) -> None:
        """Note an unreadable definition with these words in lower case (None: it may be about any table). `references`: it may define
        foreign keys to any table."""
        for schema in list(self._complete):
            self._set(self._complete, schema, None)
        for name, known in list(self._tables.items()):
            if words is None or name[1].lower() in words:
                foreign = known.table.foreign_keys
                self._put_table(KnownTable(Table(*name, UNKNOWN_ENGINE, foreign_keys=foreign)))
            elif references and known.references_known:
                self._put_table(known._replace(references_known=False))


def _named(had: NamedKeys, table: str, keys: NamedKeys) -> tuple[tuple[str, ForeignKey], ...]:
    """Return the keys, with the names that the server generates for a table which `had` these before."""
    number = last_number((name for name, _key in had), table)
    named = []
    for name, key in keys:
        number += not name
        named.append((name or made_up_name(table, number), key))
    return tuple(dict(named).items())
