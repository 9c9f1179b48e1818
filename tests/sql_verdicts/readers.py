"""Every reader of a logged statement that there is, and what it answers.

This is the one place that knows the readers' modules. Who replaces a reader changes the inside of its function here, and neither its
name nor what it returns: so the recording judges the new one by the old one's verdicts.
"""

import collections
import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from uuid import UUID

from protocol.binlog.event_type import EventType
from protocol.binlog.query import Query, read_query
from protocol.binlog.status_variables import CHARSETS, SQL_MODE, UTF8MB4_DEFAULT, decode_status, encode_status
from protocol.errors import ProtocolError, StatementRefused
from protocol.sql.control import control_of
from protocol.sql.kind import Purpose, kind_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.statements import named_tables, order_dependence
from protocol.sql.statements.statement_head import statement_head
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import (
    AlterTable,
    CreateTable,
    DropTables,
    RenameTables,
    Statement,
    TableDefinition,
    TableOption,
)
from protocol.sql.tables.source_table import Column, Table, TableName, whole_key
from protocol.statements import SourceFacts
from protocol.statements.expression.tokens import tokenize
from relay.audit.readiness.checks import found_in
from relay.audit.readiness.logged_statement import LoggedStatement
from relay.export.table_choice import TableChoice
from relay.feed import xa_commits
from relay.feed.statements.logged_changes import logged_changes
from relay.feed.statements.replacing_statement import rows_effect
from relay.schema_history.logged_definition import LoggedDefinition, logged_definition
from relay.source_tables.applied_definition import note_table
from relay.source_tables.programs import KnownProgram
from relay.source_tables.references import References
from relay.source_tables.table_book import SourceTables
from relay.view.rules.definition_rules import define
from relay.view.rules.group_parts import control_part
from relay.view.rules.mariadb.changes.named_words import named_words
from relay.view.rules.mariadb.rows import replaced_rows
from relay.view.rules.mariadb.rows.learned_tables import ToldDefinition, learn_definition
from relay.view.rules.mariadb.rows.mariadb_tables import MariadbTables
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.executable_comments import opened_text
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.rules.mariadb.statement_translation import translate_statement
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.check_clauses import without_checks
from relay.view.rules.statement.commented_keys import has_commented_keys
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.match_clauses import forgets_actions, has_actions_behind_match, without_actions
from relay.view.rules.statement.reference_clauses import without_references
from relay.view.rules.statement.routine_body import read_routine_body
from relay.view.rules.tables.definitions_learned import learn
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.rules.targets.known.collation_map import CollationMap
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.statement import statement_kind
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.rules.targets.target_query import TargetQuery
from relay.view.stops.stop_reason import Untranslatable
from tests.sql_verdicts.setting import SERVERS, Setting, modes_of, tells_servers_apart
from tests.support.event_stream import query_body, raw_event
from tests.support.kernel_builds import imported_kernel, uncompiled_kernel
from tests.support.mariadb_statements import FewCollations

SCHEMA: Final = "shop"
HISTORY: Final = b"\x1e"
"""Between the statements of a history, which is kept as one statement."""
_UTF8MB4: Final = 45
Read = Callable[[bytes, Setting], Any]
_RECORDED_NAMES: Final = {
    "unknown_table_definition": "statement_over_unknown_table",
    "statement_failed_partway": "failed_half_way",
    "replace_in_parent_table": "replace_of_parent",
    "incomplete_cascade": "cascade_unfinished",
    "multi_table_delete": "delete_of_several",
    "multi_table_update": "update_of_several",
    "statement_not_parsed": "statement_not_readable",
    "definition_not_parsed": "definition_not_understood",
}
"""The names that stops had when the recording was made."""


def _stop(error: Untranslatable) -> dict[str, Any]:
    reason = error.reason
    return {"stop": _RECORDED_NAMES.get(reason.name, reason.name), "error": reason.error}


