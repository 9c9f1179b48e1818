"""What the rules of a MariaDB source are put together from, and what each part is asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from protocol.sql.tables.source_table import Table, TableName


class TableConversion(Protocol):
    """What becomes of one Table_map event, and of the rows that belong to it."""

    @property
    def name(self) -> TableName:
        """Of the table."""

    @property
    def map_body(self) -> bytes | None:
        """The event's body; None: it is left out, with its rows."""

    @property
    def rows_are_same(self) -> bool:
        """Whether the rows are MySQL's already, but for their version."""

    def rows(self, event_type: int, body: bytes) -> tuple[int, bytes]:
        """Type and body of an event with rows of this table, version 1 or 2, not packed; made version 2. Raises: Untranslatable."""


class Tables(Protocol):
    """What is known of the source's tables."""

    @property
    def changes(self) -> object:
        """Another object behind each change of what is known."""

    def begin(self) -> None:
        """A group begins: what is learned of it may be taken back."""

    def keep(self) -> None:
        """It is kept."""

    def take_back(self) -> None:
        """Nothing was learned since `begin`."""

    def convert_map(self, body: bytes, server_version: str) -> TableConversion:
        """body: of a Table_map event. Raises: Untranslatable."""

    @property
    def told_by_definition(self) -> str:
        """A table of which rows alone do not tell what the replica has, as `shop.t`; "": there is none."""

    def note_recorded(self, tables: Iterable[Table]) -> None:
        """The source reported these tables from before the archive; what is known of one stays."""

    def source_started(self) -> None:
        """The source was started anew: temporary tables are gone."""

    def state(self) -> bytes:
        """All that is known; the same knowledge gives the same bytes."""

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else. b"": nothing."""


class StatusMade(Protocol):
    """The status variables of a statement."""

    @property
    def status(self) -> bytes:
        """As the target reads them."""

    @property
    def sql_mode(self) -> int:
        """The source's, by which the text is read."""

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
        """Whether a DROP that says nothing of it stands for DROP … IF EXISTS."""

    @property
    def defaults(self) -> Mapping[int, int]:
        """Which collation a character set has that is named without one, by the number of its compiled one."""


class Statuses(Protocol):
    """Translates status variables, and user variables."""

    def translate(self, status: bytes, text: bytes, *, is_dml: bool) -> StatusMade:
        """status: of a Query or Execute_load_query. Raises: Untranslatable."""

    def user_variable(self, body: bytes) -> bytes:
        """body: of a User_var event. Raises: Untranslatable."""


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """A statement where it stands. schema: the default database. status: its variables as the target reads them, with what they say.
    error_code: with which it ended at the source. thread_id: of its session. in_transaction: it does not commit. rows_follow: rows of
    its transaction stand behind it. is_load: it is of an Execute_load_query.
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

    left_out: what was left out since it was emptied: a kind of `LeftOut`, and what.
    """

    left_out: list[tuple[str, str]]

    def translate(self, text: bytes, place: StatementPlace) -> list[bytes]:
        """What it becomes: several texts, of which all but the last commit; none: it is left out. Raises: Untranslatable."""


class MariadbParts(NamedTuple):
    """All of one view."""

    tables: Tables
    statements: Statements
    statuses: Statuses
