"""What of CREATE TABLE and ALTER TABLE matters to a view, with where it stands in the text: engines, options, foreign keys.

The rest of a statement may be anything: a rule that asks for an engine must not be unsure of it for a type of column that came later.
So this is not `parse_ddl`, which knows every word of a statement or says that it is not sure.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from protocol.sql.lexer import NotSure, SqlToken, TokenKind
from relay.schema_history.tables.references_clause import ReferencesClause, read_references
from relay.schema_history.tables.source_table import TableName
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.statement_words import StatementWords

# Options that a rule asks for. DATA and INDEX: … DIRECTORY.
_OPTIONS: Final = frozenset(("ROW_FORMAT", "KEY_BLOCK_SIZE", "UNION", "DATA", "INDEX"))
_SELECTS: Final = frozenset(("SELECT", "WITH", "VALUES", "TABLE"))


class DefinedForeignKey(NamedTuple):
    """name: "" where the statement gives none."""

    name: str
    references: ReferencesClause


class OptionAt(NamedTuple):
    """An option of a table: [start, stop) with its words; its value, or the bracket that opens it. is_type: TYPE, for ENGINE."""

    start: int
    value: SqlToken
    is_type: bool = False

    @property
    def stop(self) -> int:
        """Behind its value."""
        return self.value.stop


@dataclass
class TableDefinition:
    """`verb`: CREATE or ALTER. `engine`: as the statement names it for the table, "" where it does not.

    engines: each place that names one, partitions included. foreign_keys: that it defines by FOREIGN KEY; inline: by REFERENCES
    behind a column, which servers before 9.0 read and forget. dropped_keys: names of constraints that it takes away. ignores: ALTER
    IGNORE. numbered: it makes a column with AUTO_INCREMENT.
    """

    verb: str
    name: TableName
    temporary: bool = False
    if_not_exists: bool = False
    like: TableName | None = None
    rename: TableName | None = None
    engine: str = ""
    engines: list[OptionAt] = field(default_factory=list)
    options: dict[str, OptionAt] = field(default_factory=dict)
    partitioned: bool = False
    selects: bool = False
    foreign_keys: list[DefinedForeignKey] = field(default_factory=list)
    inline: list[DefinedForeignKey] = field(default_factory=list)
    dropped_keys: list[str] = field(default_factory=list)
    ignores: bool = False
    numbered: bool = False

    @property
    def has_foreign_keys(self) -> bool:
        """Whether it defines some by FOREIGN KEY."""
        return bool(self.foreign_keys)

    @property
    def numbers_rows(self) -> bool:
        """Whether rows that are there get numbers."""
        return self.verb == "ALTER" and self.numbered


def read_table_definition(query: LoggedQuery) -> TableDefinition | None:
    """What the statement says; None: it is no CREATE or ALTER TABLE. Raises: NotSure."""
    words = StatementWords(query)
    if words.accept("CREATE"):
        words.accept("OR", "REPLACE")
        temporary = words.accept("TEMPORARY")
        if not words.accept("TABLE"):
            return None
        exists = words.accept("IF", "NOT", "EXISTS")
        made = TableDefinition("CREATE", words.table_name(), temporary, exists)
        _create(words, made)
        return made
    if words.accept("ALTER"):
        words.accept_any("ONLINE", "OFFLINE")
        ignores = words.accept("IGNORE")
        if not words.accept("TABLE"):
            return None
        words.accept("IF", "EXISTS")
        made = TableDefinition("ALTER", words.table_name(), ignores=ignores)
        _alter(words, made)
        return made
    return None


def _create(words: StatementWords, made: TableDefinition) -> None:
    if words.accept("LIKE") or (words.word() == "(" and words.word(1) == "LIKE"):
        words.accept("(", "LIKE")
        made.like = words.table_name()
        return
    if words.word() == "(" and words.word(1) not in _SELECTS and words.word(1) != "(":
        _elements(words, made)
    while not words.ended:
        word = words.word()
        if word in _SELECTS:
            made.selects = True
            return
        if word == "(":
            if words.word(1) in _SELECTS or words.word(1) == "(":
                made.selects = True
                return
            words.skip_brackets()
        elif word == "PARTITION" and words.word(1) == "BY":
            made.partitioned = True
            _partitions(words, made, stop_at_select=True)
        elif not _option(words, made, alone=True):
            _other(words)


def _alter(words: StatementWords, made: TableDefinition) -> None:
    begins = True
    while not words.ended:
        word = words.word()
        if begins and word == "RENAME" and words.word(1) not in ("COLUMN", "INDEX", "KEY"):
            words.take()
            words.accept_any("TO", "AS", "=")
            made.rename = words.table_name()
        elif begins and word == "ADD" and words.word(1) != "PARTITION":
            words.take()
            words.accept("COLUMN")
            words.accept("IF", "NOT", "EXISTS")
            if words.word() == "(":
                _elements(words, made)
            else:
                _element(words, made)
        elif (
            begins and word == "DROP" and (words.accept("DROP", "FOREIGN", "KEY") or words.accept("DROP", "CONSTRAINT"))
        ):
            words.accept("IF", "EXISTS")
            made.dropped_keys.append(words.name())
        elif word == "REFERENCES":
            made.inline.append(_reference(words, "", made))  # behind a column that is changed
        elif word == "PARTITION" and words.word(1) == "BY":
            made.partitioned = True
            _partitions(words, made, stop_at_select=False)
        elif begins and word in ("ADD", "REORGANIZE") and words.word(1) == "PARTITION":
            _partitions(words, made, stop_at_select=False)
        elif word == ",":
            words.take()
            begins = True
            continue
        elif word == "(":
            words.skip_brackets()
        elif _option(words, made, alone=begins):
            begins = True  # options may stand side by side without a comma
            continue
        else:
            begins = _other(words)
            continue
        begins = False


def _other(words: StatementWords) -> bool:
    """A word that no rule asks for; whether it is an option with its value behind an equals sign."""
    words.take()
    if not words.accept("="):
        return False
    words.take()
    return True


def _option(words: StatementWords, made: TableDefinition, *, alone: bool) -> bool:
    """An option of the table that a rule asks for. `alone`: it may stand without an equals sign here."""
    word, start = words.word(), words.peek().start
    if word in ("ENGINE", "TYPE") and words.peek().kind is TokenKind.WORD:
        if words.word(1) != "=" and not (
            alone and words.peek(1).kind in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)
        ):
            return False
        words.take()
        words.accept("=")
        value = words.take()
        if value.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING):
            raise NotSure(f"the engine {value.text}")
        made.engine = words.query.name(value)
        made.engines.append(OptionAt(start, value, word == "TYPE"))
        return True
    if word in _OPTIONS and (alone or words.word(1) == "="):
        if word in ("DATA", "INDEX") and words.word(1) != "DIRECTORY":
            return False
        words.take()
        words.accept("DIRECTORY")
        words.accept("=")
        if words.word() == "(":
            opened = words.peek()
            words.skip_brackets()
            made.options[word] = OptionAt(start, opened)
        else:
            made.options[word] = OptionAt(start, words.take())
        return True
    return False


def _partitions(words: StatementWords, made: TableDefinition, *, stop_at_select: bool) -> None:
    """The rest of a statement that is about partitions: engines may stand anywhere in it."""
    depth = 0
    while not words.ended:
        word, start = words.word(), words.peek().start
        if stop_at_select and (word in ("SELECT", "WITH") or (word == "AS" and not depth)):
            return
        if not depth and word == "," and not stop_at_select:
            return
        words.take()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "ENGINE":
            words.accept("=")
            made.engines.append(OptionAt(start, words.take()))


def _elements(words: StatementWords, made: TableDefinition) -> None:
    """Columns and keys in brackets."""
    words.expect("(")
    _element(words, made)
    while not words.accept(")"):
        words.expect(",")
        _element(words, made)


def _element(words: StatementWords, made: TableDefinition) -> None:
    """A column or a key, up to the comma or the bracket behind it, or to PARTITION BY behind the last action of ALTER TABLE."""
    name, is_key = "", False
    first = words.at
    if words.word() in ("CONSTRAINT", "FOREIGN"):
        if words.accept("CONSTRAINT") and not _begins_constraint(words):
            name = words.name()
        is_key = words.accept("FOREIGN", "KEY")
        if is_key and words.word() != "(":
            words.accept("IF", "NOT", "EXISTS")
            if words.word() != "(":
                words.name()  # of the index
    while not words.ended and words.word() not in (",", ")"):
        if words.word() == "PARTITION" and words.word(1) == "BY":
            return
        if words.word() == "(":
            words.skip_brackets()
        elif words.word() == "REFERENCES":
            (made.foreign_keys if is_key else made.inline).append(_reference(words, name, made))
        else:
            made.numbered = made.numbered or (words.at > first and words.word() in ("AUTO_INCREMENT", "SERIAL"))
            words.take()


def _begins_constraint(words: StatementWords) -> bool:
    """Whether what stands behind CONSTRAINT is no name."""
    return words.word() in ("FOREIGN", "PRIMARY", "UNIQUE", "CHECK") and words.peek().kind is TokenKind.WORD


def _reference(words: StatementWords, name: str, made: TableDefinition) -> DefinedForeignKey:
    return DefinedForeignKey(name, read_references(words, made.name[0]))
