"""A statement of MariaDB as MySQL understands it: one text, several, none, or a stop with its reason."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.edits import edited
from protocol.sql.kind import Purpose, kind_of
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ORACLE
from protocol.sql.statements.named_tables import defined_tables, written_tables
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import CreateTable, Statement
from protocol.sql.tables.server_dialect import DefaultCollations
from protocol.sql.tables.source_table import Table, TableName
from protocol.sql.tables.table_elements import if_exists, if_not_exists
from relay.schema_history.logged_definition import default_collations
from relay.source_tables.programs import TRIGGER, VIEW, KnownProgram, ProgramName
from relay.view.rules.mariadb.changes.changed_rows import check_changes, table_difference
from relay.view.rules.mariadb.changes.computed_values import computed_item
from relay.view.rules.mariadb.changes.named_words import named_words
from relay.view.rules.mariadb.statement import object_statements
from relay.view.rules.mariadb.statement.alter_rewriting import AlterTableRewriting
from relay.view.rules.mariadb.statement.create_rewriting import CreateTableRewriting
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.executable_comments import opened_text
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.refused.written_statement import written_for_mariadb
from relay.view.rules.statement.account_tables import is_service_table, is_system_table
from relay.view.stops import definition_stops, statement_stops

ACCOUNT: Final = "account"
SEQUENCE: Final = "sequence"
NOTHING: Final = "nothing"
_DML: Final = frozenset(
    ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "DO", "SELECT", "(", "VALUES", "IMPORT")
)
_MAINTENANCE: Final = frozenset(("ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "CACHE"))
_TARGET_VERSION: Final = "{}.{}.0"


@dataclass(frozen=True)
class StatementTranslation:
    """`texts` are run in place of the statement, each but the last one committing by itself; none: an empty transaction.

    `left_out` says why there is none: "account", "sequence", "nothing" (it did nothing at the source), else "". `reports` lists what
    was left out of a definition. `source` is the definition as the source understood it, None where it defines no tables or is not
    known. `replica` is the same for each of `texts`, as the target understands it. `versioned` are tables that it makes with system
    versioning. `programs` are views, triggers and routines that it makes.
    """

    texts: tuple[bytes, ...]
    left_out: str = ""
    reports: tuple[str, ...] = ()
    source: Statement | None = None
    replica: tuple[Statement | None, ...] = ()
    sequences_made: tuple[TableName, ...] = ()
    sequences_dropped: tuple[TableName, ...] = ()
    versioned: tuple[TableName, ...] = ()
    programs: tuple[KnownProgram, ...] = ()
    programs_dropped: tuple[ProgramName, ...] = ()


def translate_statement(text: bytes, context: StatementContext, known: TablesAtSource) -> StatementTranslation:
    """Translate the text of a Query or Execute_load_query event. A text that needs no change is returned byte for byte.
    Raises: Untranslatable."""
    is_control = kind_of(text, context.server_version).purpose is Purpose.CONTROL
    if is_control and b"/*!" not in text and b"/*M!" not in text:  # MySQL may not read what is in such a comment
        return StatementTranslation((text,))
    query = context.query(text)
    try:
        opened = opened_text(query)
        words = EditableStatement(context.query(opened.raw), context)
        return _Translation(text, opened.raw, opened.differs, words, known).made()
    except UnsupportedSyntax as error:
        raise statement_stops.not_parsed(context.query(text), str(error)) from error


class _Translation:
    def __init__(
        self, text: bytes, opened: bytes, differs: bool, words: EditableStatement, known: TablesAtSource
    ) -> None:
        self._text = text
        self._opened = opened
        self._differs = differs
        self._words = words
        self._known = known
        self._first: list[bytes] = []
        self._left_out = ""
        self._made: list[TableName] = []
        self._dropped: list[TableName] = []
        self._versioned: list[TableName] = []
        self._programs: list[KnownProgram] = []
        self._programs_dropped: list[ProgramName] = []
        self._defines = False

    def made(self) -> StatementTranslation:
        """Return the translation. Raises: UnsupportedSyntax, Untranslatable."""
        self._statement()
        words = self._words
        texts: tuple[bytes, ...] = ()
        if not self._left_out:
            last = self._text
            if words.is_changed or self._differs:
                last = edited(self._opened, words.edits)
            texts = (*self._first, self._taken(last))
        return StatementTranslation(
            texts,
            self._left_out,
            tuple(words.reports),
            self._at_source() if self._defines else None,
            tuple(self._parsed(text, _TARGET_VERSION.format(*words.context.target)) for text in texts)
            if self._defines
            else (),
            tuple(self._made),
            tuple(self._dropped),
            tuple(self._versioned),
            tuple(self._programs),
            tuple(self._programs_dropped),
        )

    def _taken(self, text: bytes) -> bytes:
        """Return the text as the target takes it. Raises: Untranslatable."""
        context = self._words.context
        query = replace(context.query(text), server_version=_TARGET_VERSION.format(*context.target))
        return written_for_mariadb(query, context.target, context.accept, self._known)

    def _at_source(self) -> Statement | None:
        """Return the definition as the source understood it."""
        context = self._words.context
        return self._parsed(self._opened, context.server_version, default_collations(context.defaults))

    def _parsed(self, raw: bytes, server_version: str, collations: DefaultCollations = ()) -> Statement | None:
        context = self._words.context
        try:
            text = replace(context.query(raw), server_version=server_version).text
            mode = context.sql_mode & (ANSI_QUOTES | NO_BACKSLASH_ESCAPES | 1)
            return parse_ddl(text, context.schema.decode("utf-8", "backslashreplace"), mode, server_version, collations)
        except UnsupportedSyntax:
            return None

    def _statement(self) -> None:
        words = self._words
        if words.word() == "SET" and words.word(1) == "STATEMENT":
            self._prefix()
        if not self._is_of_service():
            self._check_system_tables()
        word = words.word()
        if self._is_of_service():
            self._left_out = NOTHING
        elif word == "CREATE":
            self._create()
        elif word == "ALTER":
            self._alter()
        elif word == "DROP":
            self._drop()
        elif word == "RENAME":
            self._rename()
        elif word in ("GRANT", "REVOKE"):
            self._left_out = ACCOUNT
        elif word == "SET":
            self._set()
        elif word == "TRUNCATE":
            words.take()
            self._defines = False
            object_statements.truncate(words)
        elif word in _DML:
            self._dml()
        elif word in _MAINTENANCE:
            self._maintenance()
        elif word == "FLUSH":
            if words.word(1) not in ("TABLES", "TABLE", "PRIVILEGES", "LOCAL", "NO_WRITE_TO_BINLOG"):
                self._left_out = NOTHING
        elif word in ("INSTALL", "UNINSTALL"):
            raise statement_stops.syntax_unknown(
                words.context.target_title, words.query, "MariaDB's plugins", ErrorCode.ER_CANT_OPEN_LIBRARY
            )
        elif words.ended:
            return
        else:
            raise UnsupportedSyntax(f"{words.peek().text} begins no statement that is known")

    def _prefix(self) -> None:
        """Remove SET STATEMENT variable = value FOR: the event contains the variables of the statement."""
        words, depth = self._words, 0
        while words.word() != "FOR" or depth:
            depth += {"(": 1, ")": -1}.get(words.take().upper, 0)
        words.take()
        words.cut_before(words.at)

    def _is_of_service(self) -> bool:
        """Return whether it changes only tables of the service that runs the source, such as the heartbeat of RDS, or defines only
        tables of the server itself."""
        words = self._words
        if b"mysql" not in (words.query.raw[:256] + words.schema.encode()).lower():
            return False
        if words.word() in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
            tables = written_tables(words.query)
            return bool(tables) and all(map(is_service_table, tables))
        if words.word() not in ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"):
            return False
        try:
            defined = defined_tables(words.query)
        except UnsupportedSyntax:
            return False
        return bool(defined) and all(is_service_table(name) or is_system_table(name) for name in defined)

    def _check_system_tables(self) -> None:
        """Stop statements that change rows of MariaDB's own tables: MySQL's have other columns."""
        words = self._words
        if words.word() not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
            return
        for index in range(words.at, min(words.at + 8, words.end)):
            token = words.tokens[index]
            if token.text.lower() == "mysql" and words.at_word(index + 1) == ".":
                raise statement_stops.statement_differs(
                    words.context.target_title, words.query, "tables of the schema mysql"
                )
            if words.at_word(index) in ("SELECT", "SET", "VALUES", "WHERE"):
                break
        if words.schema.lower() == "mysql" and not any(token.upper == "." for token in words.tokens[:12]):
            raise statement_stops.statement_differs(
                words.context.target_title, words.query, "tables of the schema mysql"
            )

    # ---- CREATE ----

    def _create(self) -> None:
        words = self._words
        words.take()
        at = words.at
        replaces = words.accept("OR", "REPLACE")
        word = words.word()
        if word in ("USER", "ROLE"):
            self._left_out = ACCOUNT
            return
        temporary = words.accept("TEMPORARY")
        if words.accept("TABLE"):
            self._create_table((at, at + 2) if replaces else None, temporary)
        elif words.accept("SEQUENCE"):
            if_not_exists(words)
            self._made.append(words.table_name())
            self._left_out = SEQUENCE
        elif words.accept("DATABASE") or words.accept("SCHEMA"):
            self._defines = True
            if_not_exists(words)
            start = words.at
            words.name()
            self._replaces((at, at + 2) if replaces else None, b"DATABASE", start)
            object_statements.database(words)
        elif word in ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE"):
            self._defines = True
            if replaces:
                self._replaced_index(at)
            if not object_statements.create_index(words, self._known):
                self._nothing()
        elif word == "SERVER":
            raise UnsupportedSyntax("servers for federated tables")
        else:
            self._create_program((at, at + 2) if replaces else None)

    def _create_program(self, replaces: tuple[int, int] | None) -> None:
        words = self._words
        kind = object_statements.skip_to_program(words)
        if not kind:
            raise UnsupportedSyntax(f"CREATE {words.peek().text}")
        start = words.at + 1
        if replaces is not None and kind != "VIEW":
            stop = start + 1
            while words.at_word(stop) == ".":
                stop += 2
            self._first.append(b"DROP %s IF EXISTS " % kind.encode() + self._quoted(start, stop))
            words.cut(*replaces)
        self._note_program(kind, start)
        object_statements.program(words, kind)

    def _note_program(self, kind: str, start: int) -> None:
        """Note what a new program names, for statements that run it. `start` is the index after its kind."""
        words = self._words
        if kind not in (VIEW, TRIGGER, "FUNCTION", "PROCEDURE"):
            return
        at = words.at
        words.at = start
        exists = if_not_exists(words)
        schema, name = words.table_name()
        table, event, timing = None, "", ""
        if kind == TRIGGER:
            timing = words.word()
            while words.at < words.end and words.word() != "ON":
                event = words.take().upper
            words.expect("ON")
            table = words.table_name()
            if words.at_word(words.at) == ".":
                raise UnsupportedSyntax("the table of a trigger")
        body = words.at
        words.at = at
        named = named_words(words, body, words.end, schema, is_program=True, is_view=kind == VIEW)
        if exists is None or not any(one.name[0] == kind for one in self._known.programs_of((schema, name))):
            # MariaDB's triggers for several events: INSERT OR UPDATE
            several = kind == TRIGGER and "OR" in {words.at_word(index) for index in range(start, body)}
            text = words.query.text[words.tokens[body].start :] if kind != VIEW else ""
            made = KnownProgram((kind, schema, name), named, table, "" if several else event, text, timing=timing)
            self._programs.append(made._replace(sql_mode=words.context.sql_mode))

    def _replaced_index(self, at: int) -> None:
        """Translate CREATE OR REPLACE INDEX: DROP where it exists."""
        words = self._words
        words.cut(at, at + 2)
        index = next(place for place in range(at, words.end) if words.at_word(place) == "INDEX") + 1
        on = next(place for place in range(index, words.end) if words.at_word(place) == "ON") + 1
        stop = on + 3 if words.at_word(on + 1) == "." else on + 1
        name = words.text_of(words.tokens[stop - 1])
        table = self._known.table((words.text_of(words.tokens[on]) if stop > on + 1 else words.schema, name))
        if table is None:
            raise definition_stops.condition_unknown(words.query, (words.schema, name), "CREATE OR REPLACE INDEX")
        if any(one.lower() == words.text_of(words.tokens[index]).lower() for one, _key in table.keys):
            self._first.append(
                b"DROP INDEX " + words.source_text(index, index + 1) + b" ON " + words.source_text(on, stop)
            )

    def _replaces(self, words_of: tuple[int, int] | None, kind: bytes, start: int) -> None:
        """Replace OR REPLACE by a DROP before; the name is the words from `start` up to here."""
        if words_of is None:
            return
        words = self._words
        self._first.append(b"DROP %s IF EXISTS " % kind + self._quoted(start, words.at))
        words.cut(*words_of)

    def _quoted(self, start: int, stop: int) -> bytes:
        """Return a name of one or two parts with all its parts quoted, except those that are already."""
        made = []
        for index in range(start, stop):
            raw = self._words.source_text(index, index + 1)
            made.append(b"`" + raw + b"`" if self._words.tokens[index].kind is TokenKind.WORD else raw)
        return b"".join(made)

    def _create_table(self, replaces: tuple[int, int] | None, temporary: bool) -> None:
        words = self._words
        self._defines = not temporary
        self._check_grammar()
        if_not_exists(words)
        start = words.at
        name = words.table_name()
        self._replaces(replaces, b"TEMPORARY TABLE" if temporary else b"TABLE", start)
        rewriting = CreateTableRewriting(words, name, self._known, temporary=temporary)
        rewriting.read()
        if rewriting.sequence:
            self._made.append(name)
            self._left_out = SEQUENCE
        if rewriting.versioned:
            self._versioned.append(name)
        self._check_filled(start, name, temporary=temporary)

    def _check_filled(self, start: int, name: TableName, *, temporary: bool) -> None:
        """Check a table that replicas fill by a query, and one dropped before it is known, as any statement that changes rows."""
        words = self._words
        query = next((index for index in range(start, words.end) if self._begins_query(index)), None)
        if query is not None and not words.context.rows_follow:
            named = named_words(words, query, words.end, words.schema)
            check_changes(words, named, self._known)
            computed = computed_item(words, query, words.end) or self._view_in(named.tables)
            if computed:
                what = f"the type of a column from a query ({computed})"
                raise statement_stops.statement_differs(words.context.target_title, words.query, what)
        if not temporary:
            return
        made = self._at_source()
        if not isinstance(made, CreateTable):
            return
        like = self._known.table(made.like) if made.like is not None else None
        columns = like.columns if like is not None else [one.column for one in made.columns]
        keys = like.keys if like is not None else ()
        difference = table_difference(Table(*name, columns=tuple(columns), keys=tuple(keys)))
        if difference:
            what = f"the temporary table {name[1]}, {difference}"
            raise statement_stops.statement_differs(words.context.target_title, words.query, what)

    def _view_in(self, tables: Iterable[TableName]) -> str:
        """Return one of these that is a view, whose columns may be computed; "": none is known to be."""
        return next(
            (name[1] for name in sorted(tables) for one in self._known.programs_of(name) if one.name[0] == VIEW), ""
        )

    def _begins_query(self, index: int) -> bool:
        word, behind = self._words.at_word(index), self._words.at_word(index + 1)
        is_word = self._words.tokens[index].kind is TokenKind.WORD
        return is_word and (word == "SELECT" or (word == "WITH" and behind not in ("SYSTEM", "PARSER", "CONSISTENT")))

    def _check_grammar(self) -> None:
        if self._words.context.sql_mode & ORACLE:
            raise UnsupportedSyntax("types have other meanings under sql_mode=ORACLE")

    # ---- ALTER ----

    def _alter(self) -> None:
        words = self._words
        words.take()
        at, word = words.at, words.word()
        if word in ("USER", "ROLE"):
            self._left_out = ACCOUNT
            return
        if words.accept("ONLINE") or words.accept("OFFLINE"):
            words.cut(at, words.at)
        if words.accept("IGNORE"):
            raise definition_stops.clause_unknown(words.context.target_title, words.query, "ALTER IGNORE TABLE")
        if words.accept("TABLE"):
            self._alter_table()
        elif words.accept("SEQUENCE"):
            self._left_out = SEQUENCE
        elif words.accept("DATABASE") or words.accept("SCHEMA"):
            self._defines = True
            if words.word() == "UPGRADE" or words.word(1) == "UPGRADE":
                raise UnsupportedSyntax("a database that is upgraded")
            if words.word() not in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT"):
                words.name()
            object_statements.database(words)
            if words.end - words.at == 0 and not self._says_charset():
                self._nothing()
        else:
            kind = object_statements.skip_to_program(words)
            if not kind or kind == "PACKAGE":
                raise UnsupportedSyntax(f"ALTER {words.peek().text}")
            read_expressions(words, words.at + 1, words.end)

    def _says_charset(self) -> bool:
        """Return whether ALTER DATABASE says more than a COMMENT."""
        return any(token.upper in ("CHARSET", "CHARACTER", "COLLATE") for token in self._words.tokens)

    def _alter_table(self) -> None:
        words = self._words
        self._defines = True
        self._check_grammar()
        exists = if_exists(words)
        name = words.table_name()
        if exists is not None:
            words.cut_part(exists)
            there = self._known.exists(name)
            if there is None:
                raise definition_stops.condition_unknown(words.query, name, "ALTER TABLE IF EXISTS")
            if not there:
                self._nothing()
                return
        if self._known.is_sequence(name):
            self._left_out = SEQUENCE
            if words.word() == "RENAME":
                words.take()
                words.accept("TO") or words.accept("AS")
                self._dropped.append(name)
                self._made.append(words.table_name())
            return
        if not AlterTableRewriting(words, name, self._known).read():
            self._nothing()

    def _nothing(self) -> None:
        self._left_out = NOTHING

    # ---- DROP, RENAME ----

    def _drop(self) -> None:
        words = self._words
        words.take()
        word = words.word()
        if word in ("USER", "ROLE"):
            self._left_out = ACCOUNT
            return
        temporary = words.accept("TEMPORARY")
        if words.accept("SEQUENCE"):
            if_exists(words)
            while True:
                self._dropped.append(words.table_name())
                if not words.accept(","):
                    break
            self._left_out = SEQUENCE
        elif words.accept("TABLE") or words.accept("TABLES"):
            self._defines = not temporary
            kept, self._dropped = object_statements.drop_tables(words, self._known, self._text, temporary=temporary)
            if not kept:
                self._left_out = SEQUENCE
        elif word in ("DATABASE", "SCHEMA", "VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"):
            self._defines = word in ("DATABASE", "SCHEMA")
            words.take()
            at = words.at
            if if_exists(words) is None and words.context.drops_if_exists:
                words.before(at, "IF EXISTS ")
            self._drop_named(word)
            words.accept("RESTRICT") or words.accept("CASCADE")
            if not words.ended:
                raise UnsupportedSyntax(f"{words.peek().text} behind what is dropped")
        elif word == "INDEX":
            self._defines = True
            if not object_statements.drop_index(words, self._known):
                self._nothing()
        elif word == "PACKAGE":
            self._nothing()
        else:
            raise UnsupportedSyntax(f"DROP {words.peek().text}")

    def _drop_named(self, kind: str) -> None:
        words = self._words
        while True:
            first = words.name()
            name = (first, words.name()) if words.accept(".") else (words.schema, first)
            if kind in (VIEW, TRIGGER, "PROCEDURE", "FUNCTION"):
                self._programs_dropped.append((kind, *name))
            if not words.accept(","):
                return

    def _rename(self) -> None:
        words = self._words
        words.take()
        if words.word() == "USER":
            self._left_out = ACCOUNT
            return
        if not (words.accept("TABLE") or words.accept("TABLES")):
            raise UnsupportedSyntax(f"RENAME {words.peek().text}")
        self._defines = True
        kept, sequences = object_statements.rename_tables(words, self._known)
        self._dropped += [old for old, _new in sequences]
        self._made += [new for _old, new in sequences]
        if not kept:
            self._left_out = SEQUENCE if sequences else NOTHING

    # ---- other statements ----

    def _set(self) -> None:
        words = self._words
        following = words.word(1)
        if following in ("PASSWORD", "ROLE") or (following == "DEFAULT" and words.word(2) == "ROLE"):
            self._left_out = ACCOUNT
        else:
            raise UnsupportedSyntax("a setting")

    def _maintenance(self) -> None:
        words = self._words
        words.take()
        words.accept("NO_WRITE_TO_BINLOG") or words.accept("LOCAL")
        words.expect("TABLE") if words.word() == "TABLE" else words.expect("TABLES")
        words.table_name()
        while True:
            if words.accept(","):
                words.table_name()
            elif words.word() == "PERSISTENT":
                at = words.at
                words.take()
                words.expect("FOR")
                if not words.accept("ALL"):
                    for kind in ("COLUMNS", "INDEXES"):
                        words.expect(kind)
                        if not words.accept("ALL"):
                            words.skip_brackets()
                words.cut(at, words.at)
            elif words.ended:
                return
            else:
                words.take()

    def _dml(self) -> None:
        words = self._words
        stop = words.end
        if words.word() in ("INSERT", "REPLACE", "DELETE"):
            depth = 0
            for index in range(words.at, words.end):
                depth += {"(": 1, ")": -1}.get(words.at_word(index), 0)
                if (
                    words.at_word(index) == "RETURNING"
                    and not depth
                    and words.at_word(index - 1) not in (".", "@", "AS", ",")
                ):
                    words.cut(index, words.end)
                    stop = index
                    break
        read_expressions(words, words.at, stop)
        check_changes(words, named_words(words, words.at, stop, words.schema), self._known)
