"""SET: user variables and session variables are kept, global ones are the configuration's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.charsets import NOT_FOR_CLIENTS, charset_named, collation_named
from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Value
from protocol.statements.answers import Answer, Done
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.functions import as_text
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.refusals import not_supported, shown, unknown_variable, wrong_value
from protocol.statements.session.session import default_collation
from protocol.statements.session.system_variables import ALSO_SETTABLE, READ_ONLY, SYSTEM_VARIABLES, variable_named
from protocol.statements.session.time_zones import time_zone
from protocol.statements.session.variable_values import check_text

# A session's variables are the replica's to choose; these bounds prevent a hostile one from filling the memory with them.
MAX_USER_VARIABLES: Final = 64
MAX_NAME_CHARACTERS: Final = 64
MAX_VALUE_CHARACTERS: Final = 16384

_SCOPES: Final = ("GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY")
_TRUE: Final = ("ON", "1", "TRUE")
_FALSE: Final = ("OFF", "0", "FALSE")
_CHARACTER_SETS: Final = (
    "character_set_client", "character_set_connection", "character_set_results", "collation_connection",
)  # fmt: skip
_DEFAULT_COLLATION: Final = 45
_ACCESS_MODES: Final = ("READ ONLY", "READ WRITE")
_ISOLATION_LEVELS: Final = ("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE")
_NAMES: Final = (Kind.WORD, Kind.NAME, Kind.STRING)


@dataclass(slots=True)
class _Changes:
    """The settings of a statement, until all of it is understood."""

    user_variables: dict[str, Value] = field(default_factory=dict)
    system_variables: dict[str, Value | None] = field(default_factory=dict)
    defaults: set[str] = field(default_factory=set)
    collation: int | None = None


def set_variables(statement: Statement, captured: Captured) -> Answer:
    """Carry out all of a statement's assignments, or none."""
    changes = _Changes()
    for assignment in statement.split(captured[0]):
        _assign(statement, assignment, changes)
    session = statement.session
    if len(session.user_variables | changes.user_variables) > MAX_USER_VARIABLES:
        raise StatementRefused(
            ErrorCode.ER_UNKNOWN_ERROR, f"More than {MAX_USER_VARIABLES} user variables are not kept"
        )
    session.user_variables.update(changes.user_variables)
    for name in changes.defaults:
        session.system_variables.pop(name, None)
    session.system_variables.update(changes.system_variables)
    session.variables_changed()
    if changes.collation is not None:
        session.use_collation(changes.collation)
    return Done()


def set_transaction(statement: Statement, captured: Captured) -> Answer:
    """Answer SET [SESSION] TRANSACTION ...: it has no effect here, but a client may check the value that it has set."""
    changed: dict[str, Value] = {}
    for part in statement.split(captured[0]):
        words = " ".join(token.text.upper() for token in part if token.kind is Kind.WORD)
        level = words.removeprefix("ISOLATION LEVEL ").replace(" ", "-")
        if len(words.split()) != len(part) or (words not in _ACCESS_MODES and level not in _ISOLATION_LEVELS):
            raise statement.refuse(part)
        if words in _ACCESS_MODES:
            changed |= dict.fromkeys(("transaction_read_only", "tx_read_only"), words == "READ ONLY")
        else:
            changed |= dict.fromkeys(("transaction_isolation", "tx_isolation"), level)
    # Without a scope it is for the next transaction only, which no variable shows.
    if statement.tokens[1].is_word("SESSION", "LOCAL"):
        statement.session.system_variables.update(changed)
    return Done()


def set_password(statement: Statement, captured: Captured) -> Answer:
    """Answer SET PASSWORD."""
    raise not_supported("SET PASSWORD", "accounts are those of its configuration")


def _assign(statement: Statement, assignment: Sequence[Token], changes: _Changes) -> None:
    """Carry out one item of a SET."""
    if not assignment:
        raise statement.refuse(())
    if assignment[0].is_word("NAMES"):
        changes.collation = _names(statement, assignment[1:])
        return
    if assignment[0].is_word("CHARSET") or (assignment[0].is_word("CHARACTER") and _word_at(assignment, 1, "SET")):
        changes.collation = _names(statement, assignment[1 if assignment[0].is_word("CHARSET") else 2 :])
        return
    scope, tokens = "", assignment
    if tokens[0].is_word(*_SCOPES):
        scope, tokens = tokens[0].text.lower(), tokens[1:]
    if len(tokens) < 2 or not tokens[1].is_symbol("=", ":="):
        raise statement.refuse(tokens[1:])
    target, expression = tokens[0], tokens[2:]
    if not expression:
        raise statement.refuse_after(tokens[1])
    if target.kind is Kind.USER_VARIABLE and not scope:
        value = statement.evaluate(expression).value
        if len(target.text) > MAX_NAME_CHARACTERS or len(str(value)) > MAX_VALUE_CHARACTERS:
            raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, f"User variable '{shown(target.text)}' is too long")
        changes.user_variables[target.text.lower()] = value
        return
    if target.kind not in (Kind.WORD, Kind.NAME, Kind.SYSTEM_VARIABLE):
        raise statement.refuse(tokens)
    _assign_system_variable(statement, target, target.scope or scope, expression, changes)


