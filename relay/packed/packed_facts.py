"""What a packed file says of the binlog in it, and what packed files are called."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

FORMAT: Final = 1
PACKED_SUFFIX: Final = ".zst"
ENCRYPTED_SUFFIX: Final = ".zst.enc"
PACKED_SUFFIXES: Final = (PACKED_SUFFIX, ENCRYPTED_SUFFIX)


class NewerFormat(ValueError):
    """A later version of binlog-relay wrote it."""


@dataclass(frozen=True, slots=True)
class PackedFacts:
    """`file`: the binlog's name. `digest`: `crc32:…` of its bytes, as the catalog has it; `sha256`: of the same bytes.

    `packed_at`: seconds since 1970. `level`: zstd's.
    """

    file: str
    plain_size: int
    digest: str
    sha256: str
    packed_at: int
    level: int

    def encode(self) -> bytes:
        """As it stands in the packed file."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "PackedFacts":
        """Raises: NewerFormat; ValueError."""
        try:
            found: dict[str, Any] = json.loads(data)
            written = found.get("format") if isinstance(found, dict) else None
            if isinstance(written, int) and written > FORMAT:
                raise NewerFormat(f"it has format {written}, this version knows formats up to {FORMAT}")
            facts = cls(*(found[name] for name in cls.__slots__))
        except (UnicodeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError("what it says of its binlog cannot be read") from error
        texts, numbers = (facts.file, facts.digest, facts.sha256), (facts.plain_size, facts.packed_at, facts.level)
        if not all(isinstance(text, str) for text in texts) or not all(isinstance(number, int) for number in numbers):
            raise ValueError("what it says of its binlog cannot be read")
        return facts


def packed_name(file: str, encrypted: bool) -> str:
    """What the packed file of that binlog is called."""
    return file + (ENCRYPTED_SUFFIX if encrypted else PACKED_SUFFIX)


def is_encrypted_name(name: str) -> bool:
    """Whether a packed file of that name must be encrypted: what is not was put in its place by somebody without the key."""
    return name.endswith(ENCRYPTED_SUFFIX)


def plain_name(name: str) -> str | None:
    """The binlog that the packed file of that name has; None: it is not called like one."""
    for suffix in (ENCRYPTED_SUFFIX, PACKED_SUFFIX):
        if name.endswith(suffix) and len(name) > len(suffix):
            return name.removesuffix(suffix)
    return None
