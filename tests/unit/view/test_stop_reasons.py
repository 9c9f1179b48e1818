"""All reasons for which a view stops are in one place, and on the pages for DBAs, with a replica's error and the way on."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from relay.view.stops.stop_reason import StopReason

ROOT = Path(__file__).resolve().parents[3]
STOPS = ROOT / "relay" / "view" / "stops"
ERRORS = (ROOT / "docs" / "ERRORS.md").read_text(encoding="utf-8")
VIEWS = (ROOT / "docs" / "VIEWS.md").read_text(encoding="utf-8")


def reasons_in_code() -> dict[str, set[str]]:
    """The names of all reasons, each with a replica's errors as far as they are always the same; 0: none."""
    found: dict[str, set[str]] = {}
    for path in STOPS.glob("*_stops.py"):
        module = importlib.import_module(f"relay.view.stops.{path.stem}")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("StopReason", "stop"):
                name, error = (ast.unparse(node.args[at]) for at in (0, 1 if ast.unparse(node.func) == "stop" else 2))
                if name != "name":
                    errors = found.setdefault(str(getattr(module, name, name.strip("'"))), set())
                    errors |= {value for value in [str(getattr(module, error, error))] if value.isdecimal()}
    return found


REASONS = reasons_in_code()
NAMES = sorted(REASONS)


def entries() -> dict[str, str]:
    part = ERRORS.partition("## Why a view stops")[2].partition("\n## ")[0]
    return dict(re.findall(r"^### view: (\w+)\n\n(.*?)(?=^#|\Z)", part, re.MULTILINE | re.DOTALL))


def test_reasons_are_made_in_one_place() -> None:
    elsewhere = {
        path.name
        for path in (ROOT / "relay").rglob("*.py")
        if path.parent != STOPS and "StopReason(" in path.read_text(encoding="utf-8")
    }
    assert elsewhere == {"standing_stop.py", "unopened_view.py"}  # what was kept before; a view that is not opened


def test_the_page_of_views_lists_the_reasons_that_there_are_and_no_others() -> None:
    table = VIEWS.partition("## What stops a view")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\[?`.*?) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(NAMES)


def test_the_page_of_errors_explains_the_reasons_that_there_are_and_no_others() -> None:
    assert set(entries()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_what_a_replica_would_do_and_the_way_on(name: str) -> None:
    # 22: EE_UNKNOWN_COLLATION, of the servers' own library.
    assert re.match(r"Replica: (none|22|\d{4,5})\b.*Data: .*\*\*Do:\*\* ", entries()[name], re.DOTALL)
    replica = entries()[name].partition("Data:")[0]
    assert all(("none" if error == "0" else error) in replica for error in REASONS[name])
    page = "ERRORS.md"
    assert f"[`{name}`]({page}#view-{name})" in VIEWS


@pytest.mark.parametrize(
    ("text", "advice", "expected"),
    [
        ("x is not known", "use another, or skip", "x is not known. Use another, or skip."),
        ("x is not known", "Use another.", "x is not known. Use another."),
        ("x is not known.", "", "x is not known."),
        ("x is not known", "", "x is not known."),
        ("One. Two.", "Three.", "One. Two. Three."),
    ],
)
def test_what_stops_a_view_and_the_ways_on_are_sentences(text: str, advice: str, expected: str) -> None:
    assert StopReason("name", text, 0, advice).message == expected
