"""The parts from which the rules of a MariaDB source are composed, and their protocols."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from protocol.sql.tables.source_table import Table, TableName


class TableConversion(Protocol):
    """The translation of one Table_map event, and of the rows that belong to it."""

    @property
    def name(self) -> TableName:
        """The name of the table."""

    @property
    def map_body(self) -> bytes | None:
        """The event's body; None: it is left out, with its rows."""

    @property
    def rows_are_same(self) -> bool:
        """True if the rows are MySQL's already, except for their version."""

    def rows(self, event_type: int, body: bytes) -> tuple[int, bytes]:
        """Return type and body, version 2, of an event with unpacked rows of this table, version 1 or 2. Raises: Untranslatable."""


class Tables(Protocol):
    """The known tables of the source."""

    @property
    def changes(self) -> object:
        """An object that is replaced at each change of what is known."""

    def begin(self) -> None:
        """Begin a group: what is learned of it may be taken back."""

    def keep(self) -> None:
        """Keep what was learned."""

    def take_back(self) -> None:
        """Forget what was learned since `begin`."""

    def convert_map(self, body: bytes, server_version: str) -> TableConversion:
        """Return the conversion for the `body` of a Table_map event. Raises: Untranslatable."""

    @property
    def told_by_definition(self) -> str:
        """A table whose content on the replica does not follow from rows alone, as `shop.t`; "": there is none."""

    def note_recorded(self, tables: Iterable[Table]) -> None:
        """Take tables from before the archive, as the source reported them; what is known of one stays."""

    def source_started(self) -> None:
        """Note that the source was started: temporary tables are dropped."""

    def state(self) -> bytes:
        """Return all that is known; the same knowledge gives the same bytes."""

    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else. b"": nothing."""


class StatusMade(Protocol):
    """The translated status variables of a statement."""

    @property
    def status(self) -> bytes:
        """The variables as the target reads them."""

    @property
    def sql_mode(self) -> int:
        """The source's sql_mode, by which the text is read."""

    @property
    def charset(self) -> int:
        """The number of the client's collation at the source."""

    @property
    def connection(self) -> int:
        """The number of the connection's collation at the source; 0: not known."""

    @property
    def server(self) -> int:
        """The number of the server's collation at the source; 0: not known."""

    @property
    def if_exists(self) -> bool:
        """True if a DROP without IF EXISTS means DROP … IF EXISTS."""

    @property
    def defaults(self) -> Mapping[int, int]:
        """The collation of a character set that is named without one, by the number of its compiled one."""


class Statuses(Protocol):
    """Translates status variables, and user variables."""

    def translate(self, status: bytes, text: bytes, *, is_dml: bool) -> StatusMade:
        """Translate the `status` of a Query or Execute_load_query. Raises: Untranslatable."""

    def user_variable(self, body: bytes) -> bytes:
        """Translate the `body` of a User_var event. Raises: Untranslatable."""


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """A statement's surroundings. `schema` is the default database. `status` are its translated variables, with their values.
    `error_code` is that with which it ended at the source, `thread_id` is that of its session. `in_transaction`: it does not commit.
    `rows_follow`: rows of its transaction follow it. `is_load`: it belongs to an Execute_load_query.
    """

    schema: bytes
    status: StatusMade
    error_code: int
    thread_id: int
    server_version: str
    in_transaction: bool
    rows_follow: bool
    is_load: bool


class Statements(Protocol):
    """Translates statements.

    `left_out` lists what was left out since it was emptied: a kind of `LeftOut`, and a description.
    """

    left_out: list[tuple[str, str]]

    def translate(self, text: bytes, place: StatementPlace) -> list[bytes]:
        """Return the resulting texts, of which all but the last commit; none: it is left out. Raises: Untranslatable."""


class MariadbParts(NamedTuple):
    """All parts of one view."""

    tables: Tables
    statements: Statements
    statuses: Statuses
