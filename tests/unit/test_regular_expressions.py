"""No text of a source or a client makes a regular expression slow: `re` holds the interpreter's lock, so the whole relay would stand.

Each pattern of the modules that read such texts runs against hostile texts of two sizes: what leads up to one of its repeats, and from
there on something over and over. What takes longer than in proportion fails.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import perf_counter, thread_time
from types import ModuleType
from typing import Any, Final
from uuid import UUID

import pytest

from protocol.errors import StatementRefused
from protocol.sql.control import control_of
from protocol.sql.kind import kind_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.named_tables import read_tables, written_tables
from protocol.sql.statements.statement_names import defined_names
from protocol.statements.expression.tokens import tokenize
from protocol.statements.session.secrets import without_secrets
from relay.view.rules.definition_rules import define
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.definitions_learned import learn
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops.stop_reason import Untranslatable

OF_LIBRARIES: Final = {
    "relay.audit": ("pyarrow", "pyspark"),
    "relay.binlog_tables": ("pyarrow",),
    "relay.feed": ("duckdb", "pyarrow"),
    "relay.report": ("jinja2", "pygal"),
    "relay.spark": ("duckdb", "pyarrow", "pyspark"),
}
PACKAGES: Final = (
    *("protocol", "relay.admin", "relay.schema_history", "relay.view"),
    *(name for name, needed in OF_LIBRARIES.items() if all(map(find_spec, needed))),
)
ONE_CHARACTER: Final = (codes.IN, codes.ANY, codes.LITERAL, codes.NOT_LITERAL, codes.CATEGORY)
OF_SPARK: Final = ("audit", "shared")
"""Patterns there are Java's."""
FEW: Final = (12, 16, 20, 24)
"""So many repeats show what doubles with each."""
SMALL: Final = 1_000
TIMES: Final = 8
SLOWER: Final = 20
"""So many times as long may TIMES times the text take."""
FLOOR_SECONDS: Final = 0.01
"""What takes less is fast enough, whatever it is compared with."""
SHORTENED: Final = 4
NEARLY_LINEAR: Final = 10
UNITS: Final = (
    " ", "\n", "\t \n", "'", "''", '"', "`", "``", "\\", "\\'", "a", "A ", "a.", "`a`.", "0", "1", "1.", "(", ")", ",", "=", " = ", "/",
    "*", "/*", "*/", "/**/", "/* */ ", "/*!", "/*!50001 ", "/*!*/", "-", "-- ", "--\n", "-- x\n", "#", "#\n", "@", "@@", "$", "_", "\0",
    ":", ":=", "\u00e9",
)  # fmt: skip
SUFFIXES: Final = ("", "!")
SEARCHES: Final = ("search", "finditer", "findall", "sub", "subn", "split")


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, name + "."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from patterns_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from patterns_in(one)


def searched_names(module: ModuleType) -> set[str]:
    """The names of the module that are looked for anywhere in a text, and not only where it begins."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except OSError:
        return set()
    return {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in SEARCHES and isinstance(node.value, ast.Name)
    }


def all_patterns() -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Where each stands -> the pattern, and whether it is searched for."""
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    for module in modules():
        searched = searched_names(module)
        for name, value in vars(module).items():
            for number, pattern in enumerate(patterns_in(value)):
                found[f"{module.__name__}.{name}.{number}"] = pattern, name in searched
    return found


PATTERNS: Final = all_patterns()


def a_match(tree: Any) -> str:
    """Some text that the pattern matches, or nearly."""
    return "".join(map(_example, tree))


def _example(item: Any) -> str:
    code, given = item
    if code is codes.LITERAL:
        return chr(given)
    if code is codes.NOT_LITERAL:
        return "a" if given != ord("a") else "b"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _of_class(given)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return a_match(given[2]) * max(given[0], 1 if given[1] is codes.MAXREPEAT else 0)
    if code is codes.SUBPATTERN:
        return a_match(given[-1])
    if code is codes.ATOMIC_GROUP:
        return a_match(given)
    if code is codes.BRANCH:
        return a_match(given[1][0])
    return ""


def _of_class(items: Any) -> str:
    negated = items[0][0] is codes.NEGATE
    for one in "a 0'_.+A\n":
        if any(_holds(item, one) for item in items if item[0] is not codes.NEGATE) != negated:
            return one
    return "a"


def _holds(item: Any, one: str) -> bool:
    code, given = item
    if code is codes.LITERAL:
        return bool(ord(one) == given)
    if code is codes.RANGE:
        return bool(given[0] <= ord(one) <= given[1])
    category = str(given)
    is_of = (
        one.isspace() if "SPACE" in category else one.isdigit() if "DIGIT" in category else one.isalnum() or one == "_"
    )
    return is_of != ("NOT" in category)


