"""The statements that are read: kept in the repository, but for those of Debian's packages."""

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

_FILE: Final = Path(__file__).with_name("statements.jsonl.gz")
_DIGEST_BYTES: Final = 8


class Said(NamedTuple):
    """A statement and where it is from."""

    origin: str
    statement: bytes

    @property
    def digest(self) -> bytes:
        """By which a recording names it."""
        return hashlib.blake2b(self.statement, digest_size=_DIGEST_BYTES).digest()


def in_order(found: Mapping[bytes, str]) -> list[Said]:
    """By digest: so every N-th of them is a fair sample."""
    return sorted((Said(origin, statement) for statement, origin in found.items()), key=lambda said: said.digest)


def kept_statements() -> list[Said]:
    """Those of the repository."""
    lines = gzip.decompress(_FILE.read_bytes()).decode().splitlines()
    return [Said(origin, text.encode("latin-1")) for origin, text in map(json.loads, lines)]


def keep_statements(statements: list[Said]) -> None:
    """Writes the file, the same bytes for the same statements."""
    lines = [json.dumps([said.origin, said.statement.decode("latin-1")]) + "\n" for said in statements]
    _FILE.write_bytes(gzip.compress("".join(lines).encode(), 9, mtime=0))
