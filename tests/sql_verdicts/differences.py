"""The decided differences between lexers, as lexer_differences.toml has them."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.sql_verdicts.lexers import LEXERS, REFUSED, digest_alike, of_definitions
from tests.sql_verdicts.setting import MODES, SERVERS, Setting

FILE: Final = Path(__file__).with_name("lexer_differences.toml")
DIGEST: Final = "digest"
_REFUSALS: Final = {"either": ("", "sql_tokens", "lexer")}


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of the file. `refuses`: sql_tokens or lexer, of which the other reads on; "": both read; "either": any of these."""

    name: str
    lexers: tuple[str, ...]
    pattern: re.Pattern[str]
    modes: tuple[str, ...]
    refuses: str
    input: str

    def explains(self, found: "Found") -> bool:
        """Whether the text has what the row is about, not behind the place where the lexers part."""
        if (
            found.lexer not in self.lexers
            or found.setting.mode not in self.modes
            or found.refuses not in _REFUSALS.get(self.refuses, (self.refuses,))
        ):
            return False
        match = self.pattern.search(found.text)
        return match is not None and (bool(found.refuses) or match.start() <= found.at)


@dataclass(frozen=True, slots=True)
class Found:
    """A lexer that differs from `sql_tokens`. at: the first character of which it says something else."""

    lexer: str
    setting: Setting
    text: str
    refuses: str
    at: int


def listed_differences() -> list[Difference]:
    """All rows."""
    rows: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["difference"]
    return [
        Difference(
            row["name"],
            tuple(row["lexers"]),
            re.compile(row["pattern"], re.DOTALL),
            tuple(row.get("modes", MODES)),
            row.get("refuses", ""),
            row["input"],
        )
        for row in rows
    ]


def found_differences(text: str) -> list[Found]:
    """Of all lexers, on statements of all servers and in all modes. text: of characters that latin-1 has."""
    found = []
    for server in SERVERS:
        for mode in MODES:
            setting = Setting(server, mode)
            usual = of_definitions(text, setting)
            for name, lexer in LEXERS.items():
                made = lexer(text, setting)
                if made == usual:
                    continue
                if REFUSED in (made, usual):
                    refuses = "sql_tokens" if usual == REFUSED else "lexer"
                    found.append(Found(name, setting, text, refuses, 0))
                else:
                    at = next(at for at, (one, other) in enumerate(zip(made, usual, strict=True)) if one != other)
                    found.append(Found(name, setting, text, "", at))
            if not digest_alike(text, setting):
                found.append(Found(DIGEST, setting, text, "", len(text)))
    return found