def starts(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what leads up to a repeat, one time of it) for each repeat of the pattern."""
    for item in tree:
        code, given = item
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield before, a_match(given[2])
            yield from starts(given[2], before)
        elif code is codes.SUBPATTERN:
            yield from starts(given[-1], before)
        elif code is codes.ATOMIC_GROUP:
            yield from starts(given, before)
        elif code is codes.BRANCH:
            for branch in given[1]:
                yield from starts(branch, before)
        before += _example(item)


def hostile_texts(pattern: re.Pattern[Any]) -> dict[tuple[str, str, str], None]:
    """(beginning, unit to be repeated, end)."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & ~re.UNICODE
    found: dict[tuple[str, str, str], None] = {}
    words = dict.fromkeys(re.findall("[A-Za-z]{2,}", source))
    for before, once in dict.fromkeys([("", "a"), *starts(parser.parse(source, flags))]):
        for unit in dict.fromkeys([once, *UNITS, *words, *(word + " " for word in words)]):
            for end in SUFFIXES:
                found[before, unit or "a", end] = None
    return found


def seconds(run: Callable[[Any], object], text: Any) -> float:
    """Of the processor's time."""
    started = thread_time()
    run(text)
    return thread_time() - started


def takes_less(run: Callable[[Any], object], text: Any, limit: float) -> bool:
    """Whether it takes so many seconds at the most, by the clock that costs least to ask; by the processor's where it is not sure."""
    started = perf_counter()
    run(text)
    return perf_counter() - started < limit or min(seconds(run, text) for _ in range(2)) < limit


def is_slow(run: Callable[[Any], object], text: Callable[[int], Any], floor: float = FLOOR_SECONDS) -> bool:
    """Whether more of the same text takes longer than in proportion. text: of so many repeats."""
    if doubles(run, text, floor):
        return True
    if is_quick(run, text, floor) or seconds(run, text(SMALL * TIMES)) < floor:
        return False
    small = min(seconds(run, text(SMALL)) for _ in range(5))
    large = min(seconds(run, text(SMALL * TIMES)) for _ in range(3))
    return large > max(SLOWER * small, floor)


def doubles(run: Callable[[Any], object], text: Callable[[int], Any], floor: float) -> bool:
    """Whether a few repeats more take much longer. What the fewest do at once, the most can be tried with."""
    at_once = takes_less(run, text(FEW[0]), floor / 200)
    return not all(takes_less(run, text(few), floor) for few in (FEW[-1:] if at_once else FEW))


def is_quick(run: Callable[[Any], object], text: Callable[[int], Any], floor: float) -> bool:
    """Whether shorter texts show that it is not slow; so they do nearly always.

    What takes `floor` for the long text, and grows with its cube at most, takes a 64th of it for a fourth of the text. Of what takes
    more, the part that grows with the square makes it 14 times as much for TIMES times the text; what is linear, TIMES as much.
    """
    short = SMALL // SHORTENED
    if takes_less(run, text(short * TIMES), floor / SHORTENED**3):
        return True
    return seconds(run, text(short * TIMES)) < NEARLY_LINEAR * min(seconds(run, text(short)) for _ in range(2))


@pytest.mark.parametrize("name", PATTERNS)
def test_no_text_makes_a_pattern_slow(name: str) -> None:
    pattern, searched = PATTERNS[name]
    of_bytes = isinstance(pattern.pattern, bytes)
    method = "search" if searched else "match"

    def run(text: Any) -> None:
        if method == "search":
            for _ in pattern.finditer(text):
                pass
        else:
            pattern.fullmatch(text)  # it goes each way that `match` goes, and where that is content, further

    for pieces in hostile_texts(pattern):
        text = partial(repeated, *(piece.encode("utf-8") for piece in pieces) if of_bytes else pieces)
        assert not is_slow(run, text), (
            f"{method} of {pattern.pattern!r}: {pieces[0]!r}, many times {pieces[1]!r}, {pieces[2]!r}"
        )


