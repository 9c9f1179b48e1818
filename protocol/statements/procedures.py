"""CALL binlog_relay.NAME(...): operators' requests to a relay for which no server has a statement.

A procedure is a line in `_PROCEDURES`: its name, the type of each argument, how many are required, and the function that makes the
request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from protocol.errors import ErrorCode, Malformed, StatementRefused
from protocol.position import binlog_number
from protocol.statements.answers import Answer
from protocol.statements.expression.expressions import Statement
from protocol.statements.expression.shapes import Captured
from protocol.statements.expression.tokens import Kind, Token
from protocol.statements.requests import (
    AcceptGap,
    FindViewPlace,
    ListViews,
    RepairFiles,
    Request,
    ScrubNow,
    SkipInView,
)
from protocol.statements.session.refusals import shown

SCHEMA: Final = "binlog_relay"
_FIRST_POSITION: Final = 4
# ER_SP_DOES_NOT_EXIST, ER_SP_WRONG_NO_OF_ARGS, ER_WRONG_ARGUMENTS.


@dataclass(frozen=True, slots=True)
class _Procedure:
    """A procedure. `arguments` are their types, `least` of which are required. `make` makes the request from those that were given."""

    make: Callable[[Sequence[object]], Request]
    arguments: tuple[type, ...] = ()
    least: int = 0


def _accept_gap(arguments: Sequence[object]) -> Request:
    """Read accept_gap(), accept_gap('mysql-bin.000007') or accept_gap('mysql-bin.000007', 4)."""
    if not arguments:
        return AcceptGap()
    offset = cast("int", arguments[1]) if len(arguments) > 1 else _FIRST_POSITION
    return AcceptGap(_binlog("accept_gap", arguments[0]), offset)


def _repair(arguments: Sequence[object]) -> Request:
    """Read repair() or repair('mysql-bin.000007')."""
    return RepairFiles(_binlog("repair", arguments[0]) if arguments else "")


def _view_find(arguments: Sequence[object]) -> Request:
    """Read view_find('gtid', 'source', 'mysql-bin.000007', 4), view_find('gtid', 'view', …) or view_find('gtid', 'gtid', 'uuid:5')."""
    view, by, text = map(str, arguments[:3])
    if by.lower() == "gtid" and len(arguments) == 3:
        return FindViewPlace(view, "gtid", text)
    if by.lower() not in ("source", "view") or len(arguments) != 4:
        raise StatementRefused(
            ErrorCode.ER_WRONG_ARGUMENTS,
            "Incorrect arguments to view_find: write (view, 'source' or 'view', file, position), or (view, 'gtid', 'uuid:number')",
        )
    file = _binlog("view_find", text)
    return FindViewPlace(view, "source" if by.lower() == "source" else "view", file, cast("int", arguments[3]))


def _view_skip(arguments: Sequence[object]) -> Request:
    """Read view_skip('gtid', 'mysql-bin.000007', 4711)."""
    return SkipInView(str(arguments[0]), _binlog("view_skip", arguments[1]), cast("int", arguments[2]))


def _binlog(procedure: str, argument: object) -> str:
    try:
        binlog_number(str(argument))
    except Malformed as error:
        raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, f"Incorrect arguments to {procedure}: {error}") from None
    return str(argument)


_PROCEDURES: Final[dict[str, _Procedure]] = {
    "accept_gap": _Procedure(_accept_gap, (str, int)),
    "repair": _Procedure(_repair, (str,)),
    "scrub": _Procedure(lambda arguments: ScrubNow()),
    "view_list": _Procedure(lambda arguments: ListViews()),
    "view_find": _Procedure(_view_find, (str, str, str, int), least=3),
    "view_skip": _Procedure(_view_skip, (str, str, int), least=3),
}


def call(statement: Statement, captured: Captured) -> Answer:
    """Answer CALL binlog_relay.NAME[(ARGUMENTS)]."""
    tokens = captured[0]
    schema, name, rest = _named(statement, tokens)
    procedure = _PROCEDURES.get(name.lower()) if schema.lower() in (SCHEMA, "") else None
    if procedure is None:
        known = ", ".join(f"{SCHEMA}.{known}" for known in _PROCEDURES)
        full = shown(f"{schema}.{name}" if schema else name, 64)
        raise StatementRefused(
            ErrorCode.ER_SP_DOES_NOT_EXIST, f"PROCEDURE {full} does not exist; binlog-relay has {known}"
        )
    arguments = _arguments(statement, rest)
    if not procedure.least <= len(arguments) <= len(procedure.arguments):
        expected = f"{procedure.least} to {len(procedure.arguments)}"
        raise StatementRefused(
            ErrorCode.ER_SP_WRONG_NO_OF_ARGS,
            f"Incorrect number of arguments for PROCEDURE {SCHEMA}.{name.lower()}; expected {expected}, got {len(arguments)}",
        )
    for number, (argument, wanted) in enumerate(zip(arguments, procedure.arguments, strict=False), start=1):
        if not isinstance(argument, wanted):
            kind = "text" if wanted is str else "number"
            raise StatementRefused(
                ErrorCode.ER_WRONG_ARGUMENTS,
                f"Incorrect arguments to {name.lower()}: argument {number} is to be a {kind}",
            )
    return procedure.make(arguments)


def _named(statement: Statement, tokens: Sequence[Token]) -> tuple[str, str, Sequence[Token]]:
    """Return the schema (empty if not named), the name, and what follows."""
    parts: list[str] = []
    index = 0
    while True:
        if index >= len(tokens) or tokens[index].kind not in (Kind.WORD, Kind.NAME) or len(parts) == 2:
            raise statement.refuse(tokens[index:])
        parts.append(tokens[index].text)
        index += 1
        if index >= len(tokens) or not tokens[index].is_symbol("."):
            break
        index += 1
    return ("", parts[0], tokens[index:]) if len(parts) == 1 else (parts[0], parts[1], tokens[index:])


def _arguments(statement: Statement, tokens: Sequence[Token]) -> list[object]:
    if not tokens:
        return []
    if not tokens[0].is_symbol("(") or not tokens[-1].is_symbol(")") or len(tokens) < 2:
        raise statement.refuse(tokens)
    inner = tokens[1:-1]
    return [statement.evaluate(part).value for part in statement.split(inner)] if inner else []
