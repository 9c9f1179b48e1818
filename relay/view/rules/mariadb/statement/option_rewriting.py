"""The options of a table, and its partitions."""

from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import becomes_innodb, engine_of
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.ddl_statement import CharsetOption, TableOption
from protocol.sql.tables.table_options import charset_option, engine_option, partitions, plain_option
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.stops import definition_stops

_KEPT: Final = frozenset(
    ("AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "COMMENT", "DELAY_KEY_WRITE", "INSERT_METHOD", "MAX_ROWS",
     "MIN_ROWS", "PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "UNION", "START TRANSACTION")
)  # fmt: skip
_CUT: Final = frozenset(
    ("PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "ENCRYPTION_KEY_ID", "IETF_QUOTES",
     "PASSWORD", "CONNECTION", "TABLESPACE", "NODEGROUP", "STORAGE", "SEQUENCE", "WITH SYSTEM VERSIONING", "DATA DIRECTORY",
     "INDEX DIRECTORY")
)  # fmt: skip
"""Options that say how MariaDB stores the rows, and that MySQL does not know or refuses."""
_STOPPING: Final = {"SYSTEM_TIME": "PARTITION BY SYSTEM_TIME", "DEFAULT": "a DEFAULT partition"}


@dataclass
class TableOptions:
    """A statement's options of its table. `engine` is in upper case, "": none is named. `last` is the place of their last word.

    `versioned`: WITH SYSTEM VERSIONING. `sequence`: it is one. `of_aria` are options that InnoDB does not take as Aria does.
    """

    charset: str = ""
    engine: str = ""
    engine_values: list[int] = field(default_factory=list)
    versioned: bool = False
    sequence: bool = False
    partitioned: bool = False
    starts_transaction: bool = False
    last: int = 0
    of_aria: list[TableOption] = field(default_factory=list)


class OptionRewriting:
    """Reads options, one after the other, and edits those that MySQL does not read."""

    def __init__(self, words: EditableStatement) -> None:
        self._words = words
        self.options = TableOptions()
        self._clauses = CharsetClauses(words)

    def accept(self) -> bool:
        """Take one; return False if none follows. Raises: UnsupportedSyntax, Untranslatable."""
        words = self._words
        if words.kind is not TokenKind.WORD or not (
            charset_option(words, CharsetOption()) or engine_option(words) is not None or plain_option(words)
        ):
            return False
        self._visit(words.written.options[-1])
        self.options.last = words.at - 1
        return True

    def partitions(self, *, before_query: bool) -> None:
        """Read PARTITION BY and what follows; with `before_query` up to a query."""
        words, start, first = self._words, self._words.at, len(self._words.written.options)
        self.options.partitioned = True
        partitions(words, before_query=before_query)
        for one in words.written.options[first:]:
            self._visit(one)
        read_expressions(words, start, words.at)

    def _visit(self, option: TableOption) -> None:
        words, options, name = self._words, self.options, option.name
        if name in ("CHARACTER SET", "COLLATE"):
            self._clauses.add(option)
        elif option.is_engine:
            options.engine_values.append(words.index_at(option.value))
            if not option.of_partition:
                options.engine = option.text.upper()
        elif name == "KEY_BLOCK_SIZE" or (name == "ROW_FORMAT" and option.text.upper() != "PAGE"):
            options.of_aria.append(option)
        elif name in _CUT or name == "ROW_FORMAT":
            words.cut_part(option)
            if name.endswith(" DIRECTORY"):
                words.reports.append(name)
        elif name in _STOPPING:
            raise definition_stops.clause_unknown(words.context.target_title, words.query, _STOPPING[name])
        elif name not in _KEPT:
            raise UnsupportedSyntax(f"the option {name}")
        options.versioned = options.versioned or name == "WITH SYSTEM VERSIONING"
        options.starts_transaction = options.starts_transaction or name == "START TRANSACTION"
        options.sequence = options.sequence or (name == "SEQUENCE" and option.text not in ("0", "NO"))

    def finish(self, known_engine: str = "", known_charset: str = "") -> None:
        """Finish after the last option. `known_engine` and `known_charset` are those of the altered table, "": not known."""
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
            for one in options.of_aria:
                words.cut_part(one)
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
