"""What a report is made of: sections with texts, charts and tables. Plain values; `page` makes HTML of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Unit = Literal["count", "bytes", "seconds"]
Kind = Literal["text", "code", "count", "bytes", "seconds", "time", "percent", "severity"]
"""How a cell is shown: text as it is, `code` for places, statements and names, numbers, times in UTC, shares in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, one a label: how much of each there is."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


@dataclass(frozen=True, slots=True)
class Columns:
    """Upright columns over classes in order (a histogram): their labels are short."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


@dataclass(frozen=True, slots=True)
class OverTime:
    """Columns over time. `series`: name -> (start of the step, value), stacked; steps are `step_s` long, gaps are 0."""

    title: str
    series: Mapping[str, Sequence[tuple[datetime, float]]]
    step_s: int
    unit: Unit = "count"


@dataclass(frozen=True, slots=True)
class Shares:
    """One bar that is the whole, cut into its parts."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


Chart = Bars | Columns | OverTime | Shares


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of as many cells as there are `columns` (heading -> kind); None is shown as -. `left_out`: rows beyond --limit."""

    title: str
    columns: dict[str, Kind]
    rows: Sequence[Sequence[Any]]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report."""

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[ReportTable] = ()


@dataclass(slots=True)
class Page:
    """A whole report. `facts`: what was read, and how; `verdict`: the one sentence to remember; `fine`: nothing was found."""

    title: str
    what: str
    verdict: str
    fine: bool
    complete: str
    facts: Sequence[tuple[str, str]]
    sections: list[Section] = field(default_factory=list)
