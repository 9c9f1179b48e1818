"""A statement that defines something, as logged: with the facts needed to apply it to a schema whose state before is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from protocol.binlog.layout import FLAGS, OF_ONE_CONNECTION
from protocol.binlog.schema.collation_names import collation_of_number
from protocol.binlog.schema.column_charsets import charset_of_column, decode_text
from protocol.binlog.schema.definition_statement import definition_statement, statement_setting
from protocol.errors import ProtocolError
from protocol.sql.kind import StatementKind, kind_of
from protocol.sql.statements.statement_names import defined_names

if TYPE_CHECKING:
    # A running relay notes statements and rarely parses them: it does not import the parser.
    from protocol.sql.tables.ddl_statement import Statement
    from protocol.sql.tables.server_dialect import DefaultCollations
    from relay.source_tables.table_book import SourceTables

# A password that is part of a statement; no definition of a table has one there.
_PASSWORD: Final = re.compile(r"\bIDENTIFIED\s++(?:BY|VIA|WITH|AS)\b|\bSET\s++PASSWORD\b", re.IGNORECASE)
# Engines whose tables name another server, and the account there.
_REMOTE: Final = re.compile(r"\b(?:FEDERATED|CONNECT|SPIDER)\b", re.IGNORECASE)
_CONNECTION: Final = re.compile(
    r"""(\bCONNECTION\s*+=?+\s*+)(?:'(?>(?:[^'\\]++|\\.|'')*)(?:'|\\?\Z)|"(?>(?:[^"\\]++|\\.|"")*)(?:"|\\?\Z))""",
    re.IGNORECASE | re.DOTALL,
)
_RENAMES: Final = re.compile(r"\b(?:RENAME|CHANGE)\b", re.IGNORECASE)
_HAS_COLUMNS: Final = frozenset(("TABLE", "INDEX", "DATABASE", "SEQUENCE"))
"""The things that a definition without columns is not about."""


@dataclass(frozen=True, slots=True)
class LoggedDefinition:
    """`names` are all words that may name a table it is about, in lower case; None: any table. `text` None: it is not available.

    `server_charset` and `server_collation` are for new databases, empty if unknown. `version` is that of the server that logged it.
    `collations` belong to character sets that have others than those of old servers. `explicit_timestamps` is the server's
    explicit_defaults_for_timestamp; None: its event does not contain it.
    """

    names: frozenset[str] | None
    text: str | None = None
    schema: str = ""
    sql_mode: int = 0
    thread_id: int = 0
    error: int = 0
    server_charset: str = ""
    version: str = ""
    server_collation: str = ""
    collations: "DefaultCollations" = ()
    explicit_timestamps: bool | None = None

    @property
    def facts(self) -> dict[str, Any] | None:
        """The facts in a line of the schema file besides the names; None: there are no others."""
        if self.text is None or self.names is None:
            return None
        facts: dict[str, Any] = {"text": self.text, "schema": self.schema, "thread": self.thread_id}
        for name, value in (
            ("error", self.error),
            ("mode", self.sql_mode),
            ("charset", self.server_charset),
            ("version", self.version),
            ("collation", self.server_collation),
            ("collations", dict(self.collations)),
        ):
            if value:
                facts[name] = value
        if self.explicit_timestamps is not None:
            facts["explicit_timestamps"] = self.explicit_timestamps
        return facts

    @property
    def may_rename(self) -> bool:
        """True if it may rename tables or columns, which foreign keys may name."""
        return self.text is None or _RENAMES.search(self.text) is not None

    def parsed(self) -> "Statement":
        """Return the parsed statement. Raises: UnsupportedSyntax."""
        from protocol.sql.lexer import UnsupportedSyntax
        from protocol.sql.tables.ddl_parser import parse_ddl

        if self.text is None:
            raise UnsupportedSyntax("a statement that cannot be read")
        return parse_ddl(self.text, self.schema, self.sql_mode, self.version, self.collations, self.explicit_timestamps)

    def apply_to(self, tables: "SourceTables") -> None:
        """Move the book to the place after the statement; tables whose state becomes uncertain are doubtful."""
        from protocol.sql.lexer import UnsupportedSyntax
        from relay.source_tables.applied_definition import (
            DefiningSession,
            apply_definition,
            forget_tables,
            is_about_tables,
        )

        try:
            statement = self.parsed()
        except UnsupportedSyntax:
            tables.forget_words(self.names)
            return
        if self.error:
            # it was executed in part
            forget_tables(tables, statement)
            if not is_about_tables(statement):
                tables.forget_words(self.names)
            return
        session = DefiningSession(self.thread_id, self.server_charset, self.server_collation)
        try:
            apply_definition(tables, statement, session)
        except UnsupportedSyntax:
            forget_tables(tables, statement)


