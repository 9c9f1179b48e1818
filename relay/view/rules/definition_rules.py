"""Definitions of tables that a replica executes in another way than the source, or that it cannot execute."""

import re
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.edits import TextEdit, edited
from protocol.sql.engines import default_engine, names_of_engines
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.altered_table import table_of
from protocol.sql.tables.ddl_statement import AlterTable, CreateTable, TableDefinition, needs, needs_everything
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.check_clauses import without_checks
from relay.view.rules.statement.commented_keys import has_commented_keys
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.match_clauses import forgets_actions, has_actions_behind_match, without_actions
from relay.view.rules.statement.reference_clauses import without_references
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import definition_stops
from relay.view.stops.server_differences import (
    ENGINE_MISSING,
    PARTITIONED_ENGINE,
    TO_INNODB,
    TYPE_OPTION,
    DefinitionDifference,
)
from relay.view.stops.stop_reason import TableUnknown

_TABLE: Final = re.compile(rb"(?<![A-Za-z_$])TABLE\b", re.IGNORECASE)
"""A word may follow the version of a comment for servers at once: /*!50000REFERENCES."""
_NAMES_ENGINE: Final = re.compile(
    rb"(?<![A-Za-z_$])(?:(?:ENGINE|TYPE)\s*+(?:=\s*+)?[`'\"]?(?:"
    + "|".join(sorted(TO_INNODB)).encode()
    + rb")|FOREIGN\s++KEY|REFERENCES)\b",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(rb"(?<![A-Za-z_$])REFERENCES\b", re.IGNORECASE)
_MATCHES: Final = re.compile(rb"(?<![A-Za-z_$])MATCH\b", re.IGNORECASE)
_LONGEST_SEARCHED: Final = 256 << 10
"""The most bytes of a definition that a pattern searches: it holds the interpreter's lock. A longer one may contain anything."""
_KEYS_AS_WRITTEN_SINCE: Final = (8, 0)
"""The version from which foreign keys are as written, also after MATCH and in comments for servers; InnoDB before reads less."""
_CHECKS: Final = re.compile(rb"(?<![A-Za-z_$])CHECK\s*+[(/#*-]", re.IGNORECASE)
_CHECKS_SINCE: Final = (8, 0, 16)
"""The version from which CHECK creates a constraint; servers before read and ignore it."""
_INLINE_REFERENCES_SINCE: Final = (9, 0)
"""The version from which REFERENCES after a column creates a foreign key; servers before read and ignore it."""
_MERGE: Final = names_of_engines(lambda engine: engine.name == "mrg_myisam")
_ATOMIC_DEFINITIONS_SINCE: Final = (8, 0)
"""The version before which CREATE TABLE … SELECT is refused where transactions have GTIDs, whatever the engine."""
# Sizes of pages in KiB that InnoDB compresses to; MyISAM's sizes are bytes.
_INNODB_BLOCKS: Final = frozenset(("0", "1", "2", "4", "8", "16"))


def define(
    query: LoggedQuery, settings: ViewSettings, engines: TableEngines | None = None, *, has_gtid: bool = True
) -> bytes:
    """Return the statement that the replica must run; most are unchanged. `engines` know the tables after it. `has_gtid`: it runs with
    a GTID, or gets one.

    Raises: Untranslatable.
    """
    forgets = _forgets_references(query, settings)
    try:
        made = query.definition
        if made is not None:
            needs(made, "ENGINE", "TYPE", "FOREIGN", "REFERENCES")
    except UnsupportedSyntax:
        if len(query.raw) > _LONGEST_SEARCHED and (
            settings.engines == "innodb" or forgets or _reads_more_of_keys(query, settings)
        ):
            raise definition_stops.engine_definition_not_parsed(query) from None
        if settings.engines == "innodb" and _may_say(query, _NAMES_ENGINE):
            raise definition_stops.engine_definition_not_parsed(query) from None
        if forgets and _may_say(query, _REFERS):
            raise definition_stops.references_not_parsed(query) from None
        if _reads_more_of_keys(query, settings) and _may_say(query, _REFERS) and _MATCHES.search(query.raw):
            raise definition_stops.match_not_parsed(query) from None
        if _reads_more_of_keys(query, settings) and _may_say(query, _REFERS) and b"/*!" in query.raw:
            raise definition_stops.commented_key(query) from None
        return query.raw
    if made is None:
        return query.raw
    _check(query, made, settings, has_gtid=has_gtid)
    edits = _type_options(made, settings)
    if settings.engines == "innodb" and not made.is_temporary:
        _check_added_keys(query, made, engines)
        changed = _to_innodb(query, made, edits)
        forgets = forgets or changed != edits or _is_without_keys(query, made, engines)
        edits = changed
    if forgets:
        edits = [*edits, *without_references(query, made)]
    _check_commented_keys(query, made, settings)
    edits = [*edits, *_forgotten_actions(query, made, settings), *_forgotten_checks(query, settings)]
    return edited(query.raw, edits) if edits else query.raw


def _may_say(query: LoggedQuery, words: re.Pattern[bytes]) -> bool:
    """Return whether the text, of a statement that is not understood, may define a table and contain these words."""
    if query.kind.verb not in ("CREATE", "ALTER", ""):
        return False
    return _TABLE.search(query.raw) is not None and words.search(query.raw) is not None


def _forgets_references(query: LoggedQuery, settings: ViewSettings) -> bool:
    """Return whether the source ignores REFERENCES after a column, and the target creates a foreign key."""
    source = version_numbers(query.server_version)
    return source[:2] < _INLINE_REFERENCES_SINCE <= settings.target_version


def _reads_more_of_keys(query: LoggedQuery, settings: ViewSettings) -> bool:
    """Return whether the target uses parts of a FOREIGN KEY that the source ignores, or perhaps ignores."""
    return version_numbers(query.server_version) < _KEYS_AS_WRITTEN_SINCE <= settings.target_version


def _check_commented_keys(query: LoggedQuery, made: TableDefinition, settings: ViewSettings) -> None:
    """Check for foreign keys with parts in comments for servers, which the source skips. Raises: Untranslatable."""
    if not _reads_more_of_keys(query, settings):
        return
    try:
        commented = has_commented_keys(query, made)
    except UnsupportedSyntax:
        commented = bool(made.written.foreign_keys) or _may_say(query, _REFERS)
    if commented:
        raise definition_stops.commented_key(query)


def _forgotten_actions(query: LoggedQuery, made: TableDefinition, settings: ViewSettings) -> list[TextEdit]:
    """Return the edits that remove ON DELETE and ON UPDATE after MATCH where the source ignores them. Raises: Untranslatable."""
    if not has_actions_behind_match(made):
        return []
    forgets = forgets_actions(query, made)
    if forgets is None and _reads_more_of_keys(query, settings):
        raise definition_stops.match_not_parsed(query)
    return without_actions(query, made) if forgets else []


def _forgotten_checks(query: LoggedQuery, settings: ViewSettings) -> list[TextEdit]:
    """Return the edits that remove CHECK where the source ignores it.

    A definition that cannot be read is unchanged: replicas ignore CHECK, too, where the GTID event names such a source (tried: 9.7.4).
    Only `mysqlbinlog | mysql` creates the constraints.
    """
    forgets = version_numbers(query.server_version) < _CHECKS_SINCE and settings.target_version >= _CHECKS_SINCE[:2]
    if not forgets or (len(query.raw) <= _LONGEST_SEARCHED and not _may_say(query, _CHECKS)):
        return []
    try:
        return without_checks(query)
    except UnsupportedSyntax:
        return []


def _is_without_keys(query: LoggedQuery, made: TableDefinition, engines: TableEngines | None) -> bool:
    """Return whether the source's table is known to have no foreign keys, because of its engine."""
    facts = engines.facts(made.name, query.thread_id) if engines is not None else None
    return facts is not None and facts.keeps_rollbacks is True


def _check_added_keys(query: LoggedQuery, made: TableDefinition, engines: TableEngines | None) -> None:
    """Check for ALTER TABLE … ADD FOREIGN KEY that the source's engine ignores, or perhaps ignores. Raises: Untranslatable."""
    if not isinstance(made, AlterTable) or not made.written.foreign_keys or made.engine or engines is None:
        return
    facts = engines.facts(made.name, query.thread_id)
    if facts is not None and (facts.temporary or facts.keeps_rollbacks is False):
        return
    if facts is not None and facts.keeps_rollbacks:
        why = f"{facts.engine or facts.default_engine} reads FOREIGN KEY and makes nothing of it, InnoDB enforces it"
    else:
        name = ".".join(made.name)
        why = f"nobody knows the engine of {name}, and MyISAM makes nothing of FOREIGN KEY; known_engines can tell it"
        raise TableUnknown(definition_stops.not_for_innodb(query, why, 0).reason, made.name)
    raise definition_stops.not_for_innodb(query, why, 0)


def _check(query: LoggedQuery, made: TableDefinition, settings: ViewSettings, *, has_gtid: bool) -> None:
    """Check for what the target refuses. Raises: Untranslatable."""
    named = made.engine.lower()
    _refuse(ENGINE_MISSING, query, made, settings)
    if made.is_temporary:
        return
    becomes_innodb = settings.engines == "innodb"
    if becomes_innodb and (named in _MERGE or made.written.option("UNION") is not None):
        raise definition_stops.engine_missing(query, made.engine or "MERGE", ErrorCode.ER_WRONG_MRG_TABLE)
    if made.written.queried and has_gtid:
        if settings.target_version >= _ATOMIC_DEFINITIONS_SINCE:
            refused = named in TO_INNODB | _MERGE and not becomes_innodb
        else:
            refused = settings.gtids != "anonymous"
        if refused:
            raise definition_stops.create_select(query, made.engine or "a table")
    if not becomes_innodb:
        _refuse(PARTITIONED_ENGINE, query, made, settings)


def _refuse(
    difference: DefinitionDifference, query: LoggedQuery, made: TableDefinition, settings: ViewSettings
) -> None:
    """Check for one difference that the target refuses. Raises: Untranslatable."""
    found = difference.finds(made) if settings.target_version >= difference.since else ""
    if found and difference.stop is not None:
        raise difference.stop(query, found)


def _type_options(made: TableDefinition, settings: ViewSettings) -> list[TextEdit]:
    if settings.target_version < TYPE_OPTION.since:
        return []
    return [TextEdit(one.start, one.start + 4, b"ENGINE") for one in made.written.engines if one.name == "TYPE"]


def _to_innodb(query: LoggedQuery, made: TableDefinition, edits: list[TextEdit]) -> list[TextEdit]:
    """Return the edits that make tables without transactions InnoDB tables. Raises: Untranslatable."""
    edits = list(edits)
    changes = False
    for one in made.written.engines:
        if one.text.lower() in TO_INNODB:
            changes = True
            edits.append(TextEdit(one.value, one.stop, b"InnoDB"))
    default_changes = (
        isinstance(made, CreateTable) and not made.engine and default_engine(query.server_version) == "MyISAM"
    )
    if not (changes or default_changes):
        return edits
    if made.written.foreign_keys:
        raise definition_stops.not_for_innodb(
            query, f"{made.engine or 'MyISAM'} reads FOREIGN KEY and makes nothing of it, InnoDB enforces it", 0
        )
    _check_auto_increment(query, made)
    row_format = made.written.option("ROW_FORMAT")
    if row_format is not None and row_format.text.upper() in ("FIXED", "PAGE"):
        edits.append(TextEdit(row_format.value, row_format.stop, b"DEFAULT"))
    block = made.written.option("KEY_BLOCK_SIZE")
    if block is not None and block.text not in _INNODB_BLOCKS:
        edits.append(TextEdit(block.value, block.stop, b"0"))
    for name in ("DATA DIRECTORY", "INDEX DIRECTORY"):
        option = made.written.option(name)
        if option is not None:
            edits.append(TextEdit(option.start, option.stop, b""))
    return edits


def _check_auto_increment(query: LoggedQuery, made: TableDefinition) -> None:
    """Check that a key begins with the AUTO_INCREMENT column, as InnoDB needs, unlike MyISAM. Raises: Untranslatable."""
    if not isinstance(made, CreateTable) or made.like is not None:
        return
    try:
        needs_everything(made)
        table = table_of(made, "")
    except UnsupportedSyntax:
        return  # the replica reports 1075 itself
    for column in table.columns:
        if "auto_increment" in column.extra.lower() and not any(
            key.columns[0].lower() == column.name.lower() for _name, key in table.keys
        ):
            raise definition_stops.not_for_innodb(
                query,
                f"the AUTO_INCREMENT column {column.name} begins no key, which InnoDB needs",
                ErrorCode.ER_WRONG_AUTO_KEY,
            )
