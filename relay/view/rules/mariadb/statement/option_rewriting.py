"""Options of a table, and its partitions."""

from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import becomes_innodb, engine_of
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.stops import definition_stops

_KEPT: Final = frozenset(
    ("AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "COMMENT", "DELAY_KEY_WRITE", "INSERT_METHOD", "KEY_BLOCK_SIZE",
     "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES")
)  # fmt: skip
_CUT: Final = frozenset(
    ("PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "ENCRYPTION_KEY_ID", "IETF_QUOTES",
     "PASSWORD", "CONNECTION", "TABLESPACE")
)  # fmt: skip
"""Options that say how MariaDB keeps the rows, and that MySQL does not know or refuses."""
_QUERIES: Final = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "AS", "IGNORE", "REPLACE"))


@dataclass
class TableOptions:
    """What a statement says of its table. engine: in upper case, "" for nothing. last: the place of the last word of the options.

    versioned: WITH SYSTEM VERSIONING. sequence: it is one. row_format: [first, stop).
    """

    charset: str = ""
    engine: str = ""
    engine_values: list[int] = field(default_factory=list)
    versioned: bool = False
    sequence: bool = False
    partitioned: bool = False
    starts_transaction: bool = False
    last: int = 0
    of_aria: list[tuple[int, int]] = field(default_factory=list)


class OptionRewriting:
    """Reads them, one after the other, and edits what MySQL does not read."""

    def __init__(self, words: EditableStatement) -> None:
        self._words = words
        self.options = TableOptions()
        self._clauses = CharsetClauses(words)

    def accept(self) -> bool:
        """Takes one; False: none comes. Raises: UnsupportedSyntax, Untranslatable."""
        words, options = self._words, self.options
        at, word = words.at, words.word()
        if words.kind is not TokenKind.WORD:
            return False
        if self._clauses.accept():
            pass
        elif word in ("ENGINE", "TYPE"):
            self._value()
            options.engine = words.text_of(words.tokens[words.at - 1]).upper()
            options.engine_values.append(words.at - 1)
        elif word == "ROW_FORMAT":
            self._value()
            if words.at_word(words.at - 1) == "PAGE":
                words.cut(at, words.at)
            else:
                options.of_aria.append((at, words.at))
        elif word in _KEPT:
            self._value()
            while words.peek().kind is TokenKind.STRING:
                words.take()
            if word == "KEY_BLOCK_SIZE":
                options.of_aria.append((at, words.at))
        elif word == "SEQUENCE":
            self._value()
            options.sequence = words.tokens[words.at - 1].text not in ("0", "NO")
            words.cut(at, words.at)
        elif word in _CUT:
            self._value()
            words.cut(at, words.at)
        elif word in ("DATA", "INDEX") and words.word(1) == "DIRECTORY":
            words.take()
            self._value()
            words.cut(at, words.at)
            words.reports.append(f"{word} DIRECTORY")
        elif word == "STORAGE" and words.word(1) in ("DISK", "MEMORY"):
            words.at += 2
            words.cut(at, words.at)
        elif word == "UNION" and words.word(1) in ("(", "="):
            words.take()
            words.accept("=")
            words.skip_brackets()
        elif word == "WITH" and words.word(1) == "SYSTEM" and words.word(2) == "VERSIONING":
            words.at += 3
            options.versioned = True
            words.cut(at, words.at)
        elif word == "START" and words.word(1) == "TRANSACTION":
            words.at += 2
            options.starts_transaction = True
        else:
            return False
        options.last = words.at - 1
        return True

    def _value(self) -> None:
        words = self._words
        words.take()
        words.accept("=")
        token = words.take()
        if token.kind is TokenKind.SYMBOL:
            raise UnsupportedSyntax(f"the value {token.text} of an option")

    def partitions(self, *, stop_at_query: bool) -> None:
        """PARTITION BY and what follows; with `stop_at_query` up to a query."""
        words, depth, start = self._words, 0, self._words.at
        self.options.partitioned = True
        while not words.ended:
            at, word = words.at, words.word()
            if stop_at_query and not depth and word in _QUERIES and words.at > start + 2:
                break
            if word == "SYSTEM_TIME":
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, "PARTITION BY SYSTEM_TIME"
                )
            if word == "DEFAULT" and words.at_word(at - 2) == "PARTITION":
                raise definition_stops.clause_unknown(words.context.target_title, words.query, "a DEFAULT partition")
            words.take()
            depth += {"(": 1, ")": -1}.get(word, 0)
            if word == "ENGINE":
                words.accept("=")
                self.options.engine_values.append(words.at)
                words.take()
            elif word in ("DATA", "INDEX") and words.word() == "DIRECTORY":
                words.take()
                words.accept("=")
                words.take()
                words.cut(at, words.at)
                words.reports.append(f"{word} DIRECTORY")
            elif word in ("TABLESPACE", "NODEGROUP") and words.at_word(at - 1) != ".":
                words.accept("=")
                words.take()
                words.cut(at, words.at)
        read_expressions(words, start, words.at)

    def finish(self, known_engine: str = "", known_charset: str = "") -> None:
        """When all is read. known_*: of the table that is altered, "" for not known."""
        words, options = self._words, self.options
        options.charset = self._clauses.charset
        self._clauses.done(known_charset)
        partitioned = options.partitioned
        for at in options.engine_values:
            engine = words.text_of(words.tokens[at]).upper()
            if becomes_innodb(engine):
                words.put(at, "InnoDB")
            elif (known := engine_of(engine)) is None or not known.in_mysql:
                raise definition_stops.clause_unknown(
                    words.context.target_title,
                    words.query,
                    f"the engine {words.tokens[at].text}",
                    ErrorCode.ER_UNKNOWN_STORAGE_ENGINE,
                )
            elif partitioned and not known.partitions:
                words.put(at, "InnoDB")
        if becomes_innodb(options.engine):
            for first, stop in options.of_aria:
                words.cut(first, stop)
        if (
            options.partitioned
            and not options.engine_values
            and known_engine
            and not becomes_innodb(known_engine)
            and not ((known := engine_of(known_engine)) is not None and known.partitions)
        ):
            raise definition_stops.clause_unknown(
                words.context.target_title,
                words.query,
                f"partitions of the engine {known_engine}",
                ErrorCode.ER_CHECK_NOT_IMPLEMENTED,
            )
