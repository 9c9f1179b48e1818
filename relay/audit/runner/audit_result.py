"""What an audit is asked for, and what its job gives back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from relay.audit.history.row_asked import RowAsked
from relay.report.content import Fact, Section

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""error: something is wrong or missing; warning: it will surprise somebody; note: good to know, and no reason for exit code 1."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is asked for. `tables`: patterns of schema.table with * and ?, none: all; `limit`: most rows of one listing; `target`: the
    replicas' version, such as `mysql-9.7`, "": newer ones of the source's own family; `row`: of --table and --key."""

    archive: str
    since: datetime | None = None
    until: datetime | None = None
    tables: tuple[str, ...] = ()
    limit: int = 100
    target: str = ""
    row: RowAsked | None = None

    @property
    def timed(self) -> bool:
        """Whether only some time is asked for."""
        return self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Place:
    """Where one case of a finding is, or the first of several that look alike. `position` None: the file as a whole; `file` "": the
    archive as a whole.

    `count`: of such cases; `last`: the last of them, `example`: a statement of the first.
    """

    file: str = ""
    position: int | None = None
    text: str = ""
    time: datetime | None = None
    count: int = 1
    last: str = ""
    last_time: datetime | None = None
    example: str = ""

    def __str__(self) -> str:
        return self.file if self.position is None else f"{self.file}:{self.position}"


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something found, of which there are `count` cases; `places` are the first of them, --limit at most.

    `name` in snake_case; `title`: what it is, in a few words; `advice`: what it means, and what to do. `rows`: how many places there
    would be without --limit, where a place stands for several cases; None: as many as cases.
    """

    name: str
    severity: Severity
    title: str
    advice: str
    count: int
    places: Sequence[Place]
    rows: int | None = None

    @property
    def left_out(self) -> int:
        """Places that --limit leaves out; 0 where cases are only counted."""
        every = self.count if self.rows is None else self.rows
        return max(every - len(self.places), 0) if self.places else 0


def found_at(
    name: str, severity: Severity, title: str, advice: str, places: list[Place], limit: int, count: int | None = None
) -> Iterator[AuditFinding]:
    """The finding, if it has places. `count`: of the cases, where a place stands for several."""
    if places:
        every = len(places)
        yield AuditFinding(name, severity, title, advice, every if count is None else count, places[:limit], every)


@dataclass(slots=True)
class AuditResult:
    """What a job gives back. `verdict`: the one sentence to remember, when nothing was found or with what was.

    `frames`: name -> what becomes OUT/name.parquet. `facts`: more lines for "What was read". `figures`: the audit's own numbers for
    programs, with units in their names.
    Findings of reading itself (what could not be read) are added behind it, but for those whose names are here already.
    """

    verdict: str
    findings: list[AuditFinding] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    frames: dict[str, "DataFrame"] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
