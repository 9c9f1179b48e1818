"""The findings on an archive by the rules that build views."""

from typing import Final

from relay.audit.readiness.check import MIGRATION, MYSQL, Check, Effect

# fmt: off
VIEW_STOPS: Final = Check("view_stops", Effect.STOPS, "Transactions that stop a view",
    'MySQL 9.7 that follows a [[view]] with gtids = "assign"; most stop any replica with gtid_mode=ON',
    "The view stops before each of them; the report has the ways on. They are judged for a view with default settings: `binlog- "
    "relay view check NAME` judges for those of a [[view]].",
    "the rules that make views; what a replica stops with was tried on MySQL 9.7", (MYSQL, MIGRATION))
VIEW_UNKNOWN: Final = Check("view_unknown", Effect.TO_KNOW, "Parts of files in which nobody looked for what stops a view",
    'MySQL 9.7 that follows a [[view]] with gtids = "assign"',
    "They cannot be read, or a view could not say where to go on. Tables that are defined there are not known behind it.",
    "the rules that make views", (MYSQL, MIGRATION))
LOGGED_CHANGES: Final = Check("logged_changes", Effect.MAY_DIFFER, "Changes of rows that a MariaDB logged as statements",
    "MySQL that follows a [[view]] of a MariaDB",
    "MySQL carries them out again, by its own functions and collations, on tables that may have other types (UUID, INET6, JSON) "
    "and collations there. What is known to come out otherwise stops the view; rows come out the same whatever the statement was. "
    "Let the source write rows (binlog_format=ROW) before the migration.",
    "statements of MariaDB 10.11 and 11.8 on 9.7", (MIGRATION,))
OLDER_TABLES: Final = Check("older_tables_changed", Effect.TO_KNOW,
    "Tables that statements change, and that were not made in these binlogs",
    "MySQL 9.6 and later, in statement format",
    "The binlogs do not tell whether a cascade goes from them over three tables, and what triggers, stored functions and views of "
    "that time do: a DELETE may leave other rows than at the source, without an error. Ask the source: SELECT CONSTRAINT_SCHEMA, "
    "TABLE_NAME, REFERENCED_TABLE_NAME, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE DELETE_RULE IN "
    "('CASCADE', 'SET NULL'); SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS WHERE ACTION_STATEMENT REGEXP "
    "'REPLACE|DELETE|CALL'; SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_DEFINITION REGEXP "
    "'REPLACE|DELETE'. Where there are such, give the replicas innodb_native_foreign_keys = ON, or let the source write rows "
    "(binlog_format = ROW).",
    "REPLACE and DELETE of 5.6 on 9.7")
# fmt: on
