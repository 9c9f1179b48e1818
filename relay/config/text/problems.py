"""The problems of a configuration, and what to write instead."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocol.errors import ExitCode, RelayError
from protocol.printable import printable

_MOST_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the key it is about, what is wrong, and what to write instead."""

    key: str
    what: str
    instead: str

    def __str__(self) -> str:
        text = f"{self.key}: {self.what}. {self.instead}" if self.instead else f"{self.key}: {self.what}"
        return printable(text, _MOST_BYTES)


class ConfigError(RelayError):
    """A configuration that cannot be used, with all its problems. `str()` is ready for a terminal, secrets left out."""

    exit_code = ExitCode.WRONG_USE

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"{path}: {count}", *(f"  {problem}" for problem in problems)]))
        self.path = path
        self.problems = problems


class Wrong(RelayError, ValueError):
    """A value that is refused, with the two halves of its Problem. For the checks of single values.

    is_shown: the value is no secret. A ValueError too: pydantic collects those.
    """

    exit_code = ExitCode.WRONG_USE

    def __init__(self, what: str, instead: str, *, is_shown: bool = True) -> None:
        super().__init__(what, instead)
        self.is_shown = is_shown


@dataclass(slots=True)
class Findings:
    """The results of the checks of one configuration. A warning is for a setting that works, but should be changed."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def problem(self, key: str, what: str, instead: str) -> None:
        """Add a mistake."""
        self.problems.append(Problem(key, what, instead))

    def warning(self, key: str, what: str, instead: str) -> None:
        """Add a setting that should be changed."""
        self.warnings.append(Problem(key, what, instead))
