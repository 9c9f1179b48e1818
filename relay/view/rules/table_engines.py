"""Which tables are without transactions, as the definitions of the archive that went by tell it."""

import json
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from protocol.binlog.format_description import version_numbers
from relay.schema_history.tables.source_table import TableName

WITHOUT_TRANSACTIONS: Final = frozenset(
    ("myisam", "isam", "memory", "heap", "archive", "csv", "merge", "mrg_myisam", "federated")
)
"""Engines whose tables keep what is rolled back. BLACKHOLE counts as one with transactions: servers treat it so (tried on 9.7)."""
WITH_TRANSACTIONS: Final = frozenset(
    ("innodb", "ndb", "ndbcluster", "blackhole", "bdb", "berkeleydb", "tokudb", "rocksdb", "falcon")
)
_INNODB_IS_DEFAULT_SINCE: Final = (5, 5, 5)
_MOST_TEMPORARY: Final = 10_000
ANY_TABLE: Final = "*"
"""In `known_engines`: of all tables that nothing is known of."""


def is_without_transactions(engine: str) -> bool | None:
    """Of an engine's name; None: nobody knows the engine."""
    lower = engine.lower()
    return True if lower in WITHOUT_TRANSACTIONS else False if lower in WITH_TRANSACTIONS else None


class TableFacts(NamedTuple):
    """engine: at the source, as the statement that made the table names it; "": it names none. version: of the server that made it.

    since_create: the archive has the statement that made it, so its triggers are known. temporary: of one connection.
    """

    engine: str
    default: str = ""
    since_create: bool = False
    temporary: bool = False

    @property
    def keeps_rollbacks(self) -> bool | None:
        """Whether the source's table keeps what is rolled back; None: nobody knows."""
        return is_without_transactions(self.engine or self.default)


class Trigger(NamedTuple):
    """A trigger's table, and its statement as logged; `schema`: of the trigger, which names without one are in."""

    table: TableName
    text: str
    schema: str


