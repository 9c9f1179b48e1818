"""The facts about binlogs of older MySQL servers that newer ones refuse or execute differently, each fact once.

The rules of views stop or translate by these rows, and the audit `readiness` looks for the same.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.errors import ErrorCode
from protocol.kernel.codes import (
    ANNOTATE_ROWS_EVENT,
    CREATE_FILE_EVENT,
    EXEC_LOAD_EVENT,
    INCIDENT_EVENT,
    LOAD_EVENT,
    NEW_LOAD_EVENT,
    PARTIAL_ROW_DATA_EVENT,
    PRE_GA_DELETE_ROWS_EVENT,
    PRE_GA_UPDATE_ROWS_EVENT,
    PRE_GA_WRITE_ROWS_EVENT,
)
from protocol.sql.engines import names_of_engines
from protocol.sql.tables.ddl_statement import TableDefinition
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops import definition_stops, statement_stops, transaction_stops
from relay.view.stops.stop_reason import Untranslatable

Version = tuple[int, ...]
TO_INNODB: Final = names_of_engines(lambda engine: engine.may_be_innodb and engine.transactions is False)
"""Engines that a view with engines = "innodb" replaces by InnoDB."""
_MISSING: Final = names_of_engines(lambda engine: engine.name == "federated")
_THROUGH_5_7: Final = "replicate through a MySQL 5.1 to 5.7 in between; or repair the tables by hand, then `view skip`"


class EventDifference(NamedTuple):
    """Events of `types` (codes) that MySQL does not read from version `since` on. `way` is the advice of a view that stops there."""

    types: frozenset[int]
    since: Version
    way: str

    def stop(self, kind: int) -> Untranslatable:
        """Return the stop at an event of them."""
        return (
            transaction_stops.incident()
            if kind == INCIDENT_EVENT
            else transaction_stops.event_unsupported(kind, self.way)
        )


class DefinitionDifference(NamedTuple):
    """A CREATE or ALTER TABLE that MySQL refuses from version `since` on, with `error`.

    `finds` returns the engine or the clause; "": nothing. `stop` None: a view translates it.
    """

    since: Version
    error: int
    finds: Callable[[TableDefinition], str]
    stop: Callable[[LoggedQuery, str], Untranslatable] | None = None


def _engine_missing(made: TableDefinition) -> str:
    return made.engine if made.engine.lower() in _MISSING else ""


def _partitioned_engine(made: TableDefinition) -> str:
    if not made.written.partitioned or made.is_temporary:
        return ""
    return next((one.text for one in made.written.engines if one.text.lower() in TO_INNODB), "")


def _type_option(made: TableDefinition) -> str:
    return "TYPE" if any(one.name == "TYPE" for one in made.written.engines) else ""


OLD_ROWS: Final = EventDifference(
    frozenset((PRE_GA_WRITE_ROWS_EVENT, PRE_GA_UPDATE_ROWS_EVENT, PRE_GA_DELETE_ROWS_EVENT)), (8, 0), _THROUGH_5_7
)
OLD_LOADS: Final = EventDifference(
    frozenset((LOAD_EVENT, NEW_LOAD_EVENT, CREATE_FILE_EVENT, EXEC_LOAD_EVENT)), (8, 0), _THROUGH_5_7
)
INCIDENTS: Final = EventDifference(frozenset((INCIDENT_EVENT,)), (), "")
MARIADB_EVENTS: Final = EventDifference(
    frozenset(range(ANNOTATE_ROWS_EVENT, PARTIAL_ROW_DATA_EVENT + 1)), (), "a view for MySQL needs a MySQL source"
)
EVENTS: Final = (OLD_ROWS, OLD_LOADS, INCIDENTS, MARIADB_EVENTS)

ENGINE_MISSING: Final = DefinitionDifference(
    (),
    ErrorCode.ER_UNKNOWN_STORAGE_ENGINE,
    _engine_missing,
    lambda query, engine: definition_stops.engine_missing(query, engine, ErrorCode.ER_UNKNOWN_STORAGE_ENGINE),
)
PARTITIONED_ENGINE: Final = DefinitionDifference((8, 0), 1178, _partitioned_engine, definition_stops.partitions)
TYPE_OPTION: Final = DefinitionDifference((5, 5), ErrorCode.ER_PARSE_ERROR, _type_option)
"""The option TYPE= of 4.x and 5.0, which is ENGINE= today."""

_HASH_IS_THE_PASSWORD_SINCE: Final = (5, 7, 6)


def password_hash(query: LoggedQuery, source: Version, target: Version) -> Untranslatable | None:
    """Return the stop at SET PASSWORD, whose hash a target since 5.7.6 takes for the password itself; None: it does not.

    `source` and `target` are versions; `target` has two parts.
    """
    is_older = (0, 0, 0) < source < _HASH_IS_THE_PASSWORD_SINCE
    if is_older and target >= _HASH_IS_THE_PASSWORD_SINCE[:2] and query.kind.thing == "PASSWORD":
        return statement_stops.password_hash(query)
    return None
