"""The findings of the support matrix as the tables in docs/SUPPORT.md, the first of them in README.md too, and read back."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.conftest import ROOT
from tests.interop.support_words import CLEAR, NOTES, OWN_TITLES, TITLES, TLS


@dataclass
class Findings:
    """What was found: by (source, replica), (replica, transport) and (source, transport), with the keys of notes."""

    pairs: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    replicas: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    sources: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


BEGIN: Final = "<!-- support matrix: written by python -m tests.interop.support_matrix --write -->"
END: Final = "<!-- support matrix: end -->"
PAGE: Final = ROOT / "docs" / "SUPPORT.md"
README: Final = ROOT / "README.md"


def tables(found: Findings) -> str:
    """The findings as Markdown."""
    notes: dict[str, int] = {}

    def cell(finding: tuple[str, ...] | None) -> str:
        if finding is None:
            return "?"
        numbers = sorted(notes.setdefault(key, len(notes) + 1) for key in finding[1:])
        return finding[0] + (f" <sup>{', '.join(map(str, numbers))}</sup>" if numbers else "")

    def table(head: list[str], rows: Iterable[tuple[str, list[str]]]) -> list[str]:
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        return lines + [f"| {' | '.join([first, *cells])} |" for first, cells in rows] + [""]

    titles = TITLES | OWN_TITLES
    servers = [name for name in titles if any(name in key for key in found.pairs)]
    lines = ["`yes`: by every login of the second table that the replica has, its tables are the source's.", ""]
    lines += table(
        ["source ↓ replica →", *(titles[name] for name in servers)],
        [(titles[source], [cell(found.pairs.get((source, each))) for each in servers]) for source in servers],
    )
    for head, findings in (
        ("replica logs in to the relay by", found.replicas),
        ("relay logs in to the source by", found.sources),
    ):
        lines += table(
            [head, "in clear", "over TLS"],
            [(titles[name], [cell(findings.get((name, transport))) for transport in (CLEAR, TLS)]) for name in servers],
        )
    lines += [f"{number}. {NOTES[key]}" for key, number in notes.items()]
    return "\n".join(lines)


def read_cells(text: str) -> dict[tuple[str, str, str], str]:
    """The cells of tables made by `tables`, by (table, row, column); numbers of notes replaced by their texts."""
    notes: dict[str, str] = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))

    def spelled(cell: str) -> str:
        match = re.fullmatch(r"(.*?) <sup>(.*)</sup>", cell)
        return cell if match is None else " | ".join([match[1], *(notes[number] for number in match[2].split(", "))])

    cells: dict[tuple[str, str, str], str] = {}
    head: list[str] = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if not parts:
            head = head if line.startswith("|---") else []
        elif not head:
            head = parts
        else:
            for column, part in zip(head[1:], parts[1:], strict=True):
                cells[head[0], parts[0], column] = spelled(part)
    return cells


def short_table(text: str) -> str:
    """The first table of those made by `tables`, who works with whom, for readers who find the notes on the other page."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    return "\n".join(lines[first : lines.index("", first)])


def part(page: Path) -> str:
    """What stands between the two marks on a page."""
    text = page.read_text(encoding="utf-8")
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


def write_pages(text: str) -> None:
    """Puts the tables between the two marks on their pages."""
    for page, tables_of_it in ((PAGE, text), (README, short_table(text))):
        old = page.read_text(encoding="utf-8")
        head, tail = old[: old.index(BEGIN) + len(BEGIN)], old[old.index(END) :]
        page.write_text(f"{head}\n\n{tables_of_it}\n\n{tail}", encoding="utf-8")
