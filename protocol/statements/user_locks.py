"""GET_LOCK and its like: locks that are only names, by which monitors and tools avoid each other."""

from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import Value
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.functions import as_text
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.requests import LockAction, LockCall
from protocol.statements.session.facts import SourceFacts
from protocol.statements.session.refusals import shown
from protocol.statements.translation.labels import labelled

_ARGUMENTS: Final = {
    LockAction.GET: 2,
    LockAction.RELEASE: 1,
    LockAction.RELEASE_ALL: 0,
    LockAction.IS_FREE: 1,
    LockAction.IS_USED: 1,
}
_MOST_CHARACTERS: Final = 64
_MOST_CALLS: Final = 16


def lock_calls(statement: Statement, tokens: Sequence[Token]) -> tuple[LockCall, ...] | None:
    """Return the calls of a SELECT, or DO, that contains nothing else, in their order; None for any other.

    Raises: StatementRefused (3057 for an invalid name, 1582 for another number of arguments, 1305).
    """
    calls: list[LockCall] = []
    actions = {action.value: action for action in LockAction}
    if not tokens or tokens[0].text.upper() not in actions:
        return None
    for item in statement.split(tokens):
        expression, label = labelled(statement, item) if item else (item, "")
        name = expression[0].text.upper() if expression and expression[0].kind is Kind.WORD else ""
        if name not in actions or len(expression) < 3 or not expression[1].is_symbol("("):
            return None
        if not expression[-1].is_symbol(")"):
            return None
        calls.append(_call(statement, actions[name], expression[2:-1], label))
    if len(calls) > _MOST_CALLS:
        raise statement.refuse(tokens)
    return tuple(calls)


def _call(statement: Statement, action: LockAction, inner: Sequence[Token], label: str) -> LockCall:
    facts = statement.session.facts
    if action is LockAction.RELEASE_ALL and not _has_several(facts):
        raise StatementRefused(ErrorCode.ER_SP_DOES_NOT_EXIST, f"FUNCTION {action.value} does not exist")
    arguments = [statement.evaluate(part) for part in statement.split(inner)] if inner else []
    if len(arguments) != _ARGUMENTS[action]:
        raise StatementRefused(
            ErrorCode.ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
            f"Incorrect parameter count in the call to native function '{action.value}'",
        )
    if not arguments:
        return LockCall(action, label=label)
    value: Value = arguments[0].value
    # Names are compared without regard to case.
    name = None if value is None else as_text(value).lower()
    strict = not facts.is_mariadb and facts.version_numbers >= (5, 7, 5)
    if (name and len(name) > _MOST_CHARACTERS) or (strict and not name):
        raise StatementRefused(
            ErrorCode.ER_USER_LOCK_WRONG_NAME, f"Incorrect user-level lock name '{shown(name or 'NULL', 64)}'."
        )
    timeout = arguments[1] if action is LockAction.GET else None
    timeout_s = 0.0 if timeout is None or timeout.is_null else float(timeout.as_number())
    return LockCall(action, name or None, timeout_s, label)


def _has_several(facts: SourceFacts) -> bool:
    """Return whether a connection of this kind of server may have several locks at once."""
    return facts.version_numbers >= ((10, 5, 2) if facts.is_mariadb else (5, 7, 5))
