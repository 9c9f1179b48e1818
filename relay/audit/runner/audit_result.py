"""The request to an audit, and the result of its job."""

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
"""error: something is wrong or missing; warning: it will surprise someone; note: good to know, and no reason for exit code 1."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The request. `tables` are patterns of schema.table with * and ? (none means all); `limit` is the maximum number of rows of a
    listing; `target` is the replicas' version, such as `mysql-9.7` ("" means newer ones of the source's own family); `row` is that of
    --table and --key."""

    archive: str
    since: datetime | None = None
    until: datetime | None = None
    tables: tuple[str, ...] = ()
    limit: int = 100
    target: str = ""
    row: RowAsked | None = None

    @property
    def timed(self) -> bool:
        """True if only some time is requested."""
        return self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one case of a finding, or of the first of several that look alike. `position` None means the file as a whole; `file`
    "" means the archive as a whole.

    `count` is the number of such cases, `last` the last of them, and `example` a statement of the first.
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
    """A finding with `count` cases; `places` are the first of them, --limit at most.

    `name` is in snake_case; `title` is a description in a few words; `advice` says what it means, and what to do. `rows` is how many
    places there would be without --limit if a place represents several cases (None: as many as cases).
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
        """The number of places that --limit leaves out; 0 if cases are only counted."""
        every = self.count if self.rows is None else self.rows
        return max(every - len(self.places), 0) if self.places else 0


def found_at(
    name: str, severity: Severity, title: str, advice: str, places: list[Place], limit: int, count: int | None = None
) -> Iterator[AuditFinding]:
    """Yield the finding, if it has places. `count` is that of the cases if a place represents several."""
    if places:
        every = len(places)
        yield AuditFinding(name, severity, title, advice, every if count is None else count, places[:limit], every)


@dataclass(slots=True)
class AuditResult:
    """The result of a job. `verdict` is the one sentence to remember, whether something was found or not.

    `frames` maps a name to what becomes OUT/name.parquet. `facts` are more lines for "What was read". `figures` are the audit's own
    numbers for programs, with units in their names. Findings of reading itself (what could not be read) are appended, except those
    whose names are present already.
    """

    verdict: str
    findings: list[AuditFinding] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    frames: dict[str, "DataFrame"] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
