"""What the definitions of the archive that went by tell of tables: engines, triggers, foreign keys."""

import json
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from protocol.sql.engines import default_engine, has_transactions, takes_foreign_keys
from protocol.sql.tables.foreign_key_names import last_number, made_up_name, name_in_renamed
from protocol.sql.tables.source_table import TableName
from relay.view.rules.statement.routine_body import BodyChange, RoutineBody
from relay.view.rules.tables.foreign_keys import KnownForeignKey, References
from relay.view.rules.tables.revocable_facts import RevocableFacts
from relay.view.rules.tables.stored_bodies import KnownTrigger, RoutineName, StoredBodies

_MOST_TEMPORARY: Final = 10_000
ANY_TABLE: Final = "*"
"""In `known_engines` and `plain_tables`: of all tables that nothing is known of."""


class TableFacts(NamedTuple):
    """engine: at the source, as the statement that made the table names it; "": it names none. version: of the server that made it.

    since_create: the archive has the statement that made it, so its triggers are known. temporary: of one connection.
    references_known: no table from before the archive can refer to it.
    """

    engine: str
    default: str = ""
    since_create: bool = False
    temporary: bool = False
    references_known: bool = False

    @property
    def keeps_rollbacks(self) -> bool | None:
        """Whether the source's table keeps what is rolled back; None: nobody knows."""
        transactions = has_transactions(self.engine or self.default)
        return None if transactions is None else not transactions


class Trigger(NamedTuple):
    """A trigger's table, and its statement as logged; `schema`: of the trigger, which names without one are in. event: INSERT, …"""

    table: TableName
    text: str
    schema: str
    event: str = ""
    body: RoutineBody = RoutineBody()


