"""Statements that newer servers no longer understand, or understand differently: accounts, options, functions."""

from typing import Final

from protocol.sql.kind import kind_of
from protocol.sql.server_words import NEW_IN_MARIADB, NEW_IN_MYSQL
from relay.audit.readiness.bare_names import used_as_names
from relay.audit.readiness.check import MARIADB, Check, Effect
from relay.audit.readiness.logged_statement import LoggedStatement
from relay.view.stops.refused_syntax import (
    NEWEST,
    OLDEST,
    flush_options,
    group_orders,
    is_program,
    is_removed_flush,
    names_among,
    null_escapes,
    removed_calls,
    removed_statement,
)

_PLUGINS_GONE: Final = frozenset(("mysql_native_password", "mysql_old_password"))
_SYSTEM_TABLES_GONE: Final = frozenset(("proc", "event", "host"))


def _calls_what_is_gone(statement: LoggedStatement) -> bool:
    called = next(removed_calls(statement, OLDEST, NEWEST), None)
    return called is not None and not _sets_password_by_function(statement)


def _sets_password_by_function(statement: LoggedStatement) -> bool:
    return statement.verb == "SET" and statement.word(1) == "PASSWORD" and any(
        name in ("PASSWORD", "OLD_PASSWORD") and index > 1 for name, index in statement.calls()
    )  # fmt: skip


def _sets_password_to_hash(statement: LoggedStatement) -> bool:
    return kind_of(
        statement.text.encode("utf-8", "backslashreplace")
    ).thing == "PASSWORD" and not _sets_password_by_function(statement)


def _grants_with_account_options(statement: LoggedStatement) -> bool:
    return statement.verb == "GRANT" and (
        statement.has("IDENTIFIED")
        or statement.has("REQUIRE")
        or any(statement.word(index).startswith("MAX_") for index in range(len(statement.words)))
    )


def _grants_only(statement: LoggedStatement) -> bool:
    return statement.verb == "GRANT" and not _grants_with_account_options(statement)


def _has_old_plugin(statement: LoggedStatement) -> bool:
    return statement.verb != "GRANT" and any(
        statement.text_at(index + 2) in _PLUGINS_GONE for index in statement.places("IDENTIFIED", "WITH")
    )


def _orders_groups(statement: LoggedStatement) -> bool:
    return next(group_orders(statement), None) is not None


def _flushes_what_is_gone(statement: LoggedStatement) -> bool:
    return statement.verb == "FLUSH" and any(
        is_removed_flush(statement, option, NEWEST) for option in flush_options(statement)
    )


def _has_removed_statement(statement: LoggedStatement) -> bool:
    return is_program(statement) and bool(removed_statement(statement, OLDEST, NEWEST))


def system_tables(statement: LoggedStatement) -> list[str]:
    """Return the tables of schema mysql that a statement changes and names with their schema, in lower case."""
    if not statement.changes_rows:
        return []
    before = {"INTO", "UPDATE", "INSERT", "REPLACE", "IGNORE", "TABLE"} | (
        {"FROM"} if statement.verb == "DELETE" else set()
    )
    return [
        statement.name(index + 2)
        for index in range(len(statement.words))
        if statement.name(index) == "mysql"
        and statement.word(index + 1) == "."
        and statement.name(index + 2)
        and statement.word(index - 1) in before
    ]


def _changes_gone_system_table(statement: LoggedStatement) -> bool:
    tables = system_tables(statement)
    return bool(_SYSTEM_TABLES_GONE.intersection(tables)) or ("user" in tables and statement.has("PASSWORD"))


def _changes_system_table(statement: LoggedStatement) -> bool:
    return bool(system_tables(statement)) and not _changes_gone_system_table(statement)


def _renames_database(statement: LoggedStatement) -> bool:
    if statement.verb == "RENAME":
        return statement.word(1) in ("DATABASE", "SCHEMA")
    return statement.verb == "ALTER" and statement.has("UPGRADE", "DATA", "DIRECTORY", "NAME")


