"""The recordings of the servers between the old and the new: see README.md of this directory."""

from pathlib import Path
from typing import Final

BETWEEN: Final = Path(__file__).resolve().parent / "between"
RECORDINGS: Final = sorted(BETWEEN.glob("*/*.000001"))
BY_ROWS: Final = [path for path in RECORDINGS if path.name.startswith("row")]
BY_STATEMENTS: Final = [path for path in RECORDINGS if path not in BY_ROWS]


def named(path: Path) -> str:
    """The name of a recording in the list of tests."""
    return f"{path.parent.name}-{path.stem}"


def gtids_for(path: Path) -> str:
    """What a view of the recording does with GTIDs: those with GTIDs keep them."""
    return "keep" if "gtid" in path.name else "assign"
