"""The reasons for which rules stop a view are on the page that a DBA is sent to, with the replica's error."""

import ast
import re
from pathlib import Path

import pytest

from relay.view.rules.group import StopReason

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "ERRORS.md"


def told() -> set[str]:
    tree = ast.parse((ROOT / "relay" / "view" / "rules" / "stop_reasons.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "_stop"]
    return {str(ast.literal_eval(call.args[0])) for call in calls}


def entries() -> dict[str, str]:
    found = re.findall(
        r"^### view: (\w+)\n\n(.*?)(?=^#|\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return dict(found)


def test_every_reason_is_on_the_page() -> None:
    assert told() <= set(entries())


@pytest.mark.parametrize("name", sorted(entries()))
def test_an_entry_says_what_a_replica_would_do_and_the_way_on(name: str) -> None:
    # 22: EE_UNKNOWN_COLLATION, of the servers' own library.
    assert re.match(r"Replica: (none|22|\d{4,5})\b", entries()[name])
    assert "**Do:**" in entries()[name]


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
def test_what_stops_a_view_and_the_ways_on_are_told_as_sentences(text: str, advice: str, expected: str) -> None:
    assert StopReason("name", text, 0, advice).told == expected
