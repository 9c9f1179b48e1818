"""The state that statements of one connection read and change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timezone
from typing import Final

from protocol.charsets import CharacterSet, TextEncoding, charset_of_collation
from protocol.packets import STATUS_AUTOCOMMIT
from protocol.resultset import Value
from protocol.statements.session.effort import Effort
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.notice import Notice
from protocol.statements.session.time_zones import time_zone

_UTF8MB4_OF_MYSQL_8: Final = 255
_LATIN1: Final = 8
# Clients older than MariaDB 11.5 do not know the ids of its default collations: it sends them these.
_UCA1400_ON_THE_WIRE: Final = {"utf8": 192, "utf8mb4": 224}


def default_collation(charset: CharacterSet, facts: SourceFacts) -> int:
    """Return the collation that a server of this kind uses if only a character set is named."""
    if charset.name == "utf8mb4" and facts.is_mysql_8:
        return _UTF8MB4_OF_MYSQL_8
    if facts.has_uca1400:
        return _UCA1400_ON_THE_WIRE.get(charset.name, charset.collation)
    return charset.collation


def has_collation(name: str, facts: SourceFacts) -> bool:
    """Return whether a server of this kind has a collation of that name."""
    if "_uca1400_" in name:
        return facts.is_mariadb and facts.version_numbers >= (10, 10)
    if "_0900_" in name:
        return facts.is_mysql_8
    return name.startswith("utf8mb3") is facts.says_utf8mb3 or not name.startswith(("utf8_", "utf8mb3_"))


@dataclass(slots=True)
class StatementSession:
    """One connection's part of every statement. `reset` after `log_in` is for a client that wants to begin again.

    `is_admin`: it may change the relay by statements. `attributes` are the client's about itself. `account_host` is the pattern that
    the account's hosts fit.
    `notices` are the previous statement's, for SHOW WARNINGS. `reads_binary`: the current statement was prepared. `effort` is what
    the current statement may still take.
    `user_variables` and `system_variables` are those that it has set, by name in lower case. `held_bytes` is their memory.
    """

    facts: SourceFacts
    connection_id: int
    user: str = ""
    host: str = ""
    account_host: str = "%"
    is_admin: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    encoding: TextEncoding = field(default_factory=TextEncoding)
    user_variables: dict[str, Value] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    effort: Effort = field(default_factory=Effort, compare=False, repr=False)
    reads_binary: bool = False
    system_variables: dict[str, Value] = field(default_factory=dict)
    held_bytes: int = 0
    _login_collation: int = _UTF8MB4_OF_MYSQL_8

    def log_in(self, user: str, database: str, collation: int) -> None:
        """Take the data of the login packet. `database` is empty for none.

        Any database is accepted. A server ends a login with 1049 if it has no such database, but a client that is moved from the
        source to a relay names one that the source has, and a relay does not know those. USE refuses: who changes to a database wants
        to read there.
        """
        self.user = user
        self.database = database or None
        self._login_collation = collation
        self.use_collation(collation)

    def forget(self) -> None:
        """Forget, at the end of the connection, everything that its client said except who it was."""
        self.user_variables, self.system_variables, self.attributes = {}, {}, {}
        self.notices, self.database, self.held_bytes = (), None, 0

    def use_collation(self, collation: int) -> None:
        """Use the character set of this collation for statements and results."""
        charset = charset_of_collation(collation)
        if self.facts.has_uca1400 and collation == charset.collation:
            collation = default_collation(charset, self.facts)
        self.encoding = TextEncoding(charset, collation, 39 if self.facts.is_mariadb else 31)

    def reset(self) -> None:
        """Carry out COM_RESET_CONNECTION: restore the state after the login except for the database. In MySQL the character set
        becomes the server's. Source: MySQL 9.7.4, MariaDB 10.11.18.
        """
        self.user_variables.clear()
        self.system_variables.clear()
        self.held_bytes = 0
        self.notices = ()
        self.use_collation(self._login_collation if self.facts.is_mariadb else self._server_collation)

    def variables_changed(self) -> None:
        """Count the memory of the variables after a change, instead of with each statement."""
        kept = (*self.user_variables.values(), *self.system_variables.values())
        self.held_bytes = sum(value.__sizeof__() for value in kept)

    @property
    def error_count(self) -> int:
        """The number of errors among the notices of the last statement."""
        return sum(notice.level == "Error" for notice in self.notices)

    @property
    def zone(self) -> timezone:
        """The time zone of NOW(), and of times in statements."""
        return time_zone(self.system_variables.get("time_zone", "SYSTEM"))

    @property
    def _server_collation(self) -> int:
        return _UTF8MB4_OF_MYSQL_8 if self.facts.is_mysql_8 else _LATIN1

    @property
    def status(self) -> int:
        """The server status that answers carry."""
        return STATUS_AUTOCOMMIT if self.system_variables.get("autocommit", True) else 0
