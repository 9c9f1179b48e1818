"""Where a sealed binlog is: on the disk as it was received, on the disk packed, or packed in a bucket."""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

PLACE_SUFFIX: Final = ".place"


class Tier(StrEnum):
    """How and where a file is stored."""

    HOT = "hot"
    COLD = "cold"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class FilePlace:
    """`stored_name`: of the stored file; `stored_bytes`, `digest`: of its bytes. `key_id`: None: not encrypted. `plain_bytes`: of
    the binlog."""

    tier: Tier
    stored_name: str
    stored_bytes: int
    key_id: str | None
    digest: str
    plain_bytes: int


def read_place(path: Path) -> FilePlace | None:
    """Of the binlog at `path`; None: it has no NAME.place."""
    try:
        found = json.loads(path.with_name(path.name + PLACE_SUFFIX).read_bytes())["place"]
    except FileNotFoundError:
        return None
    return FilePlace(Tier(found["tier"]), *(found[name] for name in FilePlace.__slots__[1:]))