class TableEngines:
    """What is known at one place of the binlogs. `known`: engines of tables from before the archive, see ViewSettings."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})
        self._told_without = any(is_without_transactions(engine) for engine in self._known.values())
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._tables: dict[TableName, TableFacts] = {}
        self._temporary: dict[tuple[int, str, str], TableFacts] = {}
        self._triggers: dict[TableName, Trigger] = {}
        self._complete: dict[str, bool] = {}
        """Schemas that were made in the archive: all of their tables are known."""
        self._spelled: dict[TableName, TableName] = {}
        """In lower case -> as it was made: servers with lower_case_table_names mean one table by names that differ in case."""
        self.changes = object()
        """Another one behind each change."""
        self._without = 0
        self._names: list[TableName] = []
        self._lines: dict[TableName, str] = {}
        self._told: bytes | None = b""
        self._journal: list[tuple[dict[Any, Any], Any, Any]] | None = None

    @property
    def any_without_transactions(self) -> bool:
        """Whether some table that is there keeps what is rolled back."""
        return self._told_without or self._without > 0

    def without_transactions(self) -> list[TableName] | None:
        """The tables that are known to keep what is rolled back; None: it may be any."""
        if is_without_transactions(self._known.get(ANY_TABLE, "")):
            return None
        told = [name for name, engine in self._known.items() if is_without_transactions(engine)]
        names = [(schema, table) for schema, _, table in (name.partition(".") for name in told)]
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

    def triggers_of(self, name: TableName) -> list[Trigger] | None:
        """Those of a table; None: there may be some from before the archive.

        Whoever tells a table's engine also tells that such triggers write no table without transactions.
        """
        found = [trigger for trigger in self._triggers.values() if trigger.table == name]
        facts = self.facts(name)
        return found if found or (facts is not None and facts.since_create) else None

    # ---- for as long as it is not sure ----

    def begin(self) -> None:
        """From here on what is learned can be taken back."""
        self._journal = []

    def keep(self) -> None:
        """What was learned stays."""
        self._journal = None

    def take_back(self) -> None:
        """What was learned since `begin` is forgotten."""
        journal, self._journal = self._journal or [], None
        for which, key, before in reversed(journal):
            self._set(which, key, before)

    def _set(self, which: dict[Any, Any], key: Any, value: Any) -> None:
        """The only place where anything changes; None: it goes."""
        before = which.get(key)
        if before == value:
            return
        self._told = None
        self.changes = object()
        if self._journal is not None:
            self._journal.append((which, key, before))
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

    def create(self, name: TableName, engine: str, server_version: str, *, if_not_exists: bool = False) -> None:
        """CREATE TABLE that succeeded."""
        if if_not_exists and name in self._tables:
            return
        # With IF NOT EXISTS it may have been there before the archive, with another engine.
        if if_not_exists and name[0] not in self._complete:
            self._put(name, TableFacts("?", since_create=False))
        else:
            self._put(name, TableFacts(engine, default_engine(server_version), since_create=True))

    def create_temporary(self, thread_id: int, name: TableName, engine: str, server_version: str) -> None:
        """CREATE TEMPORARY TABLE."""
        self._put_temporary((thread_id, *name), TableFacts(engine, default_engine(server_version), True, True))

    def create_like(self, name: TableName, like: TableName, thread_id: int, *, temporary: bool) -> None:
        """CREATE TABLE … LIKE."""
        source = self.facts(like, thread_id)
        facts = TableFacts("?") if source is None else source
        if temporary:
            self._put_temporary((thread_id, *name), facts._replace(since_create=True, temporary=True))
        else:
            self._put(name, facts._replace(since_create=True, temporary=False))

    def alter_engine(self, name: TableName, engine: str, thread_id: int) -> None:
        """ALTER TABLE … ENGINE."""
        temporary = self._temporary.get((thread_id, *name))
        if temporary is not None:
            self._set(self._temporary, (thread_id, *name), temporary._replace(engine=engine))
            return
        before = self._tables.get(name)
        self._put(name, TableFacts(engine, since_create=before is not None and before.since_create))

    def rename(self, old: TableName, new: TableName, thread_id: int) -> None:
        """RENAME TABLE, ALTER TABLE … RENAME."""
        temporary = self._temporary.get((thread_id, *old))
        if temporary is not None:
            self._set(self._temporary, (thread_id, *old), None)
            self._set(self._temporary, (thread_id, *new), temporary)
            return
        facts = self.facts(old)
        self._remove(old, triggers=False)
        if facts is None:
            self._remove(new)
        else:
            self._put(new, facts)
        for key, trigger in list(self._triggers.items()):
            if trigger.table == old:
                self._set(self._triggers, key, trigger._replace(table=new))

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

    def create_trigger(self, name: TableName, table: TableName, text: str) -> None:
        """CREATE TRIGGER; a trigger's name is (schema, trigger)."""
        self._set(self._triggers, name, Trigger(table, text, name[0]))

    def drop_trigger(self, name: TableName) -> None:
        """DROP TRIGGER."""
        self._set(self._triggers, name, None)

    def doubt(self, names: frozenset[str] | None) -> None:
        """A definition that nobody understands had these words in lower case (None: it may be about any table)."""
        for schema in list(self._complete):
            self._set(self._complete, schema, None)
        for name, facts in list(self._tables.items()):
            if names is None or name[1].lower() in names:
                self._set(self._tables, name, TableFacts("?", since_create=facts.since_create))

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
            self._remove(name, triggers=False)
        self._set(self._tables, name, facts)
        self._set(self._spelled, _lower(name), name)

    def _remove(self, name: TableName, *, triggers: bool = True) -> None:
        other = self._spelled.get(_lower(name))
        if other is not None:
            self._set(self._spelled, _lower(name), None)
            self._set(self._tables, other, None)
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
        if not (self._tables or self._temporary or self._triggers or self._complete):
            return b""
        tables = ",".join(self._lines[name] for name in self._names)
        rest = {
            "temporary": [[*key, *facts] for key, facts in self._temporary.items()],
            "complete": sorted(self._complete),
            "triggers": [[*name, *trigger.table, trigger.text] for name, trigger in sorted(self._triggers.items())],
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
        self._triggers.update({(row[0], row[1]): Trigger((row[2], row[3]), row[4], row[0]) for row in told["triggers"]})
        self._told = state


def default_engine(server_version: str) -> str:
    """What a table gets whose statement names no engine, where nobody configured another."""
    numbers = version_numbers(server_version)
    return "" if numbers == (0, 0, 0) else "InnoDB" if numbers >= _INNODB_IS_DEFAULT_SINCE else "MyISAM"


def _lower(name: TableName) -> TableName:
    return name[0].lower(), name[1].lower()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)
