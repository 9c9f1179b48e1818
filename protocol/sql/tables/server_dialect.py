"""The meaning of defining statements on different servers, by the version and the facts of the event."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocol.binlog.schema.collation_names import compiled_collation
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import RESTRICT

DefaultCollations = tuple[tuple[str, str], ...]
"""(character set, collation) of sets for which the statement's event names another collation than that of old servers."""


UNKNOWN_RULE: Final = "?"


@dataclass(frozen=True)
class ServerDialect:
    """The dialect of the server that logged a statement. `version` is empty if not known. `explicit_timestamps` is its
    explicit_defaults_for_timestamp then; None: not in the event.
    """

    version: str
    collations: DefaultCollations = ()
    explicit_timestamps: bool | None = None

    @cached_property
    def mariadb(self) -> bool:
        """True if it is MariaDB."""
        return "mariadb" in self.version.lower()

    @cached_property
    def numbers(self) -> tuple[int, int, int]:
        """The numbers of the version; zeros: not known."""
        return version_numbers(self.version) if self.version else (0, 0, 0)

    def default_collation(self, charset: str) -> str:
        """Return the collation of texts of which only the character set is named; empty: not known."""
        told = dict(self.collations).get(charset)
        if told is not None:
            return told
        if charset == "utf8mb4" and not self.mariadb and (self.numbers >= (8, 0, 0) or not any(self.numbers)):
            return ""  # its events contain it
        return compiled_collation(charset)

    @cached_property
    def collation_outlasts_charset(self) -> bool | None:
        """True if a COLLATE before CHARACTER SET counts; None: not known."""
        if self.mariadb:
            return True if self.numbers >= (10, 11, 0) else None
        if not any(self.numbers):
            return None
        return True if self.numbers >= (9, 0, 0) else False if self.numbers < (5, 7, 0) else None

    @cached_property
    def takes_null_in_timestamps(self) -> bool:
        """True if a TIMESTAMP column without NULL or NOT NULL may be NULL. If not known, the version's default applies."""
        if self.explicit_timestamps is not None:
            return self.explicit_timestamps
        return self.numbers >= ((10, 10, 0) if self.mariadb else (8, 0, 2))

    @cached_property
    def has_foreign_keys_of_columns(self) -> bool | None:
        """True if REFERENCES in a column's definition makes a foreign key; None: not known."""
        if not any(self.numbers):
            return None
        return self.numbers >= ((10, 5, 0) if self.mariadb else (9, 0, 0))

    @cached_property
    def foreign_keys_are_called_as_their_indexes(self) -> bool:
        """True if FOREIGN KEY NAME (…) is called NAME: elsewhere only CONSTRAINT names it."""
        return self.mariadb

    def match_forgets_rules(self, *, alters: bool) -> bool | None:
        """Return whether MATCH makes a foreign key without ON DELETE and ON UPDATE, even if it contains these; None: not known.

        MySQL before 8.0 reads the text of a CREATE twice, the second time in InnoDB, which stops at MATCH; of an ALTER it does so if
        it copies the table.
        """
        if self.mariadb:
            return False if self.numbers >= (10, 11, 0) else None
        if self.numbers >= (8, 0, 0):
            return False
        return None if alters or not any(self.numbers) else True

    def foreign_key_rule(self, said: str) -> str:
        """Return the rule of a foreign key from its definition's: empty, or the words after ON DELETE and ON UPDATE."""
        if said == UNKNOWN_RULE:
            return said
        if not said:
            return "NO ACTION" if not self.mariadb and self.numbers >= (8, 0, 0) else RESTRICT
        return RESTRICT if said == "SET DEFAULT" and self.mariadb else said
