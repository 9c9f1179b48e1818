"""Under what a MariaDB's statement ran, and what its translation is for."""

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
        """The target's for one of MariaDB. Raises: Untranslatable where the view has none for it."""

    def default_of(self, charset: str, defaults: Mapping[int, int]) -> str:
        """The target's for what `CHARACTER SET charset` means at the source where no collation is named."""

    def compares_alike(self, number: int) -> bool:
        """Whether a statement that compares by the collation of this number finds the same rows, but for rare characters."""

    def is_alike(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool | None:
        """The same of a name, or where that is empty of a character set's own; None: nobody knows which collation it is."""

    def is_same_named(self, collation: str, charset: str, defaults: Mapping[int, int]) -> bool:
        """Whether the replicas have the very collation; where nobody knows which it is, not."""


@dataclass(frozen=True)
class StatementContext:
    """schema: the default database. sql_mode, charset: MariaDB's own, charset: the client's collation number.

    server_version: as "10.11.19-MariaDB-log". target: (9, 7). defaults: default collations by character set, of the event (numbers).
    rows_follow: the statement is a CREATE TABLE whose rows come behind it in the same group (CREATE … SELECT in row format).
    json: what columns of type JSON become: texts, or MySQL's own JSON. connection: the number of the connection's collation at the
    source; 0: not known. thread_id: of the session. drops_if_exists: a DROP that says nothing of it is logged as IF EXISTS.
    keys_by_server: foreign keys are carried out by InnoDB at the source, and by the server on the replicas.
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

    @cached_property
    def target_title(self) -> str:
        """For messages."""
        return f"MySQL {self.target[0]}.{self.target[1]}"

    def query(self, raw: bytes) -> LoggedQuery:
        """The text as a statement that is cut into words under this setting."""
        status = bytes([_SQL_MODE_CODE]) + self.sql_mode.to_bytes(8, "little")
        status += bytes([_CHARSET_CODE]) + self.charset.to_bytes(2, "little") * 3
        return LoggedQuery(b"", raw, 0, 0, self.schema, status, self.server_version)
