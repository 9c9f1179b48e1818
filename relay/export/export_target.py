"""The directory that an export makes: it is there with all of its files, or not at all."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay.archive.whole_directory import DirectoryBusy, whole_directory
from relay.export.export_errors import ExportRefused

_UNFINISHED: Final = ".exporting"


@contextlib.contextmanager
def export_target(out: Path) -> Iterator[Path]:
    """Gives a directory to write into, which becomes `out` behind the block, durably; after an error it is removed.

    What an earlier export left there that was killed is removed first. Raises: ExportRefused; OSError.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExportRefused(
            f"{out} is there already and is not empty: an export makes its own directory. Name another --out."
        )
    making = out.with_name(f".{out.name}{_UNFINISHED}")
    out.parent.mkdir(parents=True, exist_ok=True)
    making.mkdir(exist_ok=True)
    try:
        with whole_directory(making, out):
            yield making
    except DirectoryBusy:
        raise ExportRefused(f"Another export is writing to {out}. Wait for it, or name another --out.") from None
