"""The parts of a transaction that a view leaves out: an empty transaction, or nothing, takes their place."""

from typing import Final

from protocol.sql.kind import Purpose
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements.named_tables import defined_tables, written_tables
from protocol.sql.tables.source_table import TableName
from relay.view.rules.group_parts import GroupPart, PartKind
from relay.view.rules.refused.written_statement import ReplicaStatements
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.account_tables import is_account_table, is_service_table, is_system_table
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.server_differences import password_hash

_NAME_SEEN: Final = 1024
"""The bytes of a statement in which the name of its table is searched."""


class LeftOutParts:
    """Knows which parts a view with these settings leaves out."""

    def __init__(self, settings: ViewSettings, statements: ReplicaStatements) -> None:
        self._settings = settings
        self._statements = statements

    def has(self, part: GroupPart) -> bool:
        """Return whether the part is left out. Raises: Untranslatable."""
        query = part.query
        if part.kind is PartKind.STATEMENT and query is not None and query.kind.verb == "FLUSH":
            return not self._statements.text_of(query)
        return self._is_of_service(part) or self._is_of_accounts(part)

    def _is_of_service(self, part: GroupPart) -> bool:
        """Return whether it concerns only tables of the service that runs the source, or defines only tables of the server itself: with
        accounts left out, theirs too."""
        if part.kind is PartKind.ROWS:
            return bool(part.tables) and all(map(is_service_table, part.tables))
        query = part.query
        if part.kind is not PartKind.STATEMENT or query is None or not _may_name_mysql(query):
            return False
        try:
            defines = query.kind.may_define or query.kind.verb == "TRUNCATE"
            tables = defined_tables(query) if defines else written_tables(query)
        except UnsupportedSyntax:
            return False
        skips = self._settings.account_statements == "skip"

        def is_left_out(name: TableName) -> bool:
            if is_service_table(name):
                return True
            return defines and is_system_table(name) and (skips or not is_account_table(name))

        return bool(tables) and all(map(is_left_out, tables))

    def _is_of_accounts(self, part: GroupPart) -> bool:
        """Return whether it changes accounts, and the view leaves that out. Raises: Untranslatable."""
        if part.kind is PartKind.ROWS:
            of_accounts = [is_account_table(name) for name in part.tables]
            return self._settings.account_statements == "skip" and bool(of_accounts) and all(of_accounts)
        query = part.query
        if part.kind is not PartKind.STATEMENT or query is None:
            return False
        if query.kind.purpose is Purpose.ACCOUNTS:
            if self._settings.account_statements == "skip":
                return True
            stop = password_hash(query, version_numbers(query.server_version), self._settings.target_version)
            if stop is not None:
                raise stop
            return False
        return self._settings.account_statements == "skip" and _writes_accounts(query)


def _may_name_mysql(query: LoggedQuery) -> bool:
    return query.schema.lower() == "mysql" or b"mysql" in query.raw[:_NAME_SEEN].lower()


def _writes_accounts(query: LoggedQuery) -> bool:
    """Return whether a statement changes tables of accounts only."""
    if not _may_name_mysql(query):
        return False
    try:
        tables = written_tables(query)
    except UnsupportedSyntax:
        return False
    return bool(tables) and all(is_account_table(name) for name in tables)
