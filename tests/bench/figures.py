"""What a benchmark found: figures beside what was aimed at, as a table for people and as JSON for machines."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

MB = 1e6
GB = 1e9


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `aim`: the most it may be, or with `at_least` the least; None: reported only."""

    name: str
    value: float
    unit: str
    aim: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the aim was met; None where there is none."""
        if self.aim is None:
            return None
        return self.value >= self.aim if self.at_least else self.value <= self.aim

    def aim_text(self) -> str:
        """The aim as people write it."""
        if self.aim is None:
            return ""
        return f"{'≥' if self.at_least else '≤'} {self.aim:g} {self.unit}".rstrip()


@dataclass(slots=True)
class Report:
    """The figures of one benchmark, in the order in which they are to be read."""

    benchmark: str
    conditions: str
    figures: list[Figure] = field(default_factory=list)

    def add(
        self,
        name: str,
        value: float,
        unit: str = "",
        *,
        aim: float | None = None,
        at_least: bool = False,
        note: str = "",
    ) -> None:
        """Adds a figure."""
        self.figures.append(Figure(name, value, unit, aim, at_least, note))

    def table(self) -> str:
        """Lines of equal width: name, value, aim, whether it was met."""
        rows = [("", "measured", "aim", "")]
        for figure in self.figures:
            met = {True: "met", False: "MISSED", None: ""}[figure.reached]
            rows.append((figure.name, f"{rounded(figure.value)} {figure.unit}".rstrip(), figure.aim_text(), met))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [f"== {self.benchmark}: {self.conditions}"]
        notes = ["", *(figure.note for figure in self.figures)]
        for row, note in zip(rows, notes, strict=True):
            cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3].ljust(widths[3])]
            lines.append("  ".join([*cells, note]).rstrip())
        return "\n".join(lines)

    def json(self) -> str:
        """One line."""
        figures = [{**asdict(figure), "reached": figure.reached} for figure in self.figures]
        return json.dumps({"benchmark": self.benchmark, "conditions": self.conditions, "figures": figures})


def rounded(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return float(statistics.median(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
