"""`python -m deploy.spark.package OUT.zip`: the data source for executors, for spark-submit with --archives.

The archive contains `protocol` and `relay` as they are here, with the compiled kernel, which Python cannot load from a zip: so it is
passed by --archives, which unpacks it, and not by --py-files (that works too, with the kernel uncompiled: many times slower). Executors
need the same Python version and kind of processor as this machine, pyarrow, and zstandard for what servers compressed.
"""

import sys
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_LEFT_OUT: Final = {"__pycache__"}
_KINDS: Final = {".py", ".so", ".typed", ".html", ".css"}


def package(target: Path) -> Path:
    """Write the archive. Raises: OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("protocol", "relay"):
            for path in sorted((ROOT / name).rglob("*")):
                if path.suffix in _KINDS and not _LEFT_OUT & set(path.parts):
                    archive.write(path, str(path.relative_to(ROOT)))
    return target


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(package(Path(sys.argv[1])))
