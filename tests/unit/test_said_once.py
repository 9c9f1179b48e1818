"""Facts of servers have one home each: no other module lists engines or modes, or has codes of its own."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from protocol.binlog.event_type import EventType
from protocol.columns.codes import column_codes
from protocol.sql.engines import names_of_engines
from protocol.sql.sql_mode import ANSI_QUOTES, MODE_NAMES, NO_BACKSLASH_ESCAPES

ROOT: Final = Path(__file__).parents[2]
MODULES: Final = sorted(path for folder in ("protocol", "relay") for path in (ROOT / folder).rglob("*.py"))
_ENOUGH: Final = 3
"""So many names of one kind in a row are a list of them."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def listed_texts(tree: ast.Module) -> Iterator[set[str]]:
    """The strings of each literal list, set, tuple and dictionary, in upper case."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            values = [item.value for item in items if isinstance(item, ast.Constant)]
            texts = {value.decode("latin-1") if isinstance(value, bytes) else value for value in values}
            yield {text.upper() for text in texts if isinstance(text, str)}


def named_numbers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The module's constants that are numbers, or 1 shifted, by the name without underscores before it."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            match node.value:
                case ast.Constant(value=int(value)):
                    yield node.target.id.lstrip("_"), value
                case ast.BinOp(left=ast.Constant(value=1), op=ast.LShift(), right=ast.Constant(value=int(shift))):
                    yield node.target.id.lstrip("_"), 1 << shift


def others(*homes: str) -> list[Path]:
    found = [path for path in MODULES if str(path.relative_to(ROOT)) not in homes]
    assert len(found) == len(MODULES) - len(homes)
    return found


@pytest.mark.parametrize(
    ("home", "names", "enough"),
    [
        ("protocol/sql/engines.py", {name.upper() for name in names_of_engines()}, _ENOUGH),
        ("protocol/sql/sql_mode.py", set(MODE_NAMES), _ENOUGH),
    ],
)
def test_no_other_module_lists(home: str, names: set[str], enough: int) -> None:
    found = {
        str(path.relative_to(ROOT)): sorted(texts & names)
        for path in others(home)
        for texts in listed_texts(tree_of(path))
        if len(texts & names) >= enough
    }
    assert found == {}


CODES: Final = {
    **{event.name: event.value for event in EventType},
    **{name.removeprefix("FIELD_"): value for name, value in vars(column_codes).items() if name.startswith("FIELD_")},
}


def test_no_other_module_names_the_code_of_an_event_or_of_a_column() -> None:
    found = {
        str(path.relative_to(ROOT)): name
        for path in others("protocol/kernel/codes.py", "protocol/columns/codes/column_codes.py")
        for name, value in named_numbers(tree_of(path))
        if CODES.get(re.sub("^(MYSQL_TYPE|FIELD|TYPE)_|_EVENT$", "", name)) == value
    }
    assert found == {}


def test_no_other_module_names_a_bit_of_sql_mode() -> None:
    """Those of the compiled reader are numbers of C."""
    found = {
        str(path.relative_to(ROOT)): name
        for path in others("protocol/sql/sql_mode.py", "protocol/columns/codes/column_codes.py")
        for name, _value in named_numbers(tree_of(path))
        if name in MODE_NAMES
    }
    assert found == {}
    assert (column_codes.ANSI_QUOTES, column_codes.NO_BACKSLASH_ESCAPES) == (ANSI_QUOTES, NO_BACKSLASH_ESCAPES)


def test_a_second_list_is_found() -> None:
    tree = ast.parse(
        'A: Final = frozenset(("MyISAM", "csv"))\nB = {b"memory": 1}\n_FIELD_LONG: Final = 3\nSTRICT: Final = 1 << 2'
    )
    assert {"MYISAM", "CSV"} in list(listed_texts(tree)) and {"MEMORY"} in list(listed_texts(tree))
    assert list(named_numbers(tree)) == [("FIELD_LONG", 3), ("STRICT", 4)]
