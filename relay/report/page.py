"""Reports as HTML pages, by Jinja's templates: style and charts inside, nothing loaded, nothing run.

The contents of a page come from binlogs, so anyone may have written them: every value that a template shows is made visible by `shown`
and then escaped, whether the template asks for it or not.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from relay.report.charts import steps_told, svg
from relay.report.content import Fact, IndexRow, Kind, Page, ReportTable
from relay.report.text import count, moment, number, number_of, share, shown, size, span

_NUMBERS: Final = frozenset({"count", "number", "bytes", "seconds", "percent"})
# Pixels of a column. Texts share the rest, and have at least as much.
_WIDTHS: Final[dict[str, int]] = {
    "place": 200, "time": 168, "count": 96, "number": 96, "bytes": 92, "seconds": 92, "percent": 76, "severity": 80, "word": 90,
}  # fmt: skip
_LEAST_TEXT: Final = 130


def html(page: Page) -> str:
    """Return the page of an audit."""
    made: str = _templates().get_template("report.html").render(page=page)
    return made


def index_html(
    archive: str, verdict: str, facts: Sequence[Fact], rows: Sequence[IndexRow], left_out: Sequence[tuple[str, str]]
) -> str:
    """Return the page over several audits. `left_out` are the omitted audits, with the reasons."""
    fine = all(row.fine for row in rows)
    told = {"archive": archive, "verdict": verdict, "fine": fine, "facts": facts, "rows": rows, "left_out": left_out}
    made: str = _templates().get_template("index.html").render(told)
    return made


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("relay.report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "svg": svg,
        "steps_told": steps_told,
        "value_text": value_text,
        "number_of": number_of,
        "column_width": _column_width,
        "least_width": _least_width,
    }
    environment.tests["numeric"] = _NUMBERS.__contains__
    return environment


def _visible(value: object) -> object:
    """Return what a template shows, with everything in it inactive. The output of a template or a chart is markup already."""
    return value if isinstance(value, Markup) else shown(str(value))


def _column_width(kind: Kind) -> Markup:
    width = _WIDTHS.get(kind)
    return Markup("") if width is None else Markup(' style="width:{}px"').format(width)


def _least_width(table: ReportTable) -> int:
    return sum(_WIDTHS.get(kind, _LEAST_TEXT) for kind in table.columns.values())


def value_text(value: Any, kind: Kind) -> str:
    """Return a table's cell as text."""
    if value is None:
        return "-"
    if kind in _AS_TEXT:
        return _AS_TEXT[kind](value)
    if kind == "percent":
        return share(value, 1)
    if kind == "time" and isinstance(value, datetime):
        return moment(value)
    return ", ".join(str(member) for member in value) if isinstance(value, list | tuple) else str(value)


_AS_TEXT: Final[Mapping[str, Callable[[float], str]]] = {
    "count": count,
    "number": number,
    "bytes": size,
    "seconds": span,
}
