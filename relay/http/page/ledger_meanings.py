"""The meaning of each kind of the ledger's rows and the next step, for the page: generated from docs/ERRORS.md.

python -m relay.http.page.ledger_meanings docs/ERRORS.md > relay/http/page/assets/ledger_meanings.json
"""

import json
import re
import sys
from pathlib import Path
from typing import Final

_ENTRY: Final = re.compile(r"^### (ledger|source): (\w+)\n(.*?)(?=^#|\Z)", re.DOTALL | re.MULTILINE)
_RUNBOOK: Final = "docs/RUNBOOK.md#"
_OF_TROUBLES: Final = "binlogrelaysourcegivenup"
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def meanings(page: str) -> dict[str, dict[str, str]]:
    """Return `means` and `do` as plain text, and the place in the `runbook`, by kind. page: the text of docs/ERRORS.md."""
    found: dict[str, dict[str, str]] = {}
    for entry in _ENTRY.finditer(page):
        part, kind, text = entry.groups()
        means, _, advice = text.partition("**Do:**")
        place = f"{part}-{kind}" if part == "ledger" else _OF_TROUBLES
        # A ledger's own entry explains its row better than the entry of the source trouble of that name.
        if kind not in found or part == "ledger":
            found[kind] = {"means": _plain(means), "do": _plain(advice), "runbook": _RUNBOOK + place}
    return dict(sorted(found.items()))


def _plain(text: str) -> str:
    words = " ".join(_LINK.sub(r"\1", text).replace("`", "").replace("**", "").split())
    return words[:1].upper() + words[1:]


if __name__ == "__main__":
    print(json.dumps(meanings(Path(sys.argv[1]).read_text(encoding="utf-8")), indent=1, ensure_ascii=False))  # noqa: T201 - a command's own output