class TableEngines(RevocableFacts):
    """What is known at one place of the binlogs. `known`, `plain`: told of tables from before the archive, see ViewSettings."""

    def __init__(self, known: Mapping[str, str] | None = None, plain: Collection[str] = ()) -> None:
        super().__init__()
        self._known = dict(known or {})
        self._plain = frozenset(plain)
        self._told_without = any(has_transactions(engine) is False for engine in self._known.values())
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._journal = None
        self._tables: dict[TableName, TableFacts] = {}
        self._temporary: dict[tuple[int, str, str], TableFacts] = {}
        self._triggers: dict[TableName, Trigger] = {}
        self._foreign_keys: dict[TableName, tuple[KnownForeignKey, ...]] = {}
        """By the table that has them."""
        self._known_references: References | None = None
        """Of these, changed with them."""
        self._routines: dict[RoutineName, RoutineBody] = {}
        """Those that change something, or call others."""
        self._bodies: StoredBodies | None = None
        self._views: dict[TableName, tuple[TableName, ...]] = {}
        """Views in lower case -> what they read."""
        self._behind_each: dict[TableName, frozenset[TableName]] | None = None
        """The tables in lower case behind each view; None: to be found out."""
        self._complete: dict[str, bool] = {}
        """Schemas that were made in the archive: all of their tables are known."""
        self._spelled: dict[TableName, TableName] = {}
        """In lower case -> as it was made: servers with lower_case_table_names mean one table by names that differ in case."""
        self.changes = object()
        """Another one behind each change, but of temporary tables: those come and go, and nothing that is made of all tables hangs on
        them."""
        self._without = 0
        self._names: list[TableName] = []
        self._lines: dict[TableName, str] = {}
        self._told: bytes | None = b""

    @property
    def any_without_transactions(self) -> bool:
        """Whether some table that is there keeps what is rolled back."""
        return self._told_without or self._without > 0

    def without_transactions(self) -> list[TableName] | None:
        """The tables that are known to keep what is rolled back; None: it may be any."""
        if has_transactions(self._known.get(ANY_TABLE, "")) is False:
            return None
        without = [name for name, engine in self._known.items() if has_transactions(engine) is False]
        names = [(schema, table) for schema, _, table in (name.partition(".") for name in without)]
        return names + [name for name, facts in self._tables.items() if facts.keeps_rollbacks]

    def with_triggers(self) -> list[TableName]:
        """The tables that are known to have triggers."""
        return [trigger.table for trigger in self._triggers.values()]

    def facts(self, name: TableName, thread_id: int | None = None) -> TableFacts | None:
        """Of a table as a connection (None: row events) sees it; None: it was made before the archive, and nobody told."""
        if thread_id is not None and self._temporary:
            temporary = self._temporary.get((thread_id, *name))
            if temporary is not None:
                return temporary
        found = self._tables.get(name)
        if found is not None:
            return found
        if _lower(name) in self._spelled:
            return None
        engine = self._known.get(f"{name[0]}.{name[1]}", self._known.get(ANY_TABLE))
        return None if engine is None else TableFacts(engine, since_create=True)

    @property
    def references(self) -> References:
        """The foreign keys that are known."""
        if self._known_references is None:
            self._known_references = References(self._foreign_keys)
        return self._known_references

    @property
    def bodies(self) -> StoredBodies:
        """The triggers and routines that are known."""
        if self._bodies is None:
            triggers = [KnownTrigger(name, one.table, one.event, one.body) for name, one in self._triggers.items()]
            self._bodies = StoredBodies(triggers, self._routines, self.behind_views)
        return self._bodies

    def behind_views(self, names: Iterable[TableName]) -> tuple[TableName, ...]:
        """The tables that these names stand for: of a known view those that it reads."""
        found: dict[TableName, None] = {}
        open_ends = list(names)
        seen: set[TableName] = set()
        while open_ends:
            name = open_ends.pop(0)
            tables = self._views.get(_lower(name))
            if tables is None:
                found[name] = None
            elif _lower(name) not in seen:
                seen.add(_lower(name))
                open_ends += tables
        return tuple(found)

    def with_views(self, names: Iterable[TableName]) -> list[TableName]:
        """These tables, and the known views that stand for one of them."""
        wanted = list(names)
        if not (wanted and self._views):
            return wanted
        if self._behind_each is None:
            self._behind_each = {view: frozenset(map(_lower, self.behind_views((view,)))) for view in self._views}
        lower = frozenset(map(_lower, wanted))
        return [*wanted, *(view for view, tables in self._behind_each.items() if not lower.isdisjoint(tables))]

    def knows_references_to(self, name: TableName, thread_id: int) -> bool:
        """Whether `references` has every foreign key to a table that is to delete or change rows."""
        facts = self.facts(name, thread_id)
        known = facts is not None and (facts.temporary or facts.references_known or facts.keeps_rollbacks is True)
        return known or self.is_told_plain(name)

    def is_told_plain(self, name: TableName) -> bool:
        """Whether somebody told that a table from before the archive has neither such foreign keys to it nor DELETE triggers."""
        return ANY_TABLE in self._plain or f"{name[0]}.{name[1]}" in self._plain

    @property
    def all_told_plain(self) -> bool:
        """Whether that was told of all tables that nothing is known of."""
        return ANY_TABLE in self._plain

    def triggers_of(self, name: TableName) -> list[Trigger] | None:
        """Those of a table; None: there may be some from before the archive.

        Whoever tells a table's engine also tells that such triggers write no table without transactions.
        """
        facts = self.facts(name)
        return self.known_triggers(name) if facts is not None and facts.since_create else None

    def known_triggers(self, name: TableName) -> list[Trigger]:
        """Those of a table that were made in the archive; there may be others."""
        return [trigger for trigger in self._triggers.values() if trigger.table == name]

    def knows_triggers_of(self, name: TableName) -> bool:
        """Whether the archive has the statement that made the table, so that it has no other triggers: an engine that was told says
        nothing of those."""
        facts = self._tables.get(name)
        return facts is not None and facts.since_create

    @property
    def has_triggers(self) -> bool:
        """Whether triggers are known."""
        return bool(self._triggers)

    def changing_among(self, names: Collection[str] | None) -> list[TableName]:
        """The tables with one of these names, in lower case (None: of any), that may keep what is rolled back."""
        plain = self.without_transactions()
        if plain is None:
            return [(ANY_TABLE, ANY_TABLE)]
        return [name for name in plain if names is None or name[1].lower() in names]

    # ---- every change ----

    def _set(self, which: dict[Any, Any], key: Any, value: Any) -> None:
        """See `RevocableFacts`."""
        before = which.get(key)
        if before == value:
            return
        self._told = None
        if which is not self._temporary:
            self.changes = object()
        if which is self._triggers or which is self._routines or which is self._views:
            self._bodies = self._behind_each = None
        if which is self._foreign_keys and self._known_references is not None:
            self._known_references.change(key, before or (), value or ())
        self._note(which, key, before)
        if value is None:
            del which[key]
        else:
            which[key] = value
        if which is self._tables:
            for facts, count in ((before, -1), (value, 1)):
                self._without += count * bool(facts is not None and facts.keeps_rollbacks)
            if before is None:
                insort(self._names, key)
            if value is None:
                del self._names[bisect_left(self._names, key)], self._lines[key]
            else:
                self._lines[key] = _json([*key, *value])

    # ---- what definitions do ----

    def create(
        self,
        name: TableName,
        engine: str,
        server_version: str,
        *,
        if_not_exists: bool = False,
        keys: Sequence[KnownForeignKey] = (),
        checked: bool = True,
    ) -> None:
        """CREATE TABLE that succeeded. checked: under foreign_key_checks = 1, so that no table can refer to it yet."""
        if if_not_exists and name in self._tables:
            return
        self._set(self._foreign_keys, name, None)
        self.alter_foreign_keys(name, added=keys)
        # With IF NOT EXISTS it may have been there before the archive, with another engine.
        if if_not_exists and name[0] not in self._complete:
            self._put(name, TableFacts("?", since_create=False))
        else:
            known = checked or name[0] in self._complete
            self._put(
                name, TableFacts(engine, default_engine(server_version), since_create=True, references_known=known)
            )

    def create_temporary(self, thread_id: int, name: TableName, engine: str, server_version: str) -> None:
        """CREATE TEMPORARY TABLE."""
        self._put_temporary((thread_id, *name), TableFacts(engine, default_engine(server_version), True, True))

    def create_like(
        self, name: TableName, like: TableName, thread_id: int, *, temporary: bool, checked: bool = True
    ) -> None:
        """CREATE TABLE … LIKE, which copies no foreign keys. checked: as of `create`."""
        source = self.facts(like, thread_id)
        facts = TableFacts("?") if source is None else source
        if temporary:
            self._put_temporary((thread_id, *name), facts._replace(since_create=True, temporary=True))
        else:
            known = checked or name[0] in self._complete
            self._set(self._foreign_keys, name, None)
            self._put(name, facts._replace(since_create=True, temporary=False, references_known=known))

    def alter_engine(self, name: TableName, engine: str, thread_id: int) -> None:
        """ALTER TABLE … ENGINE."""
        temporary = self._temporary.get((thread_id, *name))
        if temporary is not None:
            self._set(self._temporary, (thread_id, *name), temporary._replace(engine=engine))
            return
        before = self._tables.get(name, TableFacts(""))
        self._put(name, before._replace(engine=engine, default=""))
        if not takes_foreign_keys(engine):
            self._set(self._foreign_keys, name, None)

    def alter_foreign_keys(
        self, name: TableName, *, dropped: Collection[str] = (), added: Sequence[KnownForeignKey] = ()
    ) -> None:
        """CREATE or ALTER TABLE; what is added without a name gets the table's and the next number."""
        had = self._foreign_keys.get(name, ())
        gone = {one.lower() for one in dropped}
        have = [key for key in had if key.name.lower() not in gone]
        number = last_number((key.name for key in had), name[1])
        for key in added:
            number += not key.name
            have.append(key if key.name else key._replace(name=made_up_name(name[1], number)))
        self._set(self._foreign_keys, name, tuple(have) or None)

    def rename(self, old: TableName, new: TableName, thread_id: int) -> None:
        """RENAME TABLE, ALTER TABLE … RENAME."""
        temporary = self._temporary.get((thread_id, *old))
        if temporary is not None:
            self._set(self._temporary, (thread_id, *old), None)
            self._set(self._temporary, (thread_id, *new), temporary)
            return
        view = self._views.get(_lower(old))
        if view is not None:
            self._set(self._views, _lower(old), None)
            self._set(self._views, _lower(new), view)
            return
        facts = self.facts(old)
        keys = self._foreign_keys.get(old, ())
        self._remove(old, triggers=False)
        if facts is None:
            self._remove(new)
        else:
            self._put(new, facts)
        self._rename_keys(old, new, keys)
        for key, trigger in list(self._triggers.items()):
            if trigger.table == old:
                self._set(self._triggers, key, trigger._replace(table=new))

    def _rename_keys(self, old: TableName, new: TableName, keys: tuple[KnownForeignKey, ...]) -> None:
        moved = tuple(key._replace(name=name_in_renamed(key.name, old[1], new[1])) for key in keys)
        self._set(self._foreign_keys, new, moved or None)
        for child, some in list(self._foreign_keys.items()):
            if any(_lower(key.parent) == _lower(old) for key in some):
                followed = (key._replace(parent=new) if _lower(key.parent) == _lower(old) else key for key in some)
                self._set(self._foreign_keys, child, tuple(followed))

    def drop(self, names: list[TableName], thread_id: int, *, temporary_only: bool = False) -> None:
        """DROP TABLE: of each name the temporary one, else the other."""
        for name in names:
            if (thread_id, *name) in self._temporary:
                self._set(self._temporary, (thread_id, *name), None)
            elif not temporary_only:
                self._remove(name)

    def create_schema(self, schema: str) -> None:
        """CREATE DATABASE, where there was none."""
        self._set(self._complete, schema, True)

    def drop_schema(self, schema: str) -> None:
        """DROP DATABASE."""
        self._set(self._complete, schema, None)
        for name in [name for name in self._tables if name[0] == schema]:
            self._remove(name)
        for key, trigger in list(self._triggers.items()):
            if schema in (key[0], trigger.table[0]):
                self._set(self._triggers, key, None)
        for name in [name for name in self._foreign_keys if name[0] == schema]:
            self._set(self._foreign_keys, name, None)
        for routine in [routine for routine in self._routines if routine.schema == schema]:
            self._set(self._routines, routine, None)
        for view in [view for view in self._views if view[0] == schema.lower()]:
            self._set(self._views, view, None)

    def create_trigger(
        self, name: TableName, table: TableName, text: str, event: str = "", body: RoutineBody | None = None
    ) -> None:
        """CREATE TRIGGER; a trigger's name is (schema, trigger)."""
        self._set(self._triggers, name, Trigger(table, text, name[0], event, body or RoutineBody()))

    def create_view(self, name: TableName, tables: Sequence[TableName]) -> None:
        """CREATE VIEW, ALTER VIEW."""
        self._set(self._views, _lower(name), tuple(tables))

    def drop_view(self, name: TableName) -> None:
        """DROP VIEW."""
        self._set(self._views, _lower(name), None)

    def create_routine(self, kind: str, name: TableName, body: RoutineBody) -> None:
        """CREATE FUNCTION, CREATE PROCEDURE."""
        self._set(self._routines, RoutineName(kind, name[0], name[1].lower()), body if any(body) else None)

    def drop_routine(self, kind: str, name: TableName) -> None:
        """DROP FUNCTION, DROP PROCEDURE."""
        self._set(self._routines, RoutineName(kind, name[0], name[1].lower()), None)

    def drop_trigger(self, name: TableName) -> None:
        """DROP TRIGGER."""
        self._set(self._triggers, name, None)

    def doubt(self, names: frozenset[str] | None, *, references: bool = False) -> None:
        """A definition that nobody understands had these words in lower case (None: it may be about any table). references: it may
        define foreign keys to any table."""
        for schema in list(self._complete):
            self._set(self._complete, schema, None)
        for name, facts in list(self._tables.items()):
            if names is None or name[1].lower() in names:
                self._set(self._tables, name, TableFacts("?"))
            elif references and facts.references_known:
                self._set(self._tables, name, facts._replace(references_known=False))

    def source_started(self) -> None:
        """The source was started anew: temporary tables are gone."""
        for key in list(self._temporary):
            self._set(self._temporary, key, None)

    def _put_temporary(self, key: tuple[int, str, str], facts: TableFacts) -> None:
        self._set(self._temporary, key, None)
        while len(self._temporary) >= _MOST_TEMPORARY:
            self._set(self._temporary, next(iter(self._temporary)), None)
        self._set(self._temporary, key, facts)

    def _put(self, name: TableName, facts: TableFacts) -> None:
        if self._spelled.get(_lower(name)) != name:
            keys = self._foreign_keys.get(name)
            self._remove(name, triggers=False)
            self._set(self._foreign_keys, name, keys)
        self._set(self._tables, name, facts)
        self._set(self._spelled, _lower(name), name)

    def _remove(self, name: TableName, *, triggers: bool = True) -> None:
        other = self._spelled.get(_lower(name))
        if other is not None:
            self._set(self._spelled, _lower(name), None)
            self._set(self._tables, other, None)
        for child in {name, other or name}:
            self._set(self._foreign_keys, child, None)
        if triggers:
            for key in [key for key, trigger in self._triggers.items() if trigger.table == name]:
                self._set(self._triggers, key, None)

    # ---- state ----

    def state(self) -> bytes:
        """All that is known; the same knowledge gives the same bytes."""
        if self._told is None:
            self._told = self._as_json()
        return self._told

    def _as_json(self) -> bytes:
        known = (
            self._tables,
            self._temporary,
            self._triggers,
            self._foreign_keys,
            self._complete,
            self._routines,
            self._views,
        )
        if not any(known):
            return b""
        tables = ",".join(self._lines[name] for name in self._names)
        rest = {
            "temporary": [[*key, *facts] for key, facts in self._temporary.items()],
            "complete": sorted(self._complete),
            "triggers": [
                [*name, *trigger.table, trigger.text, trigger.event, trigger.body]
                for name, trigger in sorted(self._triggers.items())
            ],
            "routines": [[*name, body] for name, body in sorted(self._routines.items())],
            "views": [[*name, tables] for name, tables in sorted(self._views.items())],
            "foreign_keys": [
                [*name, key.name, *key.parent, key.on_delete]
                for name, keys in sorted(self._foreign_keys.items())
                for key in keys
            ],
        }
        return f'{{"tables":[{tables}],{_json(rest)[1:]}'.encode()

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else."""
        if self._told == state:
            return
        self._begin_anew()
        if not state:
            return
        told = json.loads(state)
        for row in told["tables"]:
            self._put((row[0], row[1]), TableFacts(*row[2:]))
        self._temporary.update({(row[0], row[1], row[2]): TableFacts(*row[3:]) for row in told["temporary"]})
        self._complete.update(dict.fromkeys(told["complete"], True))
        for row in told["triggers"]:
            self._triggers[row[0], row[1]] = Trigger((row[2], row[3]), row[4], row[0], *row[5:6], *map(_body, row[6:]))
        for row in told.get("routines", ()):
            self._routines[RoutineName(*row[:3])] = _body(row[3])
        for row in told.get("views", ()):
            self._views[row[0], row[1]] = tuple((schema, table) for schema, table in row[2])
        for row in told.get("foreign_keys", ()):
            name = (row[0], row[1])
            self._foreign_keys[name] = (
                *self._foreign_keys.get(name, ()),
                KnownForeignKey(row[2], (row[3], row[4]), row[5]),
            )
        self._told = state


def _body(told: list[Any]) -> RoutineBody:
    changes = (
        BodyChange(verb, tuple((schema, table) for schema, table in tables), on_duplicate, several)
        for verb, tables, on_duplicate, several in told[0]
    )
    return RoutineBody(tuple(changes), tuple((schema, name) for schema, name in told[1]))


def _lower(name: TableName) -> TableName:
    return name[0].lower(), name[1].lower()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)
