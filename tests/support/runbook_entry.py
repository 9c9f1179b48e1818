"""The entries of docs/RUNBOOK.md on alerts, part by part: a rehearsal does what they say, and nothing else."""

import re
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "RUNBOOK.md"


class RunbookEntry:
    """The entry of an alert. Raises: AssertionError if the page has none."""

    def __init__(self, alert: str) -> None:
        text = _PAGE.read_text(encoding="utf-8")
        found = re.search(rf"^## {alert}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found is not None, f"docs/RUNBOOK.md has no entry {alert}"
        self.alert = alert
        _, *told = re.split(r"^\*\*([^*]+)\*\*:", found[1], flags=re.MULTILINE)
        self._parts = {name: " ".join(words.split()) for name, words in zip(told[::2], told[1::2], strict=True)}

    def says(self, part: str, words: str) -> None:
        """Raise AssertionError if the part, such as "Do", does not have these words."""
        assert words in self._parts[part], f"{self.alert}, {part}: not {words!r} but {self._parts[part]!r}"
