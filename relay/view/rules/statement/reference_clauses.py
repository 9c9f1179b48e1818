"""REFERENCES after a column of a definition, which servers before 9.0, and engines without foreign keys, read and ignore."""

from protocol.sql.edits import TextEdit
from protocol.sql.tables.ddl_statement import TableDefinition
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.removed_words import removed_words


def without_references(query: LoggedQuery, made: TableDefinition) -> list[TextEdit]:
    """Return the edits that remove each such clause from the query's definition, as read; FOREIGN KEY (…) REFERENCES stays."""
    return [edit for key in made.written.inline for edit in removed_words(query, key.references.tokens)]