class Servers(Enum):
    """Whether a reader's verdict hangs on the server that logged a statement: not; by what comments hold for servers; in any way."""

    NO = "no"
    TOKENS = "tokens"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Reader:
    """`answers`: what its verdict is, for people. `servers`: beginnings of the servers' names whose statements it reads."""

    name: str
    answers: str
    read: Read
    servers: tuple[str, ...]
    by_mode: bool
    by_server: Servers
    of_histories: bool = False

    def reads(self, statement: bytes) -> bool:
        """Whether it is for this reader: statements in a row are for those of histories alone."""
        return (HISTORY in statement) is self.of_histories

    def settings(self, statement: bytes) -> Iterator[Setting]:
        """Under what it reads the statement: all that its verdict may hang on."""
        servers = [one for one in SERVERS if one.startswith(self.servers)]
        if self.by_server is Servers.NO or (self.by_server is Servers.TOKENS and not tells_servers_apart(statement)):
            servers = servers[-1:]
        for server in servers:
            for mode in modes_of(statement) if self.by_mode else ("",):
                yield Setting(server, mode)

    def verdict(self, statement: bytes, setting: Setting) -> Any:
        """What it says; {"stop": why} where it says by one of its own errors that it cannot tell. An error that is none of these is a
        verdict, too: {"raises": its class}."""
        try:
            return self.read(statement, setting)
        except Untranslatable as error:
            return _stop(error)
        except UnsupportedSyntax:
            return {"stop": "not sure"}
        except StatementRefused as error:
            return {"stop": error.number}
        except (ProtocolError, UnicodeError):
            return {"stop": "not text"}
        except RecursionError:
            raise
        except Exception as error:  # the adapter records what today's code does, whatever that is
            return {"raises": type(error).__name__}


READERS: Final[dict[str, Reader]] = {}


def reader(
    name: str,
    answers: str,
    *servers: str,
    by_mode: bool = True,
    by_server: Servers = Servers.ALL,
    of_histories: bool = False,
) -> Callable[[Read], Read]:
    """The function is this reader. by_mode: whether it asks for sql_mode."""

    def listed(read: Read) -> Read:
        READERS[name] = Reader(name, answers, read, servers or ("mysql", "mariadb"), by_mode, by_server, of_histories)
        return read

    return listed


# ---- how a statement comes to a reader -----------------------------------------------------------------------------------


def _text(statement: bytes) -> str:
    return statement.decode("utf-8", "backslashreplace")


@functools.lru_cache(maxsize=64)
def _query(statement: bytes, setting: Setting) -> LoggedQuery:
    status = bytes(5) + b"\1" + setting.sql_mode.to_bytes(8, "little") + b"\4" + _UTF8MB4.to_bytes(2, "little") * 3
    return LoggedQuery(b"", statement, 7, 0, SCHEMA.encode(), status, setting.version)


def _context(setting: Setting) -> StatementContext:
    collations = FewCollations(setting.server == "mariadb118")
    return StatementContext(SCHEMA.encode(), setting.sql_mode, _UTF8MB4, setting.version, (9, 7), collations)


def _number(version: str) -> int:
    major, minor, patch = version_numbers(version)
    return major * 10_000 + minor * 100 + patch


@functools.lru_cache(maxsize=16)
def _source_statement(statement: bytes, setting: Setting, target: str) -> SourceStatement:
    return SourceStatement(statement, _UTF8MB4, setting.sql_mode, _number(setting.version), TARGETS_BY_NAME[target])


def _usual_table(name: TableName) -> Table:
    """What is said to be there, whatever table a statement is about."""
    columns = (
        Column("id", "int(10) unsigned", nullable=False, extra="auto_increment"),
        *(Column(one, "int(11)") for one in ("a", "b", "c", "d", "e", "f", "g", "n", "r1", "r2")),
        *(Column(one, "varchar(100)", "latin1", "latin1_swedish_ci") for one in ("name", "s", "t", "v", "x", "y")),
    )
    keys = (("PRIMARY", whole_key(("id",), True)), ("k", whole_key(("a",))), ("i1", whole_key(("b",))))
    return Table(*name, "InnoDB", columns, keys, "latin1", (), "latin1_swedish_ci")


