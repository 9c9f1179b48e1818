"""Words that became reserved: as a bare name they are a syntax error on a newer server.

Compared by a test with information_schema.KEYWORDS of MySQL 9.7 and with what MySQL 5.6 takes as a name.
"""

from collections.abc import Container, Iterator
from typing import Final

from protocol.sql.lexer import TokenKind
from relay.audit.readiness.logged_statement import LoggedStatement

MYSQL_SINCE: Final = {
    "GENERATED": "5.7", "OPTIMIZER_COSTS": "5.7", "STORED": "5.7", "VIRTUAL": "5.7",
    "CUBE": "8.0", "CUME_DIST": "8.0", "DENSE_RANK": "8.0", "EMPTY": "8.0", "EXCEPT": "8.0", "FIRST_VALUE": "8.0", "FUNCTION": "8.0",
    "GROUPING": "8.0", "GROUPS": "8.0", "INTERSECT": "8.0", "JSON_TABLE": "8.0", "LAG": "8.0", "LAST_VALUE": "8.0",
    "LATERAL": "8.0", "LEAD": "8.0", "NTH_VALUE": "8.0", "NTILE": "8.0", "OF": "8.0", "OVER": "8.0", "PERCENT_RANK": "8.0",
    "RANK": "8.0", "RECURSIVE": "8.0", "ROW": "8.0", "ROWS": "8.0", "ROW_NUMBER": "8.0", "SYSTEM": "8.0", "WINDOW": "8.0",
    "MANUAL": "8.4", "PARALLEL": "8.4", "QUALIFY": "8.4", "TABLESAMPLE": "8.4",
    "LIBRARY": "9", "EXTERNAL": "9",
}  # fmt: skip
MARIADB: Final = frozenset((
    "CURRENT_ROLE", "DELETE_DOMAIN_ID", "DO_DOMAIN_IDS", "EXCEPT", "IGNORE_DOMAIN_IDS", "INTERSECT",
    "MASTER_DEMOTE_TO_REPLICA", "MASTER_DEMOTE_TO_SLAVE", "OFFSET", "OVER", "PAGE_CHECKSUM", "PARSE_VCOL_EXPR", "PORTION",
    "RECURSIVE", "REF_SYSTEM_ID", "RETURNING", "ROWS", "ROW_NUMBER", "SQL_AFTER_GTIDS", "SQL_BEFORE_GTIDS",
    "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "VECTOR",
))  # fmt: skip

# Where the old grammar has them as keywords: the word before.
_KEYWORD_BEHIND: Final = {
    "FUNCTION": {"CREATE", "DROP", "ALTER", "AGGREGATE", "SHOW", "EXISTS", "ON", "STATUS", "REPLACE"},
    "CUBE": {"WITH"},
    "ROW": {"EACH"},
    "OFFSET": {"?"},
    "GENERATED": {"AS"},
}
# Words before which a name stands, and words or symbols behind it.
_BEFORE_NAMES: Final = frozenset((
    "TABLE", "INTO", "UPDATE", "FROM", "JOIN", "EXISTS", "COLUMN", "ADD", "CHANGE", "MODIFY", "DROP", "BY", "SET", "WHERE",
    "AND", "OR", "ON", "SELECT", "KEY", "INDEX", "AS", "ORDER", "HAVING", "NOT", "DISTINCT", "LIKE", "RENAME", "TO", "DATABASE",
    "SCHEMA", "USE", "VIEW", "PROCEDURE", "TRIGGER", "EVENT", "REFERENCES", "CONSTRAINT", "IGNORE", "UNIQUE", "FUNCTION",
    "AFTER", "BEFORE", "IN", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "DELAYED", "REPLACE", "(", ",", "=", "+", "-", "*", "/",
    "<", ">", "%", "|", "&", "!",
))  # fmt: skip


def used_as_names(statement: LoggedStatement, words: Container[str]) -> Iterator[str]:
    """The words among `words` that the statement uses as names without quotes."""
    for index, token in enumerate(statement.words):
        word = token.upper
        if token.kind is not TokenKind.WORD or word not in words:
            continue
        before, behind = statement.word(index - 1), statement.word(index + 1)
        if before == ".":
            continue  # behind a dot every word is a name, to all servers
        if word == "FUNCTION" and (before in _KEYWORD_BEHIND["FUNCTION"] or statement.object_kind == "FUNCTION"):
            continue
        if before in _KEYWORD_BEHIND.get(word, ()):
            continue
        if word == "ROW" and behind in ("(", "_FORMAT", "BEGIN"):
            continue
        if word == "OFFSET" and statement.words[index - 1].kind is TokenKind.NUMBER:
            continue
        if behind == "." or before in _BEFORE_NAMES:
            yield word
