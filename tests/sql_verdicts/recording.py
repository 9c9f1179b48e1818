"""What the readers said of each statement, as digests: three bytes for a reader's verdicts of a statement under all settings."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.sql_verdicts.canonical import canonical
from tests.sql_verdicts.corpus import Said
from tests.sql_verdicts.readers import READERS, Reader

RECORDED: Final = Path(__file__).with_name("verdicts.gz")
RECORDED_OF_PACKAGES: Final = Path(__file__).with_name("package_verdicts.gz")
_STATEMENT_BYTES: Final = 8
_VERDICT_BYTES: Final = 3
"""A changed verdict has the digest of the former one once in 16 million cases."""

Verdicts = list[tuple[str, str]]
"""(setting, verdict as canonical JSON), of one reader and one statement."""


def verdicts_of(reader: Reader, statement: bytes) -> Verdicts:
    """What it says under all settings that it may distinguish; nothing where it is not for it."""
    if not reader.reads(statement):
        return []
    return [(str(setting), canonical(reader.verdict(statement, setting))) for setting in reader.settings(statement)]


def digest_of(verdicts: Verdicts) -> bytes:
    """Of a reader's verdicts."""
    said = "\n".join(f"{setting}\t{verdict}" for setting, verdict in verdicts)
    return hashlib.blake2b(said.encode(), digest_size=_VERDICT_BYTES).digest()


@dataclass(frozen=True)
class Recording:
    """readers: in the order of the columns. columns: by reader, the digests one after the other, in the order of `statements`."""

    statements: dict[bytes, int]
    columns: dict[str, bytes]

    def __contains__(self, said: Said) -> bool:
        return said.digest in self.statements

    def digest(self, said: Said, reader: str) -> bytes | None:
        """What was recorded; None: nothing."""
        row = self.statements.get(said.digest)
        column = self.columns.get(reader)
        if row is None or column is None:
            return None
        return column[row * _VERDICT_BYTES : (row + 1) * _VERDICT_BYTES]

    def encode(self) -> bytes:
        """Layout, in gzip: a line of JSON {"readers": [...], "statements": count} | the statements' digests, 8 bytes each | for each
        reader the digests of its verdicts, 3 bytes each."""
        head = json.dumps({"readers": list(self.columns), "statements": len(self.statements)}) + "\n"
        return gzip.compress(head.encode() + b"".join(self.statements) + b"".join(self.columns.values()), 9, mtime=0)


def read_recording(path: Path) -> Recording:
    """As `Recording.encode` wrote it."""
    head, _, rest = gzip.decompress(path.read_bytes()).partition(b"\n")
    told = json.loads(head)
    count = told["statements"]
    found = {
        rest[at : at + _STATEMENT_BYTES]: row
        for row, at in enumerate(range(0, count * _STATEMENT_BYTES, _STATEMENT_BYTES))
    }
    at = count * _STATEMENT_BYTES
    columns = {}
    for reader in told["readers"]:
        columns[reader] = rest[at : at + count * _VERDICT_BYTES]
        at += count * _VERDICT_BYTES
    return Recording(found, columns)


def record(statements: Iterable[Said]) -> Recording:
    """What the readers say now."""
    columns: dict[str, bytearray] = {name: bytearray() for name in READERS}
    found: dict[bytes, int] = {}
    for said in statements:
        found[said.digest] = len(found)
        for name, reader in READERS.items():
            columns[name] += digest_of(verdicts_of(reader, said.statement))
    return Recording(found, {name: bytes(column) for name, column in columns.items()})


@dataclass(frozen=True, slots=True)
class Change:
    """A reader that says something else of a statement. before: () where only the recording knows it."""

    said: Said
    reader: str
    before: Verdicts
    after: Verdicts

    def shown(self) -> str:
        """For people: settings with the same change stand together."""
        text = self.said.statement.decode("utf-8", "backslashreplace")
        lines = [f"{self.reader}: {text!r}  ({self.said.origin})"]
        before = dict(self.before)
        changes: dict[tuple[str, str], list[str]] = {}
        for setting, verdict in self.after:
            if not before or before.get(setting) != verdict:
                changes.setdefault(
                    (before.get(setting, "(recorded)" if not before else "(not read)"), verdict), []
                ).append(setting)
        for (old, new), settings in changes.items():
            lines += [f"  {', '.join(settings)}", f"    before: {old}", f"    after:  {new}"]
        return "\n".join(lines)


def changes(recording: Recording, statements: Iterable[Said], readers: Iterable[Reader]) -> Iterator[Change]:
    """Where the readers differ from the recording; statements that are not in it are passed over."""
    chosen = list(readers)
    for said in statements:
        if said not in recording:
            continue
        for reader in chosen:
            recorded = recording.digest(said, reader.name)
            if recorded is None:
                continue
            verdicts = verdicts_of(reader, said.statement)
            if digest_of(verdicts) != recorded:
                yield Change(said, reader.name, [], verdicts)
