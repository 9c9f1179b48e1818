"""The reasons for which rules stop a view are on the page that a DBA is sent to, with the replica's error."""

import ast
import re
from pathlib import Path

import pytest

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
    assert re.match(r"Replica: (none|\d{4,5})", entries()[name])
    assert "**Do:**" in entries()[name]
