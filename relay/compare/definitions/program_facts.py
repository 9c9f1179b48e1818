"""Views, triggers, routines and events at one server."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.compare.definitions.definition_facts import Facts, ObjectName
from relay.compare.definitions.same_words import plain_body, plain_modes, plain_sql, plain_type
from relay.compare.rows.table_shape import ComparedTables
from relay.compare.servers.compared_server import ComparedServer
from relay.upstream.schema.answer_text import answer_text, quoted_name, quoted_text

_CREATED: Final = {"view": "Create View", "trigger": "SQL Original Statement", "event": "Create Event"}
PROGRAMS: Final = ("view", "trigger", "procedure", "function", "event")


def program_facts(server: ComparedServer, schemas: Iterable[str], wanted: ComparedTables) -> dict[ObjectName, Facts]:
    """Return what each program is. Without patterns of tables all of them, else the triggers of those tables. Raises: CompareStop."""
    found: dict[ObjectName, Facts] = {}
    for schema in schemas:
        found |= _triggers(server, schema, wanted)
        if wanted.is_all:
            found |= _views(server, schema)
            found |= _routines(server, schema)
            found |= _events(server, schema)
    return found


def _triggers(server: ComparedServer, schema: str, wanted: ComparedTables) -> dict[ObjectName, Facts]:
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT, DEFINER, SQL_MODE"
        f" FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {quoted_text(schema)}"
    ):
        name, table, timing, event, body, definer, mode = map(answer_text, row)
        if wanted.has((schema, table)):
            found["trigger", f"{schema}.{name}"] = {
                "table": table,
                "when": f"{timing} {event}",
                "body": plain_body(body),
                "definer": definer,
                "sql_mode": plain_modes(mode),
            }
    return found


def _views(server: ComparedServer, schema: str) -> dict[ObjectName, Facts]:
    columns: dict[str, list[str]] = defaultdict(list)
    text = quoted_text(schema)
    for row in server.rows(
        "SELECT c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.COLUMNS c JOIN information_schema.VIEWS v"
        " ON v.TABLE_SCHEMA = c.TABLE_SCHEMA AND v.TABLE_NAME = c.TABLE_NAME"
        f" WHERE c.TABLE_SCHEMA = {text} ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION"
    ):
        columns[answer_text(row[0])].append(answer_text(row[1]))
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS"
        f" WHERE TABLE_SCHEMA = {text}"
    ):
        name, body, check, definer, security = map(answer_text, row)
        found["view", f"{schema}.{name}"] = {
            "columns": ", ".join(columns[name]),
            "expression": plain_sql(body),
            "check": check,
            "definer": definer,
            "security": security,
        }
    return found


def _routines(server: ComparedServer, schema: str) -> dict[ObjectName, Facts]:
    text = quoted_text(schema)
    parameters: dict[str, list[str]] = defaultdict(list)
    for row in server.rows(
        "SELECT SPECIFIC_NAME, PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER FROM information_schema.PARAMETERS"
        f" WHERE SPECIFIC_SCHEMA = {text} ORDER BY SPECIFIC_NAME, ORDINAL_POSITION"
    ):
        name, mode, parameter, kind = map(answer_text, row)
        parameters[name].append(" ".join(word for word in (mode, parameter, plain_type(kind)) if word))
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE,"
        f" DEFINER, ROUTINE_COMMENT FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {text}"
    ):
        name, kind, body, deterministic, access, security, mode, definer, comment = map(answer_text, row)
        found[kind.lower(), f"{schema}.{name}"] = {
            "parameters": ", ".join(parameters[name]),
            "body": plain_body(body),
            "deterministic": deterministic,
            "data access": access,
            "security": security,
            "sql_mode": plain_modes(mode),
            "definer": definer,
            "comment": comment,
        }
    return found


def _events(server: ComparedServer, schema: str) -> dict[ObjectName, Facts]:
    found: dict[ObjectName, Facts] = {}
    for row in server.rows(
        "SELECT EVENT_NAME, EVENT_DEFINITION, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, STARTS, ENDS, TIME_ZONE, ON_COMPLETION,"
        f" STATUS, DEFINER, SQL_MODE, EVENT_COMMENT FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {quoted_text(schema)}"
    ):
        name, body, at, number, unit, starts, ends, zone, completion, status, definer, mode, comment = map(
            answer_text, row
        )
        found["event", f"{schema}.{name}"] = {
            "body": plain_body(body),
            "schedule": " ".join(word for word in (at, number, unit, starts, ends) if word),
            "time zone": zone,
            "completion": completion,
            # At a replica events rest until it is promoted: ENABLED there would run them twice.
            "enabled": status != "DISABLED",
            "definer": definer,
            "sql_mode": plain_modes(mode),
            "comment": comment,
        }
    return found


def created(server: ComparedServer, kind: str, name: TableName) -> str | None:
    """Return the statement that makes a program again; None: the account may not see it."""
    quoted = f"{quoted_name(name[0])}.{quoted_name(name[1])}"
    row = server.named_row(f"SHOW CREATE {kind.upper()} {quoted}")
    if not row:
        return None
    text = row.get(_CREATED.get(kind, f"Create {kind.capitalize()}"))
    return None if text is None else answer_text(text)
