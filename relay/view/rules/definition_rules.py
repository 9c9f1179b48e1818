"""Definitions of tables: what a replica takes otherwise than the source, and what it cannot take."""

import re
from typing import Final

from relay.schema_history.tables.altered_table import table_of
from relay.schema_history.tables.ddl_parser import parse_ddl
from relay.schema_history.tables.ddl_statement import CreateTable
from relay.schema_history.tables.ddl_tokens import NotSure
from relay.view.rules import stop_reasons
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.table_definition import TableDefinition, TextEdit, edited, read_table_definition
from relay.view.rules.table_engines import default_engine

_TO_INNODB: Final = frozenset(("myisam", "isam", "memory", "heap", "archive", "csv"))
_NAMES_ENGINE: Final = re.compile(
    rb"\s*(?:CREATE|ALTER)\b.*\b(?:ENGINE|TYPE)\s*=?\s*[`'\"]?(?:MYISAM|ISAM|MEMORY|HEAP|ARCHIVE|CSV)\b",
    re.IGNORECASE | re.DOTALL,
)
_MERGE: Final = frozenset(("merge", "mrg_myisam"))
# FEDERATED is compiled in and switched off: 1286, or, without NO_ENGINE_SUBSTITUTION, an InnoDB table without the remote rows.
_GONE: Final = frozenset(("federated",))
_ATOMIC_DEFINITIONS_SINCE: Final = (8, 0)
"""Before, CREATE TABLE … SELECT is refused where transactions have GTIDs, whatever the engine."""
_PARTITIONS_IN_INNODB_ONLY_SINCE: Final = (8, 0)
_TYPE_OPTION_UNTIL: Final = (5, 5)
# Sizes of pages in KiB that InnoDB compresses to; MyISAM's sizes are bytes.
_INNODB_BLOCKS: Final = frozenset(("0", "1", "2", "4", "8", "16"))


def define(query: LoggedQuery, settings: ViewSettings, *, has_gtid: bool = True) -> bytes:
    """The statement as the replica is to run it; most are as they were. has_gtid: it runs with a GTID, or gets one.

    Raises: CannotBeKept.
    """
    try:
        made = read_table_definition(query)
    except NotSure:
        if settings.engines == "innodb" and _NAMES_ENGINE.match(query.raw):
            raise stop_reasons.not_understood(query) from None
        return query.raw
    if made is None:
        return query.raw
    _check(query, made, settings, has_gtid=has_gtid)
    edits = _type_options(made, settings)
    if settings.engines == "innodb" and not made.temporary:
        edits = _to_innodb(query, made, edits)
    return edited(query.raw, edits) if edits else query.raw


def _check(query: LoggedQuery, made: TableDefinition, settings: ViewSettings, *, has_gtid: bool) -> None:
    """Raises: CannotBeKept for what the target refuses."""
    named = made.engine.lower()
    if named in _GONE:
        raise stop_reasons.engine_gone(query, made.engine, 1286)
    if made.temporary:
        return
    becomes_innodb = settings.engines == "innodb"
    if becomes_innodb and (named in _MERGE or "UNION" in made.options):
        raise stop_reasons.engine_gone(query, made.engine or "MERGE", 1168)
    if made.selects and has_gtid:
        if settings.target_version >= _ATOMIC_DEFINITIONS_SINCE:
            refused = named in _TO_INNODB | _MERGE and not becomes_innodb
        else:
            refused = settings.gtids != "anonymous"
        if refused:
            raise stop_reasons.create_select(query, made.engine or "a table")
    if becomes_innodb:
        return
    plain = next((one for one in map(query.name, (at.value for at in made.engines)) if one.lower() in _TO_INNODB), None)
    if made.partitioned and plain is not None and settings.target_version >= _PARTITIONS_IN_INNODB_ONLY_SINCE:
        raise stop_reasons.partitioned(query, plain)


def _type_options(made: TableDefinition, settings: ViewSettings) -> list[TextEdit]:
    """TYPE= of 4.x and 5.0, which servers from 5.5 on do not understand, is ENGINE=."""
    if settings.target_version < _TYPE_OPTION_UNTIL:
        return []
    return [TextEdit(one.start, one.start + 4, b"ENGINE") for one in made.engines if one.is_type]


def _to_innodb(query: LoggedQuery, made: TableDefinition, edits: list[TextEdit]) -> list[TextEdit]:
    """Tables without transactions become InnoDB. Raises: CannotBeKept."""
    edits = list(edits)
    changes = False
    for one in made.engines:
        if query.name(one.value).lower() in _TO_INNODB:
            changes = True
            edits.append(TextEdit(one.value.start, one.value.stop, b"InnoDB"))
    default_changes = made.verb == "CREATE" and not made.engine and default_engine(query.server_version) == "MyISAM"
    if not (changes or default_changes):
        return edits
    if made.has_foreign_keys:
        raise stop_reasons.not_for_innodb(
            query, f"{made.engine or 'MyISAM'} reads FOREIGN KEY and makes nothing of it, InnoDB enforces it", 0
        )
    _check_auto_increment(query, made)
    row_format = made.options.get("ROW_FORMAT")
    if row_format is not None and row_format.value.upper in ("FIXED", "PAGE"):
        edits.append(TextEdit(row_format.value.start, row_format.value.stop, b"DEFAULT"))
    block = made.options.get("KEY_BLOCK_SIZE")
    if block is not None and block.value.text not in _INNODB_BLOCKS:
        edits.append(TextEdit(block.value.start, block.value.stop, b"0"))
    for word in ("DATA", "INDEX"):
        option = made.options.get(word)
        if option is not None:
            edits.append(TextEdit(option.start, option.stop, b""))
    return edits


def _check_auto_increment(query: LoggedQuery, made: TableDefinition) -> None:
    """MyISAM counts within the columns before; InnoDB needs a key that begins with the column. Raises: CannotBeKept."""
    if made.verb != "CREATE" or made.selects:
        return
    try:
        statement = parse_ddl(query.text, query.schema or "?", query.sql_mode, query.server_version)
        if not isinstance(statement, CreateTable) or statement.like is not None:
            return
        table = table_of(statement, "")
    except NotSure:
        return  # the replica says 1075 itself
    for column in table.columns:
        if "auto_increment" in column.extra.lower() and not any(
            key.columns[0].lower() == column.name.lower() for _name, key in table.keys
        ):
            raise stop_reasons.not_for_innodb(
                query, f"the AUTO_INCREMENT column {column.name} begins no key, which InnoDB needs", 1075
            )
