"""The session of a MariaDB's statement, and the purpose of its translation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from relay.view.rules.statement.logged_query import LoggedQuery

"""The bit of sql_mode."""
_SQL_MODE_CODE, _CHARSET_CODE = 1, 4


class CollationNames(Protocol):
    """Names of MariaDB's collations as the target has them."""

    def name_of(self, mariadb_name: str) -> str:
        """Return the target's name for one of MariaDB. Raises: Untranslatable where the view has none for it."""

    def default_of(self, charset: str, defaults: Mapping[int, int]) -> str:
        """Return the target's name for that of `CHARACTER SET charset` at the source where no collation is named."""

    def compares_alike(self, number: int) -> bool:
        """Return whether a statement that compares by the collation of this number finds the same rows, except for rare characters."""

    def is_alike(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool | None:
        """Return the same for a name, or where that is empty for a character set's own; None: it is unknown."""

    def is_same_named(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool:
        """Return whether the replicas have the very collation; False if it is unknown."""


@dataclass(frozen=True)
class StatementContext:
    """The context of a statement. `schema` is the default database. `sql_mode` and `charset`, the client's collation number, are
    MariaDB's.

    `server_version` is as "10.11.19-MariaDB-log", `target` as (9, 7). `defaults` are the event's default collations by character set,
    as numbers. `rows_follow`: the statement is a CREATE TABLE whose rows follow in the same group (CREATE … SELECT in row format).
    `json` says what columns of type JSON become: texts, or MySQL's own JSON. `connection` is the number of the connection's collation
    at the source; 0: not known. `thread_id` is the session's. `drops_if_exists`: a DROP without IF EXISTS is logged with it.
    `keys_by_server`: foreign keys are InnoDB's at the source, and the server's on replicas. `accept` is the view's.
    `is_judged`: a `StatementJudge` looks at the statement, too.
    """

    schema: bytes
    sql_mode: int
    charset: int
    server_version: str
    target: tuple[int, int]
    collations: CollationNames
    defaults: Mapping[int, int] = field(default_factory=dict)
    rows_follow: bool = False
    json: Literal["longtext", "binary"] = "longtext"
    connection: int = 0
    thread_id: int = 0
    drops_if_exists: bool = False
    keys_by_server: bool = False
    accept: tuple[str, ...] = ()
    is_judged: bool = False

    @cached_property
    def target_title(self) -> str:
        """The target's name for messages."""
        return f"MySQL {self.target[0]}.{self.target[1]}"

    def query(self, raw: bytes) -> LoggedQuery:
        """Return the text as a statement that is cut into words under this setting."""
        status = bytes([_SQL_MODE_CODE]) + self.sql_mode.to_bytes(8, "little")
        status += bytes([_CHARSET_CODE]) + self.charset.to_bytes(2, "little") * 3
        return LoggedQuery(b"", raw, 0, 0, self.schema, status, self.server_version)
