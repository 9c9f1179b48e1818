"""The content of a report: sections with texts, charts and tables. They are plain values; `page` makes HTML of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Unit = Literal["count", "bytes", "seconds"]
Kind = Literal["text", "code", "place", "count", "number", "bytes", "seconds", "time", "percent", "severity", "word"]
"""The display of a cell: `text` as it is, `code` for statements and names, `place` for FILE:POSITION, `word` for short texts, whole
numbers (`count`) and others, times in UTC, shares in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, one for each label: how much of each there is."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


@dataclass(frozen=True, slots=True)
class Columns:
    """Upright columns over ordered classes (a histogram): their labels are short."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


@dataclass(frozen=True, slots=True)
class OverTime:
    """Columns over time. `series` maps a name to (start of the step, value), stacked; steps are `step_s` long, gaps are 0.

    `between` is the first and the last event; with it the columns are rates: the value of a step, divided by those of its seconds that
    are between the two.
    """

    title: str
    series: Mapping[str, Sequence[tuple[datetime, float]]]
    step_s: int
    unit: Unit = "count"
    between: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """Bars that together are a whole: each shows its share."""

    title: str
    values: Sequence[tuple[str, float]]
    unit: Unit = "count"


Chart = Bars | Columns | OverTime | Shares


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of as many cells as there are `columns` (heading -> kind); None is shown as -. `left_out` is the number of rows beyond
    --limit, and of no others. A link on the page may name the table by `anchor`, a word in snake_case."""

    title: str
    columns: dict[str, Kind]
    rows: Sequence[Sequence[Any]]
    left_out: int = 0
    note: str = ""
    anchor: str = ""

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the columns."""
        return list(self.columns.values())


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report. `links` has, for each row of its first table, the anchor to which its second cell links, or ""."""

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[ReportTable] = ()
    links: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of "What was read", for people; and for programs `values`, with units in their names."""

    name: str
    text: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """An audit on the page of several: its name, title, sentence, and how many kinds of errors, warnings and notes it has."""

    name: str
    title: str
    verdict: str
    complete: str
    fine: bool
    findings: Sequence[tuple[str, str, int]]
    """severity, title, cases."""

    @property
    def listing(self) -> ReportTable:
        """The findings."""
        return ReportTable("", {"severity": "severity", "finding": "text", "cases": "count"}, self.findings)


@dataclass(slots=True)
class Page:
    """A whole report. `facts` say what was read, and how; `verdict` is the one sentence to remember; `fine` means that nothing was
    found; `cases` are long listings, at the end; `index` says whether it is one of several, with a page over them."""

    title: str
    what: str
    verdict: str
    fine: bool
    complete: str
    facts: Sequence[Fact]
    sections: list[Section] = field(default_factory=list)
    cases: Sequence[ReportTable] = ()
    index: bool = False
