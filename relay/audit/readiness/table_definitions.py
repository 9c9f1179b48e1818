"""The parts of CREATE TABLE and ALTER TABLE that newer servers refuse, or understand differently."""

from collections.abc import Callable
from typing import Final

from protocol.sql.engines import names_of_engines
from protocol.sql.sql_mode import NO_ENGINE_SUBSTITUTION
from protocol.sql.tables.ddl_statement import AlterTable, CreateTable
from relay.audit.readiness.check import BOTH, MARIADB, Check, Effect
from relay.audit.readiness.logged_statement import LoggedStatement
from relay.view.rules.refused.row_size import is_row_too_large
from relay.view.rules.refused.spatial_columns import refused_spatial
from relay.view.stops.refused_syntax import may_lose_rows
from relay.view.stops.server_differences import PARTITIONED_ENGINE, TYPE_OPTION, DefinitionDifference

_MYSQL_ENGINES: Final = names_of_engines(lambda engine: engine.in_mysql)
_MARIADB_ENGINES: Final = names_of_engines(lambda engine: engine.in_mariadb)
_LARGEST_BLOCK_KIB: Final = 16
_FLOATS: Final = frozenset(("FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "REAL"))


def _engines(statement: LoggedStatement) -> list[str]:
    made = statement.definition
    return [] if made is None else [one.text.lower() for one in made.written.engines if one.name == "ENGINE"]


def _finds(difference: DefinitionDifference) -> Callable[[LoggedStatement], bool]:
    """Return the check that views' rules make; it finds nothing if the definition cannot be read, as no server accepts that."""
    return lambda statement: statement.definition is not None and bool(difference.finds(statement.definition))


def _unknown(statement: LoggedStatement, known: frozenset[str]) -> bool:
    return any(engine not in known for engine in _engines(statement))


def _is_strict(statement: LoggedStatement) -> bool:
    return bool(statement.sql_mode & NO_ENGINE_SUBSTITUTION)


def _alters_ignore(statement: LoggedStatement, *, loses_rows: bool) -> bool:
    made = statement.definition
    return isinstance(made, AlterTable) and made.ignores and may_lose_rows(statement, made) is loses_rows


def _names_directory(statement: LoggedStatement) -> bool:
    named = statement.has("DATA", "DIRECTORY") and not statement.has("UPGRADE", "DATA")
    return named and statement.defines_table and (_engines(statement) or ["innodb"])[0] == "innodb"


def _has_width(statement: LoggedStatement, word: str, least: int, most: int) -> bool:
    if not statement.defines_table:
        return False
    return any(
        statement.words[index + 2].text.isdecimal() and least <= int(statement.words[index + 2].text) <= most
        for index in statement.places(word, "(")
        if index + 2 < len(statement.words)
    )


def _counts_in_floats(statement: LoggedStatement) -> bool:
    made = statement.definition
    for one in made.written.elements if made is not None else ():
        words = {statement.word(at) for at in range(statement.index_at(one.start), statement.index_at(one.stop))}
        if one.type_at >= 0 and words & _FLOATS and words & {"AUTO_INCREMENT", "SERIAL"}:
            return True
    return False


def _has_long_rows(statement: LoggedStatement) -> bool:
    made = statement.definition
    engines = _engines(statement)
    return isinstance(made, CreateTable) and (engines or ["innodb"])[0] == "innodb" and is_row_too_large(made)


def _breaks_innodb_strict_mode(statement: LoggedStatement) -> bool:
    engines = _engines(statement)
    if not statement.defines_table or (engines and engines[0] != "innodb"):
        return False
    blocks = [
        statement.words[value].text for value in statement.option("KEY_BLOCK_SIZE") if value < len(statement.words)
    ]
    return any(size.isdecimal() and int(size) > _LARGEST_BLOCK_KIB for size in blocks) or any(
        statement.word(value) == "FIXED" for value in statement.option("ROW_FORMAT")
    )


def _has_null_in_primary_key(statement: LoggedStatement) -> bool:
    nullable: set[str] = set()
    keys: set[str] = set()
    for start, stop in statement.elements():
        words = [statement.word(index) for index in range(start, stop)]
        if words[:2] == ["PRIMARY", "KEY"] or (words[:1] == ["CONSTRAINT"] and "PRIMARY" in words[:3]):
            opened = words.index("(") if "(" in words else len(words)
            keys |= {statement.name(index) for index in range(start + opened + 1, stop)} - {""}
            continue
        for place, word in enumerate(words):
            if place and word == "NULL" and words[place - 1] not in ("NOT", "DEFAULT", "SET"):
                nullable.add(statement.name(start))
                if "PRIMARY" in words:
                    keys.add(statement.name(start))
    return bool(nullable & keys)


def _is_utf8(statement: LoggedStatement) -> bool:
    if statement.verb not in ("CREATE", "ALTER", "SET"):
        return False
    values = [*statement.option("CHARACTER", "SET"), *statement.option("CHARSET"), *statement.option("COLLATE")]
    return any(statement.text_at(value) == "utf8" or statement.text_at(value).startswith("utf8_") for value in values)


def _has_zero_date(statement: LoggedStatement) -> bool:
    return (statement.changes_rows or statement.defines_table) and any(
        _is_zero_date(statement.text_at(index)) for index in range(len(statement.words))
    )


def _is_zero_date(text: str) -> bool:
    return (
        len(text) >= 10
        and text[4] == text[7] == "-"
        and (text[:4] + text[5:7] + text[8:10]).isdecimal()
        and (text[5:7] == "00" or text[8:10] == "00")
        and text[10:11] in ("", " ", "t")
    )


# fmt: off
CHECKS: Final = (
    Check("type_option", Effect.STOPS, "TYPE = engine", "MySQL 5.5 and later",
        "Error 1064: the option is ENGINE. Make the table on the replica and skip the statement.",
        "MySQL 5.5 manual, What Is New; error 1064 of 9.7", finds=_finds(TYPE_OPTION)),
    Check("alter_ignore", Effect.STOPS, "ALTER IGNORE TABLE", "MySQL 5.7.4 and later",
        "Error 1064. Delete the duplicates on the source first, then ALTER TABLE without IGNORE.",
        "MySQL 5.7 manual, What Is New; error 1064 of 9.7", stop="definition_not_in_target",
        finds=lambda statement: _alters_ignore(statement, loses_rows=True)),
    Check("alter_ignore_word", Effect.STOPS, "ALTER IGNORE TABLE that can leave no row out", "MySQL 5.7.4 and later",
        "Error 1064. Write ALTER TABLE without IGNORE, as a view does.",
        "MySQL 5.7 manual, What Is New; error 1064 of 9.7", finds=lambda statement: _alters_ignore(statement, loses_rows=False)),
    Check("engine_unknown", Effect.STOPS, "Storage engines that are not there, with NO_ENGINE_SUBSTITUTION",
        "MySQL (BDB, ISAM, FEDERATED, MariaDB's engines …)",
        "Error 1286. Make the table on the replica with an engine that it has.",
        "information_schema.ENGINES of 9.7; error 1286 of 9.7", stop="engine_not_supported",
        finds=lambda statement: _unknown(statement, _MYSQL_ENGINES) and _is_strict(statement)),
    Check("engine_replaced", Effect.MAY_DIFFER, "Storage engines that are not there",
        "MySQL (BDB, ISAM, FEDERATED, MariaDB's engines …)",
        "The table is made with InnoDB instead, with a warning that nobody reads on a replica.",
        "information_schema.ENGINES of 9.7; warning 1266 of 9.7", stop="engine_not_supported",
        finds=lambda statement: _unknown(statement, _MYSQL_ENGINES) and not _is_strict(statement)),
    Check("engine_unknown_mariadb", Effect.MAY_DIFFER, "Storage engines that a newer MariaDB may not have",
        "MariaDB (TokuDB, BDB, PBXT, Cassandra …)",
        "The table is made with the default engine, or the statement fails with NO_ENGINE_SUBSTITUTION.",
        "MariaDB manual, Storage Engines", (MARIADB,), finds=lambda statement: _unknown(statement, _MARIADB_ENGINES)),
    Check("partitioned_engine", Effect.STOPS, "Partitions of MyISAM and other engines", "MySQL 8.0 and later",
        "Error 1178: only InnoDB and NDB have partitions. Convert the tables to InnoDB on the source first.",
        "MySQL 8.0 manual, What Is New; error 1178 of 9.7", stop="partitions_not_supported", finds=_finds(PARTITIONED_ENGINE)),
    Check("year2", Effect.STOPS, "YEAR(2)", "MySQL 5.7.5 and later",
        "Error 1818. Change the columns to YEAR on the source.",
        "MySQL 5.7 manual, 2-Digit YEAR(2); error 1818 of 9.7", finds=lambda statement: _has_width(statement, "YEAR", 1, 3)),
    Check("timestamp_width", Effect.STOPS, "TIMESTAMP with a display width", "MySQL 5.6.4 and later",
        "The number means digits of the second's fraction now: error 1426 from 7 on, another type up to 6.",
        "MySQL 5.6 manual, Fractional Seconds; error 1426 of 9.7",
        finds=lambda statement: _has_width(statement, "TIMESTAMP", 7, 1000)),
    Check("float_auto_increment", Effect.STOPS, "AUTO_INCREMENT of FLOAT and DOUBLE", "MySQL 8.4 and later",
        "Error 1063. Change the columns to an integer type on the source.",
        "MySQL 8.4 manual, What Is New; error 1063 of 9.7", stop="definition_not_in_target", finds=_counts_in_floats),
    Check("spatial_keys", Effect.STOPS, "Spatial columns in keys, or NOT NULL in a table that has rows", "MySQL 8.0 and later",
        "Error 3728, 1089 or 1138. Drop the key on the source; add the column there as NULL, or make the table on the replica.",
        "MySQL 8.0 manual, SPATIAL indexes; errors 3728, 1089 and 1138 of 9.7", stop="definition_not_in_target",
        finds=lambda statement: statement.definition is not None and refused_spatial(statement, statement.definition) is not None),
    Check("row_size", Effect.STOPS, "Tables of InnoDB whose rows may be longer than half a page", "MySQL 5.7.9 and later",
        "Error 1118 with innodb_strict_mode, which is on by default now. Set it OFF on the replica, or make the table there.",
        "MySQL 5.7 manual, innodb_strict_mode; error 1118 of 9.7", stop="definition_not_in_target", finds=_has_long_rows),
    Check("innodb_strict_mode", Effect.STOPS, "ROW_FORMAT=FIXED and large KEY_BLOCK_SIZE of InnoDB", "MySQL 5.7.9 and later",
        "Error 1031 with innodb_strict_mode, which is on by default now. Set it OFF on the replica, or make the table there.",
        "MySQL 5.7 manual, innodb_strict_mode; error 1031 of 9.7", finds=_breaks_innodb_strict_mode),
    Check("nullable_primary_key", Effect.STOPS, "Columns of a primary key that say NULL", "MySQL 5.7.3 and later",
        "Error 1171. Older servers made them NOT NULL in silence; define them so on the source.",
        "MySQL 5.7.3 release notes; error 1171 of 9.7", finds=_has_null_in_primary_key),
    Check("data_directory", Effect.STOPS, "DATA DIRECTORY", "MySQL 8.0.21 and later",
        "Error 3121 unless innodb_directories of the replica names the directory.",
        "MySQL 8.0 manual, Creating Tables Externally; error 3121 of 9.7", finds=_names_directory),
    Check("utf8_alias", Effect.TO_KNOW, "Character set utf8", "MySQL 8.0 and later, MariaDB 10.6 and later",
        "It means utf8mb3, which is deprecated, and will mean utf8mb4 one day. Say utf8mb3 or utf8mb4.",
        "MySQL 8.0 manual, The utf8 Character Set; warning 3719 of 9.7", BOTH, finds=_is_utf8),
    Check("zero_date", Effect.MAY_DIFFER, "Dates with zero parts in statements",
        "MySQL 5.7 and later, MariaDB 10.2 and later: by default strict, MySQL also NO_ZERO_DATE",
        "The replica takes them, since every statement carries the source's sql_mode. But ALTER TABLE, a dump's restore and "
        "every program that writes to the new server with its default sql_mode fail. Replace them by NULL.",
        "MySQL 8.0 manual, sql_mode; INSERT on 9.7", BOTH, finds=_has_zero_date),
)
# fmt: on
"""The checks of table definitions, and of values in statements."""
