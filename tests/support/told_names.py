"""The names that users meet in the log and the ledger, found in the source text of relay/: docs/ERRORS.md explains each.

A name is a constant where it is reported, or it arrives there through parameters of functions, which are followed to their callers.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.upstream.source import source_errors
from relay.upstream.stream import intake

RELAY: Final = Path(__file__).resolve().parents[2] / "relay"
LEVELS: Final = {
    "debug": "debug",
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
    "critical": "critical",
}
_LOGGERS: Final = ("log", "_log", "get_logger()")
_HANDED_ON: Final = {"_find": ("find",), "append_ledger": ("_note",)}
"""Functions that are passed to others, with their names there."""
_FIRST_ERROR: Final = 16
"""The first of the kernel's statuses that is an error."""


class Unresolved(Exception):
    """The error that a reported name cannot be found. `str()` says where."""


@cache
def log_events() -> dict[str, frozenset[str]]:
    """Return the levels at which each event is logged, by its name. Raises: Unresolved."""
    found: dict[str, set[str]] = defaultdict(set)
    for call, at in _calls():
        method = call.func
        if isinstance(method, ast.Attribute) and method.attr in LEVELS and _is_logger(method.value):
            for name in _texts(call.args[0], at, call):
                found[name].add(LEVELS[method.attr])
    return {name: frozenset(levels) for name, levels in found.items()}


@cache
def ledger_kinds() -> frozenset[str]:
    """Return the kinds of the ledger's rows, except the names of `source_troubles`, which may be kinds too. Raises: Unresolved."""
    return frozenset(
        name
        for call, at in _calls()
        if _name(call.func) == LedgerRow.__name__ and not isinstance(call.args[0], ast.Starred)
        for name in _texts(call.args[1], at, call)
    )


@cache
def source_troubles() -> frozenset[str]:
    """Return the names of what can end the stream from a source (`trouble` in the log). Raises: Unresolved."""
    own = [
        thing for thing in vars(source_errors).values() if getattr(thing, "__module__", "") == source_errors.__name__
    ]
    (error,) = (thing for thing in own if isinstance(thing, type) and issubclass(thing, Exception))
    (classes,) = (thing for thing in own if isinstance(thing, type) and issubclass(thing, Enum))
    found = {str(name) for status, name in vars(intake)["kernel"].STATUS_NAMES.items() if status >= _FIRST_ERROR}
    for call, at in _calls():
        if _name(call.func) != error.__name__:
            continue
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "name"), None)
        if isinstance(given, ast.Constant | ast.IfExp):
            found.update(_texts(given, at, call))
        elif given is None and isinstance(call.args[0], ast.Attribute):
            found.add(str(classes[call.args[0].attr].value))
        elif not (isinstance(given, ast.Attribute) and given.attr == "name") and at.name != "intake.py":
            raise Unresolved(f"{at}:{call.lineno}: {ast.unparse(call)}")
    return frozenset(found)


def _is_logger(value: ast.expr) -> bool:
    return ast.unparse(value).rpartition(".")[2] in _LOGGERS


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


# --- the source text -------------------------------------------------------------------------------------------------


@cache
def _trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(RELAY.rglob("*.py"))}


@cache
def _calls() -> tuple[tuple[ast.Call, Path], ...]:
    nodes = ((node, path) for path, tree in _trees().items() for node in ast.walk(tree))
    return tuple((node, path) for node, path in nodes if isinstance(node, ast.Call))


@cache
def _parents() -> dict[ast.AST, ast.AST]:
    return {
        child: node for tree in _trees().values() for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
    }


