"""MATCH in a foreign key, after which MySQL before 8.0 reads no ON DELETE and no ON UPDATE (tried: 5.6.24, 9.7.4)."""

from typing import Final

from protocol.sql.edits import TextEdit
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.ddl_statement import AlterTable, TableDefinition
from protocol.sql.tables.references_clause import ReferencesClause
from protocol.sql.tables.server_dialect import ServerDialect
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.removed_words import removed_words

_KEYS_IN_PLACE_SINCE: Final = (5, 6, 0)


def forgets_actions(query: LoggedQuery, made: TableDefinition) -> bool | None:
    """Return whether the source ignores ON DELETE and ON UPDATE after MATCH; None: not known.

    InnoDB ignores them, which reads the text of a definition without its comments, those for servers too. With foreign_key_checks = 0
    an ALTER TABLE may add the key in place: then the server passes them to InnoDB.
    """
    in_place = isinstance(made, AlterTable) and not query.foreign_key_checks
    may_be_in_place = in_place and version_numbers(query.server_version) >= _KEYS_IN_PLACE_SINCE
    forgets = ServerDialect(query.server_version).match_forgets_rules(alters=may_be_in_place)
    return None if forgets and b"/*!" in query.raw else forgets


def has_actions_behind_match(made: TableDefinition) -> bool:
    """Return whether some FOREIGN KEY of the definition has ON DELETE or ON UPDATE there."""
    return any(map(_has_actions, _clauses(made)))


def without_actions(query: LoggedQuery, made: TableDefinition) -> list[TextEdit]:
    """Return the edits that remove MATCH with what follows it from the definition, where ON DELETE or ON UPDATE does."""
    return [edit for one in _clauses(made) if _has_actions(one) for edit in removed_words(query, one.from_match)]


def _clauses(made: TableDefinition) -> list[ReferencesClause]:
    return [key.references for key in made.written.foreign_keys]


def _has_actions(clause: ReferencesClause) -> bool:
    before = clause.before_match
    return before is not None and (before.on_delete, before.on_update) != (clause.on_delete, clause.on_update)