def repeated(before: Any, unit: Any, end: Any, size: int) -> Any:
    """A text of so many bytes or characters; with few ones of so many units."""
    return before + unit * (size if size in FEW else size // len(unit) + 1) + end


@functools.lru_cache(maxsize=16)
def _a_query(text: str) -> LoggedQuery:
    """For all readers: its words are cut out once."""
    return LoggedQuery(b"", text.encode(), 7, 0, b"d", b"\x04\x08\0\x08\0\x08\0", "5.6.24-log")


def _a_definition(text: str) -> None:
    define(_a_query(text), ViewSettings("v", "assign", UUID(int=16), engines="innodb"), TableEngines())


def _learned(text: str) -> None:
    learn(TableEngines(), _a_query(text))


def _source_statement(text: str) -> None:
    SourceStatement(text.encode(), 8, 0, 90704, TARGETS_BY_NAME["mysql-5.6"])


READERS: Final[dict[str, Callable[[str], object]]] = {
    "tokens of definitions": lambda text: _a_query(text).tokens,
    "tokens of clients": lambda text: tokenize(text),
    "definition": _a_definition,
    "learned": _learned,
    "written tables": lambda text: written_tables(_a_query(text)),
    "read tables": lambda text: read_tables(_a_query(text)),
    "control": lambda text: control_of(text.encode()),
    "kind": lambda text: kind_of(text.encode()),
    "defined names": lambda text: defined_names(text.encode(), 0),
    "source statement": _source_statement,
    "secrets": without_secrets,
}
BEGINNINGS: Final = ("", "CREATE TABLE t (a INT) ", "INSERT INTO t VALUES (1")
REFUSALS: Final = (UnsupportedSyntax, Untranslatable, StatementRefused)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_no_text_makes_a_reader_of_statements_slow(unit: str) -> None:
    def run(text: str) -> None:
        with contextlib.suppress(*REFUSALS):
            READERS[name](text)

    for before in BEGINNINGS:
        text = functools.cache(partial(repeated, before, unit, ""))
        for name in READERS:
            assert not is_slow(run, text, 0.1), (name, before, unit)


def possessive_groups(tree: Any) -> Iterator[Any]:
    """Of a parsed pattern the repeats of more than one character that give nothing back, such as (?:ab?c)*+."""
    for code, given in tree:
        if code is codes.POSSESSIVE_REPEAT and (len(given[2]) > 1 or given[2][0][0] not in ONE_CHARACTER):
            yield given
        parts = (
            [given] if isinstance(given, parser.SubPattern) else list(given) if isinstance(given, tuple | list) else []
        )
        while parts:
            part = parts.pop()
            if isinstance(part, parser.SubPattern):
                yield from possessive_groups(part)
            elif isinstance(part, tuple | list):
                parts += part


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_repeats_a_group_in_a_form_that_some_pythons_get_wrong(name: str) -> None:
    # Before 3.11.5, which Debian 12 has (3.11.2), (?:ab?c)*+ misses matches (gh-106052); (?>(?:ab?c)*) is the same, and right.
    pattern, _searched = PATTERNS[name]
    assert not list(possessive_groups(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)))


@pytest.mark.parametrize("package", ["protocol", "relay"])
def test_no_source_has_such_a_form_either(package: str) -> None:
    # Patterns that functions make are in no module's names.
    (root,) = importlib.import_module(package).__path__
    found = [
        f"{path}:{number}"
        for path in Path(root).rglob("*.py")
        if path.parts[-3:-1] != OF_SPARK
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\)([*+?]|\{[0-9,]+\})\+", line)
    ]
    assert found == []


SQL: Final = re.compile(
    r"(?:(?<![A-Za-z])|(?<=\\[bs]))(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|INSERT|REPLACE|UPDATE|DELETE|SELECT|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|GRANT|REVOKE"
    r"|TABLE|PARTITION|ENGINE|REFERENCES|CHECK|IDENTIFIED|CHARACTER|COLLATE|TRIGGER|LIMIT|AUTO_INCREMENT|XA)(?![A-Za-z])|/\\\*",
    re.IGNORECASE,
)
READ_ELSEWHERE: Final = {
    # what clients of the relay send
    "protocol.statements.session.secrets": {"_VERBS"},
    # words anywhere in a text, where it is not or cannot be read as a whole
    "relay.schema_history.definition_scan": {"_TRIGGER"},
    "relay.schema_history.logged_definition": {"_PASSWORD", "_RENAMES"},
    "relay.view.rules.definition_rules": {"_TABLE", "_NAMES_ENGINE", "_REFERS", "_CHECKS"},
    "relay.view.rules.row_order": {"_NUMBERS"},
    "relay.view.rules.mariadb.status.mode_differences": {"_ON_UPDATE", "_UPDATE"},
    "relay.view.rules.mariadb.status.status_translation": {"_NO_CLAUSE", "_NAMES_CHARSET"},
    "relay.feed.statements.definition_effect": {"_COPIES", "_ENGINE"},
    "relay.feed.statements.logged_changes": {"_QUOTED_OR_COMMENT", "_SECRETS"},
    # comments, by what is right before or in them
    "relay.view.rules.mariadb.statement.executable_comments": {"_HINTED"},
    "relay.view.rules.mariadb.statement.object_statements": {"_GENERATED"},
    # no statements: a column's type as servers show it, a dump's lines
    "relay.schema_history.table_agreement": {"_COMMENT"},
    "relay.view.seeding.sql_dump": {"_DATA"},
}
"""Patterns about SQL outside of protocol/sql/, by module. The audits' patterns for Spark, which are Java's, are in none of these."""


def test_patterns_about_sql_are_where_sql_is_read() -> None:
    found: dict[str, set[str]] = {}
    homes: dict[int, str] = {}
    for place, (pattern, _searched) in sorted(
        PATTERNS.items(), key=lambda item: not item[0].startswith("protocol.sql.")
    ):
        module, name, _number = place.rsplit(".", 2)
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        if (
            SQL.search(text)
            and homes.setdefault(id(pattern), module) == module
            and not module.startswith("protocol.sql.")
        ):
            found.setdefault(module, set()).add(name)
    assert found == READ_ELSEWHERE
