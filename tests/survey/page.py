"""The table of docs/DIFFERENCES.md, from the data of the survey."""

from pathlib import Path
from typing import Final

from protocol.sql.survey.survey_row import STRICT, SurveyRow
from protocol.sql.survey.surveyed import PAIRS, Survey, SurveyKind, read_survey

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "DIFFERENCES.md"
BEGIN, END = "<!-- made by `python -m tests.survey page` -->\n", "<!-- end -->\n"


def written() -> str:
    """Return the part of the page that is made here."""
    return PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0]


def write() -> None:
    """Write the part anew."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + tables() + END + rest.split(END)[1], "utf-8")


def tables() -> str:
    """Return a table of all constructs that are not the same in every pair."""
    surveys = [(pair, read_survey(*pair)) for pair in PAIRS]
    constructs = sorted(set().union(*(survey.constructs for _pair, survey in surveys)))
    lines = [
        "| construct | " + " | ".join(f"{source} → {target}" for (source, target), _survey in surveys) + " |",
        "|---" * (len(surveys) + 1) + "|",
    ]
    for construct in constructs:
        cells = [_cell(survey, construct) for _pair, survey in surveys]
        if any(cell not in ("same", "") for cell in cells):
            lines.append(f"| `{construct}` | ".replace("|`", "\\|`") + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(survey: Survey, construct: str) -> str:
    rows = survey.rows(construct)
    if not rows:
        return ""
    parts = []
    if any(row.kind == SurveyKind.DIFFERS and not row.only_type for row in rows):
        parts.append("differs")
    if any(row.only_type for row in rows):
        parts.append("another type")
    parts += [f"refused {text}" for text in sorted({_refusal(row) for row in rows if row.kind == SurveyKind.REFUSED})]
    if any(row.kind == SurveyKind.UNSURVEYED for row in rows):
        parts.append("not surveyed")
    return ", ".join(parts) or "same"


def _refusal(row: SurveyRow) -> str:
    return f"({row.error}{', strict' if row.modes == STRICT else ''})"
