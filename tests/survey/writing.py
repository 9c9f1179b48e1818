"""The files of data that `protocol/sql/survey` reads."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.survey.values import values_by_class

DATA: Final = Path(__file__).resolve().parents[2] / "protocol" / "sql" / "survey" / "data"
_ASKED: Final = re.compile(r"# (\d+) expressions")
_FIELDS: Final = 8
"""How many a row of a pair's data has; one of the source's results has fewer."""


def write(source: str, target: str, runs: Iterable[Iterable[str]]) -> Path:
    """Write the file of the pair, and that of the source's results, from the lines of runs. For a construct of two runs, the last
    counts."""
    rows: dict[tuple[str, int], list[str]] = {}
    results: dict[tuple[str, int], list[str]] = {}
    asked = 0
    for run in runs:
        new_rows: dict[tuple[str, int], list[str]] = {}
        new_results: dict[tuple[str, int], list[str]] = {}
        for line in run:
            said = _ASKED.match(line)
            if said is not None:
                asked += int(said[1])
            elif line and not line.startswith("#"):
                construct, arguments, *others = line.split("\t")
                found = new_rows if len(others) == _FIELDS - 2 else new_results
                found.setdefault((construct, arguments.count(",") + bool(arguments)), []).append(line)
        rows |= new_rows
        results |= new_results
    DATA.mkdir(exist_ok=True)
    by = f"`python -m tests.survey run --source {source} --target {target}`"
    classes = f"# classes: {'|'.join(values_by_class())}"
    path = DATA / f"{source}_{target}.txt"
    _write(
        path,
        f"# What {target} does with the constructs of {source}: made by {by}.",
        "# construct, classes of its arguments, modes, what it does, error, expression, result at the source, result at the target",
        f"# {asked} expressions were asked in all its runs, each under several values of sql_mode",
        classes,
        *sorted(line for lines in rows.values() for line in lines),
    )
    _write(
        DATA / f"{source}_results.txt",
        f"# The classes of what the constructs of {source} give: made by {by}.",
        "# construct, classes of its arguments, classes of its result",
        classes,
        *sorted(line for lines in results.values() for line in lines),
    )
    return path


def _write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(lines) + "\n", "utf-8")
