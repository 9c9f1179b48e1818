"""docs/VIEWS.md and docs/ERRORS.md have every reason for which a view stops."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MAKERS = ("StopReason", "_stop", "_stopped", "stop")


def names_in_code() -> set[str]:
    found = set()
    for path in (ROOT / "relay" / "view").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in MAKERS and isinstance(node.args[0].value, str):
                    found.add(node.args[0].value)
    return found


def test_the_page_has_the_reasons_that_there_are_and_no_others() -> None:
    page = (ROOT / "docs" / "VIEWS.md").read_text(encoding="utf-8")
    table = page.partition("## What stops a view")[2].partition("\n## ")[0]
    told = {
        name for row in re.findall(r"^\| (\[?`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert told == names_in_code()


def test_each_reason_is_explained_with_what_to_do_and_linked() -> None:
    page = (ROOT / "docs" / "ERRORS.md").read_text(encoding="utf-8")
    part = page.partition("## Why a view stops")[2].partition("\n## ")[0]
    explained = dict(re.findall(r"^### view: (\w+)\n(.*?)(?=^###|\Z)", part, re.MULTILINE | re.DOTALL))
    assert set(explained) == names_in_code()
    assert all(re.search(r"Replica: .*Data: .*\*\*Do:\*\* ", text, re.DOTALL) for text in explained.values())
    views = (ROOT / "docs" / "VIEWS.md").read_text(encoding="utf-8")
    page_name = "ERRORS.md"
    assert not {name for name in explained if f"[`{name}`]({page_name}#view-{name})" not in views}
