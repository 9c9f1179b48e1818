"""A report as one HTML page: style and charts inside, nothing loaded, nothing run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from relay.audit.report.charts import svg
from relay.audit.report.content import Kind, Page, ReportTable, Section
from relay.audit.report.style import STYLE
from relay.audit.report.text import count, markup, moment, number_of, share, size, span

_NUMBERS: Final = frozenset({"count", "bytes", "seconds", "percent"})
_SHORT: Final = 40
"""Characters of a name or a place that is not broken into lines."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def html(page: Page) -> str:
    """The whole document."""
    facts = "".join(f"<div><dt>{markup(name)}</dt><dd>{markup(value)}</dd></div>" for name, value in page.facts)
    verdict = "fine" if page.fine else "found"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{markup(page.title)}</title><style>{STYLE}</style></head><body><main>"
        f'<header><h1>{markup(page.title)}</h1><p class="what">{markup(page.what)}</p>'
        f'<p class="verdict {verdict}">{markup(page.verdict)}</p></header>'
        f'<section><h2>What was read</h2><dl>{facts}</dl><p class="complete">{markup(page.complete)}</p></section>'
        f"{''.join(_section(section) for section in page.sections)}"
        "</main></body></html>\n"
    )


def _section(section: Section) -> str:
    text = f"<p>{markup(section.text)}</p>" if section.text else ""
    charts = "".join(svg(chart) for chart in section.charts)
    tables = "".join(_table(table) for table in section.tables)
    return f"<section><h2>{markup(section.title)}</h2>{text}{charts}{tables}</section>\n"


def _table(table: ReportTable) -> str:
    kinds = list(table.columns.values())
    heads = "".join(f'<th scope="col"{_class(kind)}>{markup(heading)}</th>' for heading, kind in table.columns.items())
    rows = "".join(f"<tr>{_cells(row, kinds)}</tr>\n" for row in table.rows)
    notes = [table.note] if table.note else []
    if table.left_out:
        notes.append(f"{number_of(table.left_out, 'row')} more left out by --limit.")
    if not table.rows:
        notes.insert(0, "None.")
    note = f'<p class="note">{markup(" ".join(notes))}</p>' if notes else ""
    body = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    title = f"<h3>{markup(table.title)}</h3>" if table.title else ""
    return f"{title}{body if table.rows else ''}{note}"


def _class(kind: Kind) -> str:
    return ' class="n"' if kind in _NUMBERS else ""


def _cells(row: Sequence[Any], kinds: Sequence[Kind]) -> str:
    return "".join(f"<td{_class(kind)}>{_cell(value, kind)}</td>" for value, kind in zip(row, kinds, strict=True))


def _cell(value: Any, kind: Kind) -> str:
    text = value_text(value, kind)
    if kind == "severity":
        return f'<span class="{markup(text)}">{markup(text)}</span>'
    if kind == "code" and value is not None:
        short = ' class="short"' if len(text) <= _SHORT else ""
        return f"<code{short}>{markup(text)}</code>"
    return markup(text)


def value_text(value: Any, kind: Kind) -> str:
    """A table's cell as text."""
    if value is None:
        return "-"
    if kind == "count":
        return count(value)
    if kind == "bytes":
        return size(value)
    if kind == "seconds":
        return span(value)
    if kind == "percent":
        return share(value, 1)
    if kind == "time" and isinstance(value, datetime):
        return moment(value)
    return ", ".join(str(member) for member in value) if isinstance(value, list | tuple) else str(value)