def _around(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node is in, the innermost first."""
    while (outer := _parents().get(node)) is not None:
        yield outer
        node = outer


def _texts(value: ast.expr, at: Path, place: ast.AST) -> Iterator[str]:
    """Yield the possible values of this expression. Raises: Unresolved."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.IfExp):
        yield from _texts(value.body, at, place)
        yield from _texts(value.orelse, at, place)
    elif isinstance(value, ast.Attribute) and value.attr == "name":
        return  # of an error that ended the stream: source_troubles
    elif isinstance(value, ast.Name):
        yield from _named(value.id, at, place)
    else:
        raise Unresolved(f"{at}:{place.lineno}: {ast.unparse(value)}")  # type: ignore[attr-defined]


def _named(name: str, at: Path, place: ast.AST) -> Iterator[str]:
    """Yield the values of a variable: a parameter, the variable of a loop over what a function returns, or a constant of a module."""
    for outer in _around(place):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = [one.arg for one in outer.args.args if one.arg != "self"]
            if name in parameters:
                yield from _given(outer.name, parameters.index(name), len(parameters) - len(outer.args.defaults))
                return
        elif isinstance(outer, ast.For) and isinstance(outer.iter, ast.Call) and _is_first(name, outer.target):
            yield from _first_of_tuples(_name(outer.iter.func))
            return
    values = _constants(name)
    if len(values) != 1:
        raise Unresolved(f"{at}:{place.lineno}: {name} is {sorted(values) or 'unknown'}")  # type: ignore[attr-defined]
    yield from values


def _constants(name: str) -> frozenset[str]:
    """Return the texts that modules assign to a name."""
    return frozenset(_named_texts().get(name, ()))


@cache
def _named_texts() -> dict[str, set[str]]:
    """Return the texts of all modules by the names that are assigned to them."""
    found: dict[str, set[str]] = {}
    for tree in _trees().values():
        for node in tree.body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if isinstance(given := getattr(node, "value", None), ast.Constant):
                for target in targets:
                    found.setdefault(ast.unparse(target), set()).add(str(given.value))
    return found


def _given(function: str, index: int, required: int) -> Iterator[str]:
    """Yield what callers pass to a function for its parameter `index`. A caller with fewer arguments than required calls another of
    that name."""
    handed_on = _HANDED_ON.get(function, ())
    for call, at in _calls():
        is_it = _name(call.func) == function and len(call.args) >= required
        if is_it or (_name(call.func) in handed_on and len(call.args) == required):
            yield from _texts(call.args[index], at, call)


def _is_first(name: str, target: ast.expr) -> bool:
    return isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name) and target.elts[0].id == name


def _first_of_tuples(function: str) -> Iterator[str]:
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                for part in ast.walk(node):
                    if isinstance(part, ast.Tuple) and part.elts and isinstance(part.elts[0], ast.Constant):
                        yield str(part.elts[0].value)


# --- errors of replicas ----------------------------------------------------------------------------------------------

_REFUSALS: Final = ("refusal", "set_up_missing", "_refused", "PositionRefused", "AnsweredError", "PeerError")
_TOLD_BY: Final = ("relay/downstream", "protocol/gtid", "protocol/source_side")


@cache
def error_texts() -> frozenset[frozenset[str]]:
    """Return what replicas are told when they are not served: for each place in the code the sentences, with … for what is filled
    in."""
    found: set[frozenset[str]] = set()
    for folder in _TOLD_BY:
        for path in sorted((RELAY.parent / folder).rglob("*.py")):
            for outer in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.update(_told_in(outer))
    return frozenset(found - {frozenset()})


def _told_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[frozenset[str]]:
    assigned: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned[node.targets[0].id].append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _name(node.func) in _REFUSALS:
            texts = [text for argument in node.args for text in _filled(argument, assigned)]
            yield frozenset(text for text in texts if any(character.isalpha() for character in text))


def _filled(text: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[str]:
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        yield text.value
    elif isinstance(text, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in text.values)
        for part in text.values:  # a sentence that was chosen before
            if isinstance(part, ast.FormattedValue):
                yield from _filled(part.value, assigned)
    elif isinstance(text, ast.BinOp):
        yield from _filled(text.left, assigned)
    elif isinstance(text, ast.Name):
        for value in assigned.get(text.id, ()):
            yield from _filled(value, {})
        yield from _constants(text.id)