class _EveryTable(TablesAtSource):
    """A source that has every table that is asked for, with the usual columns."""

    def table(self, name: TableName) -> Table | None:
        return _usual_table(name)

    def exists(self, name: TableName) -> bool | None:
        return True

    @property
    def references(self) -> References:
        return References({})


# ---- lexers ----------------------------------------------------------------------------------------------------------------


@reader("tokens: definitions", "kind, text and place of each token of `sql_tokens`", by_server=Servers.TOKENS)
def _ddl_tokens(statement: bytes, setting: Setting) -> Any:
    return [(token.kind.name, token.text, token.start, token.stop) for token in _query(statement, setting).tokens]


@reader("tokens: clients", "kind, text and place of each token of `tokenize`", by_mode=False, by_server=Servers.TOKENS)
def _client_tokens(statement: bytes, setting: Setting) -> Any:
    facts = SourceFacts("mariadb" if setting.is_mariadb else "mysql", setting.version, 1)
    return [(token.kind.name, token.text, token.start, token.stop) for token in tokenize(_text(statement), facts)]


@reader("tokens: names", "words outside of brackets, by `defined_names`", by_server=Servers.NO)
def _names(statement: bytes, setting: Setting) -> Any:
    return defined_names(statement, setting.sql_mode)


@reader("comments: MariaDB", "the text with comments for servers opened, and whether MySQL reads another", "mariadb")
def _comments(statement: bytes, setting: Setting) -> Any:
    return opened_text(_context(setting).query(statement))


@reader("digest", "the digest text by the kernel", by_server=Servers.NO)
def _digest(statement: bytes, setting: Setting) -> Any:
    quotes, plain = "ansi" in setting.mode, "plain" in setting.mode
    return imported_kernel().digest.StatementDigest().of(statement, quotes, plain)


# ---- kinds of statements ----------------------------------------------------------------------------------------------------


@reader(
    "kind: kernel",
    "what it does to a group, whether it defines, changes rows, removes, and the table that it changes",
    by_mode=False,
    by_server=Servers.NO,
)
def _kernel_kind(statement: bytes, setting: Setting) -> Any:
    build, size = uncompiled_kernel(), len(statement)
    plain = build.view_copy.__dict__
    return {
        "kind": build.inference.kind_of_text(statement, 0, size),
        "defines": build.inference.defines(statement, 0, size),
        "rows": build.digest.changes_rows(statement, 0, size),
        "change": plain["is_change"](statement, build.inference.first_word(statement, 0, size, False), size),
        "removal": plain["removal_of"](statement, 0, size),
        "target": plain["simple_target"](statement, 0, size),
    }


@reader(
    "kind: control",
    "BEGIN, COMMIT, SAVEPOINT, XA …, with a name, by views, views of MariaDB and the export",
    by_mode=False,
    by_server=Servers.NO,
)
def _control(statement: bytes, setting: Setting) -> Any:
    kind, name = control_part(_query(statement, setting))
    found = control_of(statement, setting.version)
    is_xa = found is not None and found.control.name.startswith("XA_")
    xa = (found.control.name[3:].lower().encode(), found.name) if found is not None and is_xa else None
    return kind, name, found is not None and not is_xa, xa


@reader("kind: older targets", "control, account, definition, CREATE … SELECT by `statement_kind`", "mysql")
def _target_kind(statement: bytes, setting: Setting) -> Any:
    made = _source_statement(statement, setting, "mysql-5.6")
    return {
        "control": kind_of(statement, setting.version).purpose is Purpose.CONTROL,
        "account": kind_of(statement, setting.version).purpose is Purpose.ACCOUNTS,
        "plain": statement_kind.is_plain_definition(made),
        "selects": statement_kind.selects_into_new_table(made),
        "start": _start_transaction_at(made),
        "columns": statement_kind.selects_defined_columns(made),
        "counts": statement_kind.only_counts(made),
    }


