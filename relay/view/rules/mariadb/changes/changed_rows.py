"""The reasons why a statement may change other rows on the replicas, where no server reports it."""

from typing import Final

from protocol.sql.tables.source_table import Column, Table, TableName
from relay.schema_history.table_agreement import type_parts
from relay.source_tables.programs import KnownProgram, NamedWords
from relay.view.rules.mariadb.differences.differing_functions import default_differs
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.key_rewriting import is_left_out
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.statement_context import StatementContext
from relay.view.stops import statement_stops

_TEXTS: Final = frozenset(
    ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "nchar", "nvarchar", "character")
)
_OTHER_BYTES: Final = frozenset(("uuid", "inet4", "inet6"))


def check_changes(words: EditableStatement, named: NamedWords, known: TablesAtSource) -> None:
    """Check a statement as a whole, and everything that it runs. Raises: Untranslatable."""
    context = words.context
    if context.connection and named.compares_values and not context.collations.compares_alike(context.connection):
        raise statement_stops.statement_differs(
            context.target_title,
            words.query,
            "comparisons by the connection's collation, which is another one there,",
        )
    _check(words, named, known, "")
    seen: set[KnownProgram] = set()
    ways = [(named, "")]
    while ways:
        inside, way = ways.pop()
        for program in _set_off(inside, known):
            if program not in seen:
                seen.add(program)
                where = f"{way}, and {program.title}" if way else f", in {program.title}"
                _check(words, program.words, known, where)
                ways.append((program.words, where))


def table_difference(table: Table) -> str:
    """Return why statements on a table differ at the replica, where its rows and keys are not quite the source's; "": they do not."""
    for column in table.columns:
        if type_parts(column.type)[0] in _OTHER_BYTES:
            return f"whose column {column.name} of type {column.type} is bytes there"
        default = (column.default or "").lower()
        if "nextval" in default or "next value" in default:
            return f"whose column {column.name} has no default there, because it is of a sequence"
        if default and default_differs(default):
            return f"whose column {column.name} has a default that is computed otherwise there"
    left_out = next((name for name, key in table.keys if is_left_out(key, table)), "")
    return f"which has no unique key {left_out} there" if left_out else ""


def _set_off(named: NamedWords, known: TablesAtSource) -> list[KnownProgram]:
    return [
        program for name in sorted(named.names) for program in known.programs_of(name) if program.is_set_off_by(named)
    ]


def _check(words: EditableStatement, named: NamedWords, known: TablesAtSource, where: str) -> None:
    context, query = words.context, words.query
    if named.differs:
        raise statement_stops.statement_differs(context.target_title, query, named.differs + where)
    for name in sorted(named.names):
        if known.is_temporary(context.thread_id, name):
            continue
        if known.is_versioned(name):
            raise statement_stops.statement_differs(
                context.target_title, query, f"the table {name[1]} with system versioning{where}"
            )
        if known.is_sequence(name):
            raise statement_stops.syntax_unknown(context.target_title, query, f"the sequence {name[1]}{where}")
        table = known.table(name)
        difference = table_difference(table) or _comparison(table, named, context) if table is not None else ""
        if difference:
            raise statement_stops.statement_differs(
                context.target_title, query, f"the table {name[1]}, {difference}{where}"
            )
    if context.keys_by_server:
        _check_references(words, named, known)
    for name in sorted(named.tables):
        if not _is_known(name, known, context.thread_id):
            raise statement_stops.unknown_table_definition(query, name, where)
        if not where and not known.is_temporary(context.thread_id, name):
            known.note_changed_rows(name)


def _check_references(words: EditableStatement, named: NamedWords, known: TablesAtSource) -> None:
    """Check REPLACE and DELETE of rows that others refer to: InnoDB and MySQL from 9.6 on leave different rows."""
    replaces = "REPLACE" in named.verbs and named.uses_keys
    for table in sorted(named.tables) if replaces or "DELETE" in named.verbs else ():
        children = known.references.changed_with(table) if replaces else []
        if children:
            raise statement_stops.replace_in_parent_table(words.query, table, children)
        behind = known.references.left_unfinished(table) if "DELETE" in named.verbs else []
        if behind:
            raise statement_stops.incomplete_cascade(words.query, table, behind)


def _is_known(name: TableName, known: TablesAtSource, thread_id: int) -> bool:
    """Return whether its content is known, or it does not exist."""
    is_there = known.exists(name)
    return (
        is_there is False
        or known.table(name) is not None
        or known.is_temporary(thread_id, name)
        or known.is_known_plain(name)
        or bool(is_there and known.programs_of(name))
    )


def _comparison(table: Table, named: NamedWords, context: StatementContext) -> str:
    """Return why texts of the table may be found, or be equal, at one of the two alone."""
    of_unique = {column.lower() for _name, key in table.keys if key.unique for column in key.columns}
    computed = any(column.generated for column in table.columns)
    for column in table.columns:
        if type_parts(column.type)[0] not in _TEXTS or column.charset == "binary":
            continue
        lower = column.name.lower()
        concerned = (
            computed or named.compares_rows or lower in named.columns or (named.uses_keys and lower in of_unique)
        )
        if concerned and not is_alike_column(column, context):
            how = f"by {column.collation}" if column.collation else "by a collation that is not known"
            return f"whose column {column.name} compares {how}, and otherwise there"
    return ""


def is_alike_column(column: Column, context: StatementContext) -> bool:
    """Return whether its texts compare on the replicas as at the source."""
    return context.collations.is_alike(column.collation, column.charset, context.defaults) is True
