"""The facts in a packed file about its binlog and its archive, and the names of packed files."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from protocol.errors import RelayError

FORMAT: Final = 2
PACKED_SUFFIX: Final = ".zst"
ENCRYPTED_SUFFIX: Final = ".zst.enc"
PACKED_SUFFIXES: Final = (PACKED_SUFFIX, ENCRYPTED_SUFFIX)


class OtherFormat(RelayError):
    """Another version of binlog-relay wrote the file."""


class OfArchive(NamedTuple):
    """The archive that a packed file belongs to. archive: the uuid of the archive's relay, empty: unknown; generation: its number, 0:
    unknown. sequence: of a part of the binlog that grows, the number of the manifest that first lists it; 0: of no part."""

    archive: str = ""
    generation: int = 0
    sequence: int = 0


OF_NOBODY: Final = OfArchive()


@dataclass(frozen=True, slots=True)
class PackedFacts:
    """`file`: the binlog's name. `digest`: `crc32:…` of its bytes, as the catalog has it; `sha256`: of the same bytes.

    `packed_at`: seconds since 1970. `level`: zstd's. `archive`, `generation`, `sequence`: as in `OfArchive`.
    """

    file: str
    plain_size: int
    digest: str
    sha256: str
    packed_at: int
    level: int
    archive: str = ""
    generation: int = 0
    sequence: int = 0

    def encode(self) -> bytes:
        """Return the facts as they are written into the packed file."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "PackedFacts":
        """Decode facts. Raises: OtherFormat; ValueError."""
        try:
            found: dict[str, Any] = json.loads(data)
            written = found.get("format") if isinstance(found, dict) else None
            if isinstance(written, int) and written != FORMAT:
                raise other_format(written)
            facts = cls(*(found[name] for name in cls.__slots__))
        except (UnicodeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError("what it says of its binlog cannot be read") from error
        texts = (facts.file, facts.digest, facts.sha256, facts.archive)
        numbers = (facts.plain_size, facts.packed_at, facts.level, facts.generation, facts.sequence)
        if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in numbers):
            raise ValueError("what it says of its binlog cannot be read")
        return facts


def other_format(written: int) -> OtherFormat:
    """Return the error for a file of that format, which is not this version's."""
    what = f"it has format {written}, this version knows format {FORMAT}"
    if written > FORMAT:
        return OtherFormat(what, "Start the newer binlog-relay.")
    return OtherFormat(
        f"{what}, which binds a file to its archive",
        "Unpack it with the binlog-relay that made it, or with `zstd -d`, put the binlog in its place, and start the relay: "
        "it packs it again.",
    )


def packed_name(file: str, encrypted: bool) -> str:
    """Return the name of the packed file of that binlog."""
    return file + (ENCRYPTED_SUFFIX if encrypted else PACKED_SUFFIX)


def is_encrypted_name(name: str) -> bool:
    """Return whether a packed file of that name must be encrypted: an unencrypted one was put in its place without the key."""
    return name.endswith(ENCRYPTED_SUFFIX)


def plain_name(name: str) -> str | None:
    """Return the binlog that the packed file of that name has; None: it is not so named."""
    for suffix in (ENCRYPTED_SUFFIX, PACKED_SUFFIX):
        if name.endswith(suffix) and len(name) > len(suffix):
            return name.removesuffix(suffix)
    return None
