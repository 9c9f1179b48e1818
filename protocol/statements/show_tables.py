"""SHOW TABLES, COLUMNS, INDEX, TABLE STATUS, DATABASES and DESCRIBE: SELECTs from information_schema in other words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.requests import QueryTables
from protocol.statements.session.refusals import no_database, not_supported, shown
from protocol.statements.translation.sqlite_text import ResultColumn, sqlite_condition

_NAMES: Final = (Kind.WORD, Kind.NAME)
_MAX_LABEL_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class _Listing:
    """The list that a statement shows. `columns` are those of the result and of the table in information_schema; `by` are the columns
    that are compared with the statement's schema and table; `like` is the result's column for LIKE; `order` is in SQLite's words.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    by: tuple[str, ...]
    like: str
    order: str


_COLUMNS: Final = (
    ("Field", "column_name"), ("Type", "column_type"), ("Null", "is_nullable"), ("Key", "column_key"),
    ("Default", "column_default"), ("Extra", "extra"),
)  # fmt: skip
_FULL_COLUMNS: Final = (
    ("Field", "column_name"), ("Type", "column_type"), ("Collation", "collation_name"), ("Null", "is_nullable"),
    ("Key", "column_key"), ("Default", "column_default"), ("Extra", "extra"), ("Privileges", "privileges"),
    ("Comment", "column_comment"),
)  # fmt: skip
_INDEX: Final = (
    ("Table", "table_name"), ("Non_unique", "non_unique"), ("Key_name", "index_name"), ("Seq_in_index", "seq_in_index"),
    ("Column_name", "column_name"), ("Collation", "collation"), ("Cardinality", "cardinality"), ("Sub_part", "sub_part"),
    ("Packed", "packed"), ("Null", "nullable"), ("Index_type", "index_type"), ("Comment", "comment"),
    ("Index_comment", "index_comment"),
)  # fmt: skip
_STATUS: Final = (
    ("Name", "table_name"), ("Engine", "engine"), ("Version", "version"), ("Row_format", "row_format"), ("Rows", "table_rows"),
    ("Avg_row_length", "avg_row_length"), ("Data_length", "data_length"), ("Max_data_length", "max_data_length"),
    ("Index_length", "index_length"), ("Data_free", "data_free"), ("Auto_increment", "auto_increment"),
    ("Create_time", "create_time"), ("Update_time", "update_time"), ("Check_time", "check_time"),
    ("Collation", "table_collation"), ("Checksum", "checksum"), ("Create_options", "create_options"),
    ("Comment", "table_comment"),
)  # fmt: skip
_MORE_STATUS_SINCE: Final = (10, 3, 5)
_OF_TABLE: Final = ("table_schema", "table_name")