def _may_change(kind: StatementKind) -> bool:
    """Return whether it may change a temporary table. One that creates or drops one says so, or its table is missing then."""
    return kind.verb in ("ALTER", "") or kind.thing == "INDEX"


def logged_definition(event: bytes, post_length: int, checksum: bool, version: str) -> LoggedDefinition | None:
    """Return the definition in a Query event; None: it defines nothing with columns. For the arguments see definition_statement."""
    try:
        found = definition_statement(event, post_length, checksum)
    except ProtocolError:
        return LoggedDefinition(None)
    if found is None:
        return None
    if found[1] is None:
        return LoggedDefinition(None)
    setting = statement_setting(event, post_length)
    client = charset_of_column(setting.client_collation)
    text = decode_text(found[1], client)
    is_unclear = int.from_bytes(event[FLAGS], "little") & OF_ONE_CONNECTION and _may_change(kind_of(found[1], version))
    if "\ufffd" in text or is_unclear:
        # It is not always known if such a temporary table exists: the statement may be about that, or not.
        return LoggedDefinition(defined_names(found[1], setting.sql_mode))
    if _REMOTE.search(text) is not None:
        text = _CONNECTION.sub(r"\1''", text)  # the stored text contains no secrets
    made = LoggedDefinition(
        defined_names(text.encode(), setting.sql_mode),
        text,
        found[0].decode("utf-8", "replace"),
        setting.sql_mode,
        setting.thread_id,
        setting.error,
        charset_of_column(setting.server_collation) or "",
        version,
        collation_of_number(setting.server_collation),
        default_collations(dict(setting.default_collations)),
        setting.timestamps_flag if "mariadb" in version.lower() else setting.explicit_timestamps,
    )
    if _has_no_table(made):
        return None
    return made if _PASSWORD.search(text) is None else LoggedDefinition(made.names)


def default_collations(told: Mapping[int, int]) -> "DefaultCollations":
    """Return by names what an event contains by numbers: for a character set's compiled collation, the one that it has."""
    return tuple(
        (charset, collation_of_number(number)) for of, number in told.items() if (charset := charset_of_column(of))
    )


def _has_no_table(made: LoggedDefinition) -> bool:
    """Return whether it is certainly about something without columns."""
    if made.text is None or kind_of(made.text.encode(), made.version).thing in _HAS_COLUMNS:
        return False
    from protocol.sql.lexer import UnsupportedSyntax
    from protocol.sql.tables.ddl_statement import NoTable

    try:
        return isinstance(made.parsed(), NoTable)
    except UnsupportedSyntax:
        return False


def definition_of(facts: dict[str, Any]) -> LoggedDefinition:
    """Return the definition in a line's `facts`. Raises: KeyError, TypeError, ValueError if it is no such line."""
    names = facts.get("names")
    sql = facts.get("sql")
    known = frozenset(map(str, names)) if names is not None else None
    if not isinstance(sql, dict):
        return LoggedDefinition(known)
    return LoggedDefinition(
        known,
        str(sql["text"]),
        str(sql["schema"]),
        int(sql.get("mode", 0)),
        int(sql["thread"]),
        int(sql.get("error", 0)),
        str(sql.get("charset", "")),
        str(sql.get("version", "")),
        str(sql.get("collation", "")),
        tuple((str(charset), str(name)) for charset, name in sql.get("collations", {}).items()),
        None if sql.get("explicit_timestamps") is None else bool(sql["explicit_timestamps"]),
    )
