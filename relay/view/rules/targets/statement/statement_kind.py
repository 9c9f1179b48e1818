"""What a statement of a binlog is, as far as a target's rules differ by it."""

from typing import Final

from relay.view.rules.targets.statement.source_statement import SourceStatement

_TRANSACTION: Final = frozenset(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "START"))
_ACCOUNT_OBJECTS: Final = frozenset(("USER", "ROLE"))
_TABLE_OBJECTS: Final = frozenset(
    ("TABLE", "TEMPORARY", "DATABASE", "SCHEMA", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL")
)
_DEFINING: Final = frozenset(("CREATE", "ALTER"))


def is_transaction_word(statement: SourceStatement) -> bool:
    """BEGIN, COMMIT, SAVEPOINT, XA and the like."""
    return statement.word(0) in _TRANSACTION


def is_account_statement(statement: SourceStatement) -> bool:
    """CREATE USER, GRANT, SET PASSWORD and the like: no version reads those of another for sure."""
    first, second = statement.word(0), statement.word(1)
    if first in ("CREATE", "ALTER", "DROP", "RENAME"):
        return second in _ACCOUNT_OBJECTS
    return first in ("GRANT", "REVOKE") or (first == "SET" and second in ("PASSWORD", "DEFAULT", "ROLE"))


def is_plain_definition(statement: SourceStatement) -> bool:
    """A definition of tables, indexes or databases, or maintenance of them: nothing is compared, no rows are selected."""
    first, second = statement.word(0), statement.word(1)
    if first in ("RENAME", "TRUNCATE", "DROP", "OPTIMIZE", "ANALYZE", "REPAIR", "FLUSH"):
        return True
    return first in _DEFINING and second in _TABLE_OBJECTS and not statement.has("SELECT")


def selects_into_new_table(statement: SourceStatement) -> bool:
    """CREATE TABLE ... SELECT, and its other spellings."""
    made = statement.starts("CREATE", "TABLE") or statement.starts("CREATE", "TEMPORARY", "TABLE")
    return made and any(statement.has(word) for word in ("SELECT", "WITH"))


def only_counts(statement: SourceStatement) -> bool:
    """A statement that gathers statistics and changes no table: ANALYZE TABLE ... UPDATE HISTOGRAM."""
    return statement.starts("ANALYZE") and statement.has("HISTOGRAM")