def _start_transaction_at(made: SourceStatement) -> int | None:
    """The word that it begins with."""
    option = made.definition.written.option("START TRANSACTION") if made.definition is not None else None
    return None if option is None else made.index_at(option.start)


@reader("kind: accounts", "whether it is about accounts, and SET PASSWORD", by_mode=False, by_server=Servers.NO)
def _accounts(statement: bytes, setting: Setting) -> Any:
    kind = kind_of(statement, setting.version)
    return kind.purpose is Purpose.ACCOUNTS, kind.thing == "PASSWORD"


@reader(
    "kind: first word",
    "the first word and whether it defines or changes rows, by four readers of it",
    by_server=Servers.TOKENS,
)
def _first_word(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    logged = LoggedStatement(_text(statement), SCHEMA, setting.sql_mode)
    return {
        "view": query.kind.verb,
        "view defines": query.kind.may_commit,
        "archive defines": kind_of(statement).may_define,
        "mariadb dml": query.kind.purpose in (Purpose.ROWS, Purpose.UNSURE),
        "readiness": (logged.verb, logged.object_kind, logged.changes_rows),
    }


@reader(
    "kind: in passing",
    "what is asked of a text by a pattern of its own: XA of the feed, REPLACE, new databases, temporary tables",
    by_mode=False,
    by_server=Servers.NO,
)
def _in_passing(statement: bytes, setting: Setting) -> Any:
    control, name = xa_commits._ends(_text(statement))
    kind = kind_of(statement, setting.version)
    return {
        "xa": ("" if control is None else control.name[3:], name),
        "replaces": replaced_rows.may_replace(statement, setting.version),
        "makes database": (kind.verb, kind.thing) == ("CREATE", "DATABASE"),
        "drops temporary": kind.verb == "DROP" and kind.temporary,
        "alters": kind.verb == "ALTER",
        "control of MariaDB": kind.purpose is Purpose.CONTROL,
    }


@reader(
    "archive: definition", "what the schema file keeps of it, by `logged_definition`; None: nothing that has columns"
)
def _archived(statement: bytes, setting: Setting) -> Any:
    status = b"\1" + setting.sql_mode.to_bytes(8, "little") + b"\4" + _UTF8MB4.to_bytes(2, "little") * 2 + b"\x08\0"
    event = raw_event(EventType.QUERY, query_body(statement, SCHEMA.encode(), status), checksum=False)
    made = logged_definition(event, 13, False, setting.version)
    return None if made is None else (made.names, made.facts, made.may_rename)


# ---- tables ------------------------------------------------------------------------------------------------------------------


def _each(**asked: Callable[[], Any]) -> dict[str, Any]:
    """Each answer, or that it is not sure."""
    found: dict[str, Any] = {}
    for name, ask in asked.items():
        found[name] = "not sure"
        with contextlib.suppress(UnsupportedSyntax):
            found[name] = ask()
    return found


@reader("tables: views", "tables that it writes, reads, may change; routines that it calls", by_server=Servers.TOKENS)
def _tables(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    return _each(
        simple=lambda: named_tables.is_simple(query),
        writes=lambda: named_tables.written_tables(query),
        perhaps=lambda: named_tables.perhaps_written_tables(query),
        several=lambda: named_tables.may_write_several(query),
        named=lambda: named_tables.statement_tables(query),
        reads=lambda: named_tables.read_tables(query),
        calls=lambda: named_tables.called_routines(query),
        aliases=lambda: named_tables.tables_by_alias(query),
        one=lambda: named_tables.deletes_from_one(query),
    )


@reader(
    "tables: MariaDB",
    "what it names as far as replicas may differ by it, by `named_words`",
    "mariadb",
    by_server=Servers.TOKENS,
)
def _mariadb_tables(statement: bytes, setting: Setting) -> Any:
    words = EditableStatement(_query(statement, setting), _context(setting))
    return named_words(words, 0, len(words.tokens) - 1, SCHEMA)


@reader(
    "tables: export",
    "whether it is about shop.t, shop.* or crm.*; what became of rows by it, for the feed",
    by_mode=False,
    by_server=Servers.NO,
)
def _export(statement: bytes, setting: Setting) -> Any:
    return {
        **{
            one: TableChoice.from_texts((one,)).is_about(SCHEMA, statement, 0, setting.version)
            for one in ("shop.t", "shop.*", "crm.*")
        },
        "replaces": rows_effect(_text(statement), (SCHEMA, "t"), alone=True),
    }


@reader(
    "tables: audits",
    "the head by which Spark's columns have the table changed, defined, named, the kind, the engine",
    by_mode=False,
    by_server=Servers.NO,
)
def _audits(statement: bytes, setting: Setting) -> Any:
    return statement_head(_text(statement))


@reader(
    "order of rows",
    "whether its outcome hangs on the order of rows, and what it is about then",
    by_server=Servers.TOKENS,
)
def _order(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    return _each(
        may=lambda: order_dependence.may_depend_on_order(query),
        verb=lambda: order_dependence.verb_of(query),
        searches=lambda: order_dependence.searches_text(query),
        counts=lambda: order_dependence.order_counts(query, makes_numbers=False),
        numbered=lambda: order_dependence.order_counts(query, makes_numbers=True),
        values=lambda: order_dependence.values_of_update(query),
        program=lambda: order_dependence.program_hangs_on_order(query.tokens),
    )


@reader(
    "routine body", "what the whole statement, taken for a routine's body, changes and calls", by_server=Servers.TOKENS
)
def _body(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    return read_routine_body(query, query.tokens, SCHEMA)


# ---- definitions -------------------------------------------------------------------------------------------------------------


def _parsed(statement: bytes, setting: Setting) -> Statement:
    return parse_ddl(_text(statement), SCHEMA, setting.sql_mode, setting.version)


@reader("definition: whole", "what a definition says, by `parse_ddl`")
def _definition(statement: bytes, setting: Setting) -> Any:
    made = _parsed(statement, setting)
    return type(made).__name__, made


@reader("definition: tolerant", "engines, options, keys with their places, by `LoggedQuery.definition`")
def _tolerant(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    made = query.definition
    if made is None:
        return None
    written, created, altered = made.written, isinstance(made, CreateTable), isinstance(made, AlterTable)
    wanted = ("ROW_FORMAT", "KEY_BLOCK_SIZE", "UNION", "DATA DIRECTORY", "INDEX DIRECTORY")
    options = {
        one.name.partition(" ")[0]: one for one in written.options if one.name in wanted and not one.of_partition
    }
    return {
        "verb": "CREATE" if created else "ALTER", "name": made.name, "temporary": created and made.temporary,
        "if not exists": created and made.if_not_exists, "like": made.like if created else None,
        "rename": made.rename if altered else None, "engine": made.engine,
        "engines": [(one.start, one.stop, one.text, one.name == "TYPE") for one in written.engines],
        "options": {name: _option(one) for name, one in options.items()},
        "partitioned": written.partitioned, "selects": written.queried, "foreign": [_reference(one) for one in written.foreign_keys],
        "inline": [_reference(one) for one in written.inline], "dropped": made.dropped_constraints if altered else [],
        "ignores": altered and made.ignores, "numbered": _is_numbered(made),
    }  # fmt: skip


def _option(one: TableOption) -> Any:
    return (one.start, one.value + 1, "(") if one.name == "UNION" else (one.start, one.stop, one.text)


def _is_numbered(made: TableDefinition) -> bool:
    if isinstance(made, AlterTable):
        return made.numbers_rows
    return any("auto_increment" in one.column.extra for one in made.columns)


def _reference(key: Any) -> Any:
    said = key.references
    places = [(token.start, token.stop) for token in said.tokens]
    return key.name, said.parent, [token.text for token in said.columns], said.on_delete, said.on_update, places


@reader("definition: parts", "edits that take out CHECK, REFERENCES, actions after MATCH; keys in comments")
def _parts(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    checks = _each(checks=lambda: without_checks(query))
    made = query.definition
    if made is None:
        return checks
    return checks | _each(
        commented=lambda: has_commented_keys(query, made),
        references=lambda: without_references(query, made),
        match=lambda: (has_actions_behind_match(made), forgets_actions(query, made), without_actions(query, made)),
    )


def _tables_named(made: Statement) -> list[TableName]:
    match made:
        case CreateTable():
            return [made.like] if made.like is not None else []
        case AlterTable():
            return [made.name]
        case DropTables():
            return list(made.names)
        case RenameTables():
            return [old for old, _new in made.pairs]
        case _:
            return []


@reader("schema history", "tables after it, where those that it names had the usual columns before")
def _history(statement: bytes, setting: Setting) -> Any:
    state = SourceTables()
    state.note_charset(SCHEMA, ("latin1", "latin1_swedish_ci"))
    with contextlib.suppress(UnsupportedSyntax):
        for name in _tables_named(_parsed(statement, setting)):
            note_table(state, _usual_table(name))
    logged = LoggedDefinition(
        defined_names(statement, setting.sql_mode),
        _text(statement),
        SCHEMA,
        setting.sql_mode,
        7,
        server_charset="latin1",
        version=setting.version,
    )
    logged.apply_to(state)
    return [table for _name, table in sorted(state.tables())], state.charsets, state.temporary


# ---- what becomes of it ------------------------------------------------------------------------------------------------------


@reader(
    "view: MySQL",
    "the definition for a replica of 9.7 with InnoDB alone and with the source's engines; engines learned",
    "mysql",
)
def _view(statement: bytes, setting: Setting) -> Any:
    query = _query(statement, setting)
    found: dict[str, Any] = {}
    for engines in ("innodb", "keep"):
        settings = ViewSettings("v", gtids="assign", uuid=UUID(int=16), engines=engines)
        try:
            made = define(query, settings, TableEngines({"*": "InnoDB"}))
            found[engines] = made if made != statement else "same"
        except Untranslatable as error:
            found[engines] = _stop(error)
    known = TableEngines()
    learn(known, query)
    return found | {"learned": _learned_engines(known)}


def _program(one: KnownProgram) -> dict[str, Any]:
    return {"KnownProgram": {"name": one.name, "words": one.words, "table": one.table, "event": one.event}}


def _translated(statement: bytes, setting: Setting, known: TablesAtSource) -> Any:
    made = translate_statement(statement, _context(setting), known)
    texts = ["same" if one == statement else one for one in made.texts]
    return {
        "texts": texts, "left out": made.left_out, "reports": made.reports, "source": made.source, "replica": made.replica,
        "sequences": (made.sequences_made, made.sequences_dropped), "versioned": made.versioned,
        "programs": [_program(one) for one in made.programs],
        "dropped": made.programs_dropped,
    }  # fmt: skip


@reader("view: MariaDB, tables unknown", "what becomes of it for MySQL 9.7 where nothing is known of tables", "mariadb")
def _translated_alone(statement: bytes, setting: Setting) -> Any:
    return _translated(statement, setting, TablesAtSource(plain=("*",)))


@reader("view: MariaDB, tables known", "the same where every table exists with the usual columns", "mariadb")
def _translated_known(statement: bytes, setting: Setting) -> Any:
    return _translated(statement, setting, _EveryTable(plain=("*",)))


@reader("view: older targets", "what becomes of it for MySQL 5.6, 5.7, 8.0 and 8.4", "mysql57", "mysql97")
def _older(statement: bytes, setting: Setting) -> Any:
    found: dict[str, Any] = {}
    number = _number(setting.version)
    default = 255 if number >= 80_001 else 45
    variables = {
        SQL_MODE: setting.sql_mode.to_bytes(8, "little"),
        CHARSETS: _UTF8MB4.to_bytes(2, "little") * 2 + (8).to_bytes(2, "little"),
        UTF8MB4_DEFAULT: default.to_bytes(2, "little"),
    }
    body = Query(7, 0, 0, encode_status(variables), SCHEMA.encode(), statement).encode()
    for target in ("mysql-5.6", "mysql-5.7", "mysql-8.0", "mysql-8.4"):
        asked = TARGETS_BY_NAME[target]
        if asked.version[:2] >= (number // 10_000, number // 100 % 100):
            continue
        try:
            translated = TargetQuery(body, EventType.QUERY, number, asked, CollationMap({}, asked), True).translated()
            made = read_query(EventType.QUERY, translated, 0)
            text = "same" if made.text == statement else made.text
            found[target] = text, [(code, value.hex()) for code, value in decode_status(made.status_variables).items()]
        except Untranslatable as error:
            found[target] = _stop(error)
    return found


@reader("feed", "definitions and changes without rows that the feed sees, of shop.t and shop.T")
def _feed(statement: bytes, setting: Setting) -> Any:
    row = {
        "file": "bin.000001", "transaction": 100, "position": 100, "end": 199, "statement": _text(statement), "schema": SCHEMA,
        "sql_mode": setting.sql_mode, "error_code": 0, "time": None,
    }  # fmt: skip
    found = logged_changes(
        [row], {}, lambda _place: setting.version, [(SCHEMA, "t"), (SCHEMA, "T"), ("crm", "t")], lambda _place: False
    )
    definitions = [
        (one.key, one.action, one.source, one.target, one.if_exists, one.if_not_exists, bool(one.hides), one.made_anew, one.strict,
         one.clauses, one.keeps_zero, one.pads)
        for one in found.definitions
    ]  # fmt: skip
    unseen = [(one.words, one.schema, one.brings, one.rollback_in, one.may_cascade) for one in found.unseen]
    return definitions, unseen


@reader(
    "readiness",
    "names of the checks that find it, for newer servers of each family and for a migration",
    by_server=Servers.NO,
)
def _readiness(statement: bytes, setting: Setting) -> Any:
    logged = LoggedStatement(_text(statement), SCHEMA, setting.sql_mode)
    if logged.changes_rows:  # those are examined by their digest text
        logged = LoggedStatement(_text(_digest(statement, setting)), SCHEMA, setting.sql_mode)
    return {family: [check.name for check in found_in(logged, family)] for family in ("mysql", "mariadb", "migration")}


# ---- statements in a row -----------------------------------------------------------------------------------------------------


@reader(
    "history: schema",
    "after each statement the tables that changed, by `SourceTables`",
    by_mode=False,
    of_histories=True,
)
def _schema_of_history(history: bytes, setting: Setting) -> Any:
    state = SourceTables()
    found = []
    for statement in history.split(HISTORY):
        text = _text(statement)
        LoggedDefinition(
            defined_names(statement, 0), text, SCHEMA, 0, 7, server_charset="latin1", version=setting.version
        ).apply_to(state)
        found.append((text[:40], [(name, state.exact(name)) for name in sorted(state.take_touched())]))
    return found, state.charsets, state.temporary


def _kept(tables: SourceTables) -> tuple[dict[str, Any], list[list[Any]]] | None:
    """What the book knows, beside its tables, and these: each its facts and flags; None: nothing."""
    lines = [json.loads(line) for line in tables.state().decode().splitlines()]
    return (lines[0], lines[1:]) if lines else None


def _created_schemas(facts: dict[str, Any]) -> list[str]:
    return [schema for schema, exists in facts["complete"] if exists]


def _learned_engines(engines: TableEngines) -> Any:
    """Engines, triggers, routines, views and foreign keys that the book knows."""
    kept = _kept(engines)
    if kept is None:
        return None
    facts, tables = kept

    def row(known: list[Any]) -> list[Any]:
        table, _generated, _plain, _recorded, default, since_create, references_known, temporary = known
        return [table["engine"], default, since_create, temporary, references_known]

    programs = facts["programs"]
    keys = [
        [one["schema"], one["table"], name, key["schema"], key["table"], acts[key["on_delete"]]]
        for one, *_flags in tables
        for name, key in (one.get("foreign_keys") or {}).items()
        for acts in [collections.defaultdict(str, {"CASCADE": "CASCADE", "SET NULL": "SET NULL"})]
    ]
    found = {
        "tables": [[one[0]["schema"], one[0]["table"], *row(one)] for one in tables if one[0]["engine"] or one[5]],
        "temporary": [[*key, *row(known)] for *key, known in facts["temporary"]],
        "complete": _created_schemas(facts),
        "triggers": [
            [*name[1:], *table, text, event, body]
            for name, _words, table, event, text, body, _reads, *_session in programs
            if table is not None
        ],
        "routines": [[*one[0], one[5]] for one in programs if one[0][0] in ("FUNCTION", "PROCEDURE")],
        "views": [[one[0][1].lower(), one[0][2].lower(), one[6]] for one in programs if one[0][0] == "VIEW"],
        "foreign_keys": keys,
    }
    return found if any(found.values()) else None


def _learned_by_mariadb(tables: MariadbTables) -> list[str]:
    """Tables and programs that the book of a MariaDB's view knows, as lines."""
    kept = _kept(tables)
    if kept is None:
        return [""][:0]
    facts, rows = kept
    programs = [
        json.dumps([name, words, table, event], ensure_ascii=False)
        for name, words, table, event, *_rest in facts["programs"]
    ]
    sets = [
        facts["charsets"], _created_schemas(facts), facts["absent"], facts["doubtful"],
        sorted(one[:3] for one in facts["temporary"]), programs,
    ]  # fmt: skip
    lines = []
    for table, _generated, is_plain, is_recorded, *_flags in rows:
        kind = table.pop("type", "")
        told = ["sequence" if kind == "SEQUENCE" else "table", kind == "SYSTEM VERSIONED", is_plain, table]
        told += [True] if is_recorded else []
        lines.append(f"{json.dumps([table['schema'], table['table']])} {json.dumps(told, ensure_ascii=False)}")
    return [json.dumps(sets, ensure_ascii=False), *lines]


@reader(
    "history: engines",
    "each definition for a replica of 9.7, and what is known of tables at the end",
    "mysql",
    by_mode=False,
    of_histories=True,
)
def _engines_of_history(history: bytes, setting: Setting) -> Any:
    engines = TableEngines()
    settings = ViewSettings("v", gtids="assign", uuid=UUID(int=16), engines="innodb")
    found: list[Any] = []
    for statement in history.split(HISTORY):
        query = _query(statement, setting)
        try:
            made = define(query, settings, engines)
            found.append("same" if made == statement else made)
        except Untranslatable as error:
            found.append({"stop": _stop(error)["stop"]})
        learn(engines, query)
    return found, _learned_engines(engines)


@reader(
    "history: MariaDB",
    "each statement for a MySQL 9.7, and what is known of tables at the end",
    "mariadb",
    by_mode=False,
    of_histories=True,
)
def _mariadb_of_history(history: bytes, setting: Setting) -> Any:
    tables = MariadbTables(lambda number: number)
    context = _context(setting)
    found: list[Any] = []
    for statement in history.split(HISTORY):
        try:
            made = translate_statement(statement, context, tables)
            learn_definition(
                tables,
                ToldDefinition(
                    made.source, made.replica, made.sequences_made, made.sequences_dropped, made.versioned, 7, made.programs,
                    made.programs_dropped, ("latin1", "latin1_swedish_ci"),
                )
            )  # fmt: skip
            found.append([made.left_out, *("same" if one == statement else one for one in made.texts)])
        except Untranslatable as error:
            found.append({"stop": _stop(error)["stop"]})
    return found, _learned_by_mariadb(tables)
