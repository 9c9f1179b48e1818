"""A feed of one table into a lake of its own beside the other one. A feed that was killed continues where it was."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, Final

from protocol.sql.tables.source_table import TableName
from relay.feed.engine import FeedEngine
from relay.feed.feed_run import is_passing, told
from relay.feed.lake.lake_rows import changed_rows, plain_schema
from relay.feed.lake.lake_table import ColumnsChange, Lake, LakeTable, NewTable
from relay.feed.progress_table import PROGRESS, STATE, ProgressTable
from relay.feed.rebuild.rebuild_plan import LoadedVersion, RebuildPlan
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import table_stop
from relay.feed.settings.fed_tables import FedTables
from relay.feed.settings.feed_settings import CURRENT, HISTORY
from relay.feed.statements.history_rows import CHANGE_COLUMNS

_PLAN: Final = "_plan"
"""The state table of a lake beside that has its plan. It is there once everything is that the plan says is there at its beginning."""
_STOP_FEED: Final = "stop-feed"


@dataclass(frozen=True, slots=True)
class OneTable(FedTables):
    """The choice of one table, whatever its name looks like."""

    key: TableName = ("", "")

    def __call__(self, key: TableName) -> bool:
        """Return whether it is this table."""
        return key == self.key

    @property
    def schemas(self) -> list[str] | None:
        """Return its schema."""
        return [self.key[0]]


class FeedBeside:
    """The feed of one table of another feed into a lake beside that one's, by the same settings; trouble stops it."""

    def __init__(self, engine: FeedEngine, key: TableName, asked: str | None) -> None:
        self._engine = engine
        self._key = key
        self._name = "\0".join(key)
        self._lake: Lake = engine.lake.beside(self._name)
        self._asked = asked
        self._settings = replace(engine.settings, on_trouble=_STOP_FEED, assume_empty=False)

    def recorded(self) -> RebuildPlan | None:
        """Return the plan of an earlier run that was to do the same; None if there is none."""
        table = self._lake.open(_PLAN, "", "")
        text = table.properties.get(_property("for")) if table is not None else None
        if table is None or text is None:
            return None
        plan = RebuildPlan.of_text(table.properties[_property("plan")])
        return plan if text == self._wanted(plan) else None

    def _wanted(self, plan: RebuildPlan) -> str:
        """Return what decides whether an earlier run did the same: what was asked, the settings, the version, the binlog of the start."""
        begun = self._engine.reading.begun(plan.start)
        known: list[Any] = [self._asked, version("binlog-relay"), asdict(self._settings), str(begun)]
        return json.dumps(known, default=str)

    def begin(self, plan: RebuildPlan, current: LakeTable | None) -> None:
        """Begin a lake that has what is known at the plan's start. Raises: FeedStop."""
        self.remove()
        progress = ProgressTable(self._lake, self._choice_text())
        progress.note_begun(plan.start)
        if self._engine.progress.capitals is not None:
            progress.note_capitals(self._engine.progress.capitals)
        if plan.base is not None and CURRENT in self._settings.modes:
            self._load(plan.base, current)
            if HISTORY in self._settings.modes and plan.start < plan.base.place:
                self._lake.create(NewTable(HISTORY, self._key, CHANGE_COLUMNS, plan.start, day_of="time"))
        properties = {_property("plan"): plan.text(), _property("for"): self._wanted(plan)}
        self._lake.create(NewTable(_PLAN, ("", ""), PROGRESS, plan.start, properties))

    def _load(self, base: LoadedVersion, current: LakeTable | None) -> None:
        """Copy the rows of an older version of the table."""
        name = ".".join(self._key)
        where = self._engine.reading.told(base.place)
        try:
            if current is None:
                raise FileNotFoundError(f"{name} is not in the lake")
            with current.scan(version=base.version) as reader:
                schema = plain_schema(reader.schema)
                made = self._lake.create(NewTable(CURRENT, self._key, schema, base.place))
                made.rebuild(schema, changed_rows(reader, ColumnsChange(schema)), base.place)
        except Exception as error:
            if not (isinstance(error, ValueError) or is_passing(error)):
                raise
            text = f"The rows of its snapshot at {where}, version {base.version} of the lake's table, cannot be read: {told(error)}"
            raise table_stop("rows_unknown", where, name, text) from None

    def _choice(self) -> OneTable:
        return OneTable((".".join(self._key),), (), self._key)

    def _choice_text(self) -> str:
        choice = self._choice()
        return json.dumps([choice.tables, choice.exclude])

    def open(self) -> FeedEngine:
        """Return the feed at the place that it has reached; its last call is `end_reading`. Raises: FeedStop."""
        one = self._engine
        return FeedEngine(one.reading, self._lake, self._choice(), self._settings, one.connection, limits=one.limits)

    def is_there(self) -> bool:
        """Return whether a run has left its lake."""
        return any(self._lake.open(kind, "", "") is not None for kind in (_PLAN, STATE))

    def remove(self) -> None:
        """Remove the lake beside, of whatever run it is."""
        self._engine.lake.remove_beside(self._name, _PLAN)


def remove_all(engine: FeedEngine, keys: Iterable[TableName]) -> list[TableName]:
    """Remove what rebuilds of tables have left that were ended and not run again; return these tables."""
    found = []
    for key in keys:
        beside = FeedBeside(engine, key, None)
        if beside.is_there():
            beside.remove()
            found.append(key)
    return found


def _property(name: str) -> str:
    return f"binlog-relay.rebuild-{name}"


def place_of(engine: FeedEngine, key: TableName) -> FeedOffset:
    """Return the place that a table must have reached to replace the one that is there."""
    table = engine.table(key)
    parts = [one.place for one in (table.current, table.history) if one is not None]
    known = [engine.place, engine.progress.done(key), *parts]
    return max(one for one in known if one is not None)