def show_databases(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW DATABASES [LIKE 'pattern' | WHERE ...]."""
    tokens = captured[1]
    columns = (("Database", "schema_name"),)
    label = f"Database ({tokens[1].text})" if _is_like(tokens) else "Database"
    return _listed(statement, _Listing("schemata", columns, (), "Database", "schema_name"), (), tokens, label)


def show_tables(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW [FULL] TABLES [FROM database] [LIKE 'pattern' | WHERE ...]."""
    database, tokens = _database(statement, captured[0])
    columns: tuple[tuple[str, str], ...] = ((f"Tables_in_{database}", "table_name"),)
    if statement.tokens[1].is_word("FULL"):
        columns += (("Table_type", "table_type"),)
    label = f"{columns[0][0]} ({tokens[1].text})" if _is_like(tokens) else columns[0][0]
    listing = _Listing("tables", columns, ("table_schema",), columns[0][0], "table_name")
    return _listed(statement, listing, (database,), tokens, label)


def show_table_status(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW TABLE STATUS [FROM database] [LIKE 'pattern' | WHERE ...]."""
    database, tokens = _database(statement, captured[0])
    columns: tuple[tuple[str, str], ...] = _STATUS
    if statement.session.facts.is_mariadb and statement.session.facts.version_numbers >= _MORE_STATUS_SINCE:
        columns += (("Max_index_length", "max_index_length"), ("Temporary", "temporary"))
    listing = _Listing("tables", columns, ("table_schema",), "Name", "table_name")
    return _listed(statement, listing, (database,), tokens)


def show_columns(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW [FULL] COLUMNS FROM table [FROM database] [LIKE 'pattern' | WHERE ...]."""
    table, tokens = _table(statement, captured[-1])
    columns = _FULL_COLUMNS if any(token.is_word("FULL") for token in statement.tokens[1:3]) else _COLUMNS
    return _listed(statement, _Listing("columns", columns, _OF_TABLE, "Field", "ordinal_position"), table, tokens)


def describe(statement: Statement, captured: Captured) -> Answer:
    """Answer DESCRIBE table ['column'] and EXPLAIN table; EXPLAIN of a SELECT is refused."""
    table, tokens = _name(statement, captured[-1])
    listing = _Listing("columns", _COLUMNS, _OF_TABLE, "Field", "ordinal_position")
    if len(tokens) > 1 or (tokens and tokens[0].kind is Kind.SYMBOL):
        raise statement.refuse(tokens)
    made = _listed(statement, listing, table, ())
    if not tokens:
        return made
    text = f"{made.text} WHERE `Field` LIKE ?3 ESCAPE '\\'"
    return QueryTables(
        text,
        (*made.parameters, tokens[0].text),
        made.tables,
        made.columns,
        about=made.about,
        named=made.named,
        not_understood=made.not_understood,
    )


def show_index(statement: Statement, captured: Captured) -> Answer:
    """Answer SHOW INDEX FROM table [FROM database] [WHERE ...]."""
    table, tokens = _table(statement, captured[-1])
    facts = statement.session.facts
    columns: tuple[tuple[str, str], ...] = _INDEX
    if facts.is_mysql_8:
        columns += (("Visible", "is_visible"), ("Expression", "expression"))
    elif facts.is_mariadb and facts.version_numbers >= (10, 6):
        columns += (("Ignored", "ignored"),)
    if _is_like(tokens):
        raise statement.refuse(tokens)
    return _listed(statement, _Listing("statistics", columns, _OF_TABLE, "Key_name", "rowid"), table, tokens)


def show_create_table(statement: Statement, captured: Captured) -> Answer:
    """Refuse SHOW CREATE TABLE: the records are not enough to make a table."""
    _name(statement, captured[0])
    raise not_supported("SHOW CREATE TABLE", "defaults and foreign keys are not recorded; ask the source")


def _listed(
    statement: Statement, listing: _Listing, named: Sequence[str], tokens: Sequence[Token], first_label: str = ""
) -> QueryTables:
    """Return the SELECT. `named` is the schema, the schema and table, or nothing; `tokens` are LIKE or WHERE, or nothing."""
    inner = ", ".join(f"`{of}` AS {_quoted(label)}" for label, of in listing.columns)
    where = " AND ".join(f"`{column}` = ?{place}" for place, column in enumerate(listing.by, 1))
    text = f"SELECT {inner} FROM `information_schema`.`{listing.table}`" + (f" WHERE {where}" if where else "")  # noqa: S608
    text = f"SELECT * FROM ({text} ORDER BY `{listing.order}`)"  # noqa: S608
    parameters = tuple(named)
    if _is_like(tokens):
        text += f" WHERE {_quoted(listing.like)} LIKE ?{len(parameters) + 1} ESCAPE '\\'"
        parameters += (tokens[1].text,)
    elif tokens and tokens[0].is_word("WHERE"):
        condition, more = sqlite_condition(statement, tokens[1:], len(parameters) + 1)
        text += f" WHERE {condition}"
        return _request(statement, listing, text, (*parameters, *more), named, first_label)
    elif tokens:
        raise statement.refuse(tokens)
    return _request(statement, listing, text, parameters, named, first_label)


def _request(
    statement: Statement,
    listing: _Listing,
    text: str,
    parameters: tuple[str | int | None, ...],
    named: Sequence[str],
    first_label: str,
) -> QueryTables:
    labels = [first_label or listing.columns[0][0], *(label for label, _of in listing.columns[1:])]
    columns = tuple(
        ResultColumn(shown(label, _MAX_LABEL_BYTES), of, has_alias=True)
        for label, (_label, of) in zip(labels, listing.columns, strict=True)
    )
    return QueryTables(
        text,
        parameters,
        (("information_schema", listing.table),),
        columns,
        about=(named[0], named[1] if len(named) > 1 else "") if named else None,
        named=(named[0].lower(), named[1].lower()) if len(named) > 1 else ("", ""),
        not_understood=statement.refuse(statement.tokens),
    )


def _is_like(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 2 and tokens[0].is_word("LIKE") and tokens[1].is_text


def _database(statement: Statement, tokens: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """Return the named or otherwise the chosen database, and what follows. Raises: StatementRefused (1046)."""
    if tokens and tokens[0].is_word("FROM", "IN"):
        if len(tokens) < 2 or tokens[1].kind not in _NAMES:
            raise statement.refuse(tokens[1:])
        return tokens[1].text, tokens[2:]
    database = statement.session.database
    if tokens and not tokens[0].is_word("LIKE", "WHERE"):
        raise statement.refuse(tokens)
    if database is None:
        raise no_database()
    return database, tokens


def _table(statement: Statement, tokens: Sequence[Token]) -> tuple[tuple[str, str], Sequence[Token]]:
    """Read FROM table [FROM database]: return (database, table), and what follows."""
    if not tokens or not tokens[0].is_word("FROM", "IN"):
        raise statement.refuse(tokens)
    return _name(statement, tokens[1:])


def _name(statement: Statement, tokens: Sequence[Token]) -> tuple[tuple[str, str], Sequence[Token]]:
    if not tokens or tokens[0].kind not in _NAMES or tokens[0].is_word("SELECT"):
        raise statement.refuse(tokens)
    if len(tokens) > 2 and tokens[1].is_symbol(".") and tokens[2].kind in _NAMES:
        return (tokens[0].text, tokens[2].text), tokens[3:]
    rest = tokens[1:]
    if rest and rest[0].is_word("FROM", "IN"):
        database, rest = _database(statement, rest)
    elif statement.session.database is None:
        raise no_database()
    else:
        database = statement.session.database
    return (database, tokens[0].text), rest


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``").replace("\0", "") + "`"
