"""One line of the doctor's report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "unknown", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """about: the subject, such as "source db1:3306". check: what was checked, one word or two with "_".

    level: "unknown": it could not be asked, which is no fault. cure: the next step; empty if none is needed.
    """

    about: str
    check: str
    level: Level
    what: str
    cure: str = ""

    def record(self) -> dict[str, str | None]:
        """Return the line for JSON."""
        return {
            "about": self.about,
            "check": self.check,
            "level": self.level,
            "what": self.what,
            "cure": self.cure or None,
        }


def is_worse(lines: Iterable[DoctorLine], *, strict: bool) -> bool:
    """Return whether there is a problem; strict: or a warning."""
    bad = ("problem", "warning") if strict else ("problem",)
    return any(line.level in bad for line in lines)