def _word_at(tokens: Sequence[Token], index: int, word: str) -> bool:
    return len(tokens) > index and tokens[index].is_word(word)


def _assign_system_variable(
    statement: Statement, target: Token, scope: str, expression: Sequence[Token], changes: _Changes
) -> None:
    name = target.text.lower()
    facts = statement.session.facts
    if name == "skip_replication":
        # The source would omit events, which would shift positions, so this is refused instead of ignored.
        if as_text(_value(statement, expression)) not in _FALSE:
            raise not_supported("leaving events out", "set replicate_events_marked_for_skip to FILTER_ON_SLAVE")
        return
    if scope in ("global", "persist", "persist_only"):
        variable_named(name, facts)
        if not statement.session.is_admin:
            text = f"Access denied; binlog-relay has no global variables to set ('{shown(name, 64)}')"
            raise StatementRefused(ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR, text)
        raise not_supported(f"SET GLOBAL {shown(name, 64)}", "change its configuration")
    known = SYSTEM_VARIABLES.get(name)
    if known is None or not known.exists(facts):
        if name not in ALSO_SETTABLE:
            raise unknown_variable(target.text)
        return
    if name in READ_ONLY:
        text = f"Variable '{name}' is a read only variable"
        raise StatementRefused(ErrorCode.ER_INCORRECT_GLOBAL_LOCAL_VAR, text)
    if not known.can_be_set:
        text = f"Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"
        raise StatementRefused(ErrorCode.ER_GLOBAL_VARIABLE, text)
    if len(expression) == 1 and expression[0].is_word("DEFAULT"):
        changes.defaults.add(name)
        changes.system_variables.pop(name, None)
        return
    value = _value(statement, expression)
    if name in _CHARACTER_SETS:
        if value is not None and name != "collation_connection":
            changes.collation = _collation_of(as_text(value), facts)
        return
    kept = changes.system_variables[name] = _converted(name, known.value(statement.session), value)
    if name == "time_zone":
        time_zone(kept)


def _value(statement: Statement, expression: Sequence[Token]) -> Value:
    """Return an assigned value; words such as ON and utf8 mean themselves there."""
    if len(expression) == 1 and expression[0].kind in (Kind.WORD, Kind.NAME) and not expression[0].is_word("NULL"):
        return expression[0].text
    return statement.evaluate(expression).value


def _converted(name: str, usual: Value, value: Value) -> Value:
    """Return `value` as this variable keeps it. Raises: StatementRefused (1231, 1232)."""
    if isinstance(usual, bool):
        text = as_text(value).upper()
        if text not in _TRUE + _FALSE:
            raise wrong_value(name, as_text(value))
        return text in _TRUE
    if isinstance(usual, int) and not isinstance(value, int):
        raise StatementRefused(ErrorCode.ER_WRONG_TYPE_FOR_VAR, f"Incorrect argument type to variable '{name}'")
    if value is None:
        raise wrong_value(name, "NULL")
    if isinstance(usual, int):
        return value
    text = as_text(value)
    check_text(name, text)
    return text


def _names(statement: Statement, tokens: Sequence[Token]) -> int:
    """Return the collation that SET NAMES chooses. Raises: StatementRefused."""
    if len(tokens) == 1 and tokens[0].is_word("DEFAULT"):
        return _DEFAULT_COLLATION
    if not tokens or tokens[0].kind not in _NAMES:
        raise statement.refuse(tokens)
    collation = _collation_of(tokens[0].text, statement.session.facts)
    if len(tokens) == 1:
        return collation
    if len(tokens) != 3 or not tokens[1].is_word("COLLATE") or tokens[2].kind not in _NAMES:
        raise statement.refuse(tokens[1:])
    charset = charset_named(tokens[0].text)
    wanted = tokens[2].text.lower()
    if charset is None or wanted == "default":
        return collation
    if wanted.partition("_")[0].replace("utf8mb3", "utf8") not in (charset.name, "uca1400"):
        if charset_named(wanted.partition("_")[0]) is None:
            raise StatementRefused(ErrorCode.ER_UNKNOWN_COLLATION, f"Unknown collation: '{shown(wanted, 64)}'")
        text = f"COLLATION '{shown(wanted, 64)}' is not valid for CHARACTER SET '{charset.name}'"
        raise StatementRefused(ErrorCode.ER_COLLATION_CHARSET_MISMATCH, text)
    return collation_named(wanted, charset)


def _collation_of(charset_name: str, facts: SourceFacts) -> int:
    if charset_name.lower() in NOT_FOR_CLIENTS:
        raise wrong_value("character_set_client", charset_name.lower())
    charset = charset_named(charset_name)
    if charset is None:
        raise StatementRefused(
            ErrorCode.ER_UNKNOWN_CHARACTER_SET, f"Unknown character set: '{shown(charset_name, 64)}'"
        )
    return default_collation(charset, facts)