# fmt: off
CHECKS: Final = (
    Check("set_password_function", Effect.STOPS, "SET PASSWORD = PASSWORD('…')", "MySQL 8.0.11 and later",
        "The function was removed: error 1064. Skip the statement and set the password on the replica with ALTER USER.",
        "MySQL 8.0 manual, What Is New; error 1064 of 9.7", stop="password_hash", finds=_sets_password_by_function),
    Check("set_password_hash", Effect.MAY_DIFFER, "SET PASSWORD with a hash", "MySQL 5.7.6 and later",
        "A newer server takes the text as the password itself, not as its hash: the account gets a password that no user knows. Set "
        "it on the replica with ALTER USER.",
        "MySQL 5.7 manual, SET PASSWORD; account of 9.7", stop="password_hash", finds=_sets_password_to_hash),
    Check("grant_with_account_options", Effect.STOPS, "GRANT … IDENTIFIED BY, REQUIRE or MAX_…", "MySQL 8.0.11 and later",
        "GRANT only grants there: error 1064. Create the accounts on the replica before it starts, and skip these statements.",
        "MySQL 8.0 manual, GRANT; error 1064 of 9.7", finds=_grants_with_account_options),
    Check("grant_to_account", Effect.MAY_DIFFER, "GRANT to an account that may not exist", "MySQL 8.0.11 and later",
        "GRANT no longer creates accounts: error 1410 where the account is not there. Create the accounts before.",
        "MySQL 8.0 manual, GRANT; error 1410 of 9.7", finds=_grants_only),
    Check("identified_by_hash", Effect.STOPS, "CREATE USER … IDENTIFIED BY PASSWORD 'hash'", "MySQL 8.0.11 and later",
        "The clause was removed: error 1064. Create the accounts on the replica with IDENTIFIED WITH plugin AS 'hash'.",
        "MySQL 8.0 manual, CREATE USER; error 1064 of 9.7",
        finds=lambda statement: statement.verb != "GRANT" and statement.has("IDENTIFIED", "BY", "PASSWORD")),
    Check("authentication_plugin_gone", Effect.STOPS, "Accounts of plugins that are gone",
        "MySQL 9.0 and later (mysql_native_password), 5.7.5 and later (mysql_old_password)",
        "Error 1524: the plugin is not loaded. Create the accounts with caching_sha2_password. MySQL 8.4 loads "
        "mysql_native_password only with --mysql-native-password=ON.",
        "MySQL 9.0 release notes; error 1524 of 9.7", finds=_has_old_plugin),
    Check("functions_gone", Effect.STOPS, "Functions that were removed",
        "MySQL 8.0.11 and later (PASSWORD, ENCODE, DES_ENCRYPT …; spatial functions without ST_), 9.6 (MD5, SHA1)",
        "Error 1305 or 1064. The spatial ones have the same names with ST_ or MBR before them; MD5, SHA and SHA1 need a component.",
        "MySQL 8.0 manual, What Is New; error 1305 of 9.7", stop="statement_not_in_target", finds=_calls_what_is_gone),
    Check("query_cache_hint", Effect.STOPS, "SQL_CACHE", "MySQL 8.0.3 and later",
        "There is no query cache: error 1064. SQL_NO_CACHE is still understood.",
        "MySQL 8.0 manual, What Is New; error 1064 of 9.7", finds=lambda statement: statement.has("SQL_CACHE")),
    Check("procedure_analyse", Effect.STOPS, "PROCEDURE ANALYSE", "MySQL 8.0 and later",
        "Error 1064. It stands in a stored program or a view, which has to be written again.",
        "MySQL 8.0 manual, What Is New; error 1064 of 9.7", stop="statement_not_in_target",
        finds=lambda statement: statement.has("PROCEDURE", "ANALYSE")),
    Check("statement_gone_in_program", Effect.STOPS, "Programs with statements or variables that were removed",
        "MySQL 8.0 (RESET QUERY CACHE, GRANT … IDENTIFIED, tx_isolation …), 8.4 (SHOW MASTER STATUS, STOP SLAVE …)",
        "Error 1064 or 1193. Write the program again.",
        "MySQL 8.0 and 8.4 manuals; errors of 9.7", stop="statement_not_in_target", finds=_has_removed_statement),
    Check("group_by_order", Effect.STOPS, "GROUP BY … ASC or DESC", "MySQL 8.0.13 and later",
        "Error 1064. ORDER BY says it; and without one groups come in no order now.",
        "MySQL 8.0 manual, What Is New; error 1064 of 9.7", stop="statement_not_in_target", finds=_orders_groups),
    Check("null_escape", Effect.STOPS, "\\N for NULL", "MySQL 8.0 and later",
        "Error 1064. It is still understood in the files of LOAD DATA.",
        "MySQL 8.0 manual, What Is New; error 1064 of 9.7", finds=lambda statement: next(null_escapes(statement), None) is not None),
    Check("flush_gone", Effect.STOPS, "FLUSH QUERY CACHE, HOSTS or DES_KEY_FILE", "MySQL 8.0 and later (HOSTS: 8.4)",
        "Error 1064. Skip the statement: it changes no data.",
        "MySQL 8.0 and 8.4 manuals, FLUSH; error 1064 of 9.7", finds=_flushes_what_is_gone),
    Check("set_one_shot", Effect.STOPS, "SET ONE_SHOT", "MySQL 5.6 and later",
        "MySQL 4.1 and 5.0 wrote it before statements. Replicate through a MySQL 5.1 or 5.5 in between.",
        "error 1193 of 5.6, 1064 of 9.7", finds=lambda statement: statement.verb == "SET" and statement.has("ONE_SHOT")),
    Check("rename_database", Effect.STOPS, "RENAME DATABASE, UPGRADE DATA DIRECTORY NAME", "MySQL 5.1.23 and later, 8.0 and later",
        "Error 1064. Do on the replica what the statement did, and skip it.",
        "MySQL 5.1 and 8.0 manuals; error 1064 of 9.7", finds=_renames_database),
    Check("system_table_gone", Effect.STOPS, "Changes of mysql.user's Password, mysql.proc, mysql.event or mysql.host",
        "MySQL 8.0 and later (mysql.user: 5.7.6)",
        "Error 1054 or 1146: the column or the table is gone. Use account statements, and define programs again.",
        "MySQL 8.0 manual, Data Dictionary; errors of 9.7", finds=_changes_gone_system_table),
    Check("system_table_changed", Effect.MAY_DIFFER, "Changes of tables in schema mysql", "every newer version",
        "These tables have other columns in every version, and in MariaDB 10.4 mysql.user is a view. Use account statements.",
        "MySQL and MariaDB manuals, system tables", (MARIADB, "mysql"), finds=_changes_system_table),
    Check("reserved_word", Effect.STOPS, "Names that are reserved words now",
        "MySQL 5.7 (GENERATED …), 8.0 (RANK, GROUPS, SYSTEM, WINDOW …), 8.4 (MANUAL …), 9 (LIBRARY …)",
        "Error 1064 unless the name is quoted. Rename it on the source, or use row format: rows name no columns.",
        "MySQL manuals, Keywords and Reserved Words; information_schema.KEYWORDS of 9.7",
        finds=lambda statement: next(names_among(statement, NEW_IN_MYSQL), None) is not None),
    Check("reserved_word_mariadb", Effect.STOPS, "Names that are reserved words in MariaDB now",
        "MariaDB up to 11.8 (OFFSET since 10.6, VECTOR since 11.7)",
        "Error 1064 unless the name is quoted. Rename it on the source, or use row format: rows name no columns.",
        "MariaDB manual, Reserved Words; error 1064 of 11.8", (MARIADB,),
        finds=lambda statement: any(True for _ in used_as_names(statement, NEW_IN_MARIADB))),
    Check("library_function", Effect.STOPS, "Functions of shared libraries", "every version",
        "CREATE FUNCTION … SONAME fails with error 1126 where the library is not installed. Build it for the new server first.",
        "MySQL and MariaDB manuals, CREATE FUNCTION for loadable functions; error 1126 of 9.7", ("mysql", MARIADB),
        finds=lambda statement: statement.verb == "CREATE" and statement.has("SONAME")),
)
# fmt: on
"""Removed or changed features, in statements of any kind except table definitions."""
