"""The readers of another checkout of the repository, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from tests.sql_verdicts.corpus import Said
from tests.sql_verdicts.readers import READERS, Reader
from tests.sql_verdicts.recording import Change, digest_of, verdicts_of


def answer(requests: TextIO, answers: TextIO) -> None:
    """The other side runs this. A request is a line of JSON:
    {"statement": latin-1, "reader": name or null, "readers": names}; the answer is one: without a
    reader {name: digest as hex} of those named, with one its verdicts; null: there is none of that name."""
    for line in requests:
        asked = json.loads(line)
        statement = asked["statement"].encode("latin-1")
        said: object
        if asked["reader"] is None:
            said = {
                name: digest_of(verdicts_of(READERS[name], statement)).hex()
                for name in asked["readers"]
                if name in READERS
            }
        else:
            reader = READERS.get(asked["reader"])
            said = None if reader is None else verdicts_of(reader, statement)
        answers.write(json.dumps(said) + "\n")
        answers.flush()


class OtherCheckout:
    """`with` starts it and ends it. Its own interpreter is taken where it has a .venv, else this one."""

    def __init__(self, directory: Path) -> None:
        python = directory / ".venv" / "bin" / "python"
        self._command = [str(python) if python.exists() else sys.executable, "-m", "tests.sql_verdicts", "answer"]
        self._directory = directory

    def __enter__(self) -> "OtherCheckout":
        self._process = subprocess.Popen(
            self._command, cwd=self._directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, statement: bytes, reader: str | None, readers: Iterable[str] = ()) -> None:
        """Asks; `answer` takes what it says, in the same order."""
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"statement": statement.decode("latin-1"), "reader": reader, "readers": list(readers)}) + "\n"
        )
        self._process.stdin.flush()

    def answer(self) -> object:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self._command)} in {self._directory} ended with {self._process.wait()}")
        return json.loads(line)


def changes_against(other: OtherCheckout, statements: Iterable[Said], readers: Iterable[Reader]) -> Iterator[Change]:
    """Where the readers differ from the other checkout's of the same name."""
    chosen = list(readers)
    for said in statements:
        other.ask(said.statement, None, [reader.name for reader in chosen])
        mine = {reader.name: verdicts_of(reader, said.statement) for reader in chosen}
        theirs = other.answer()
        assert isinstance(theirs, dict)
        for name, verdicts in mine.items():
            if name in theirs and theirs[name] != digest_of(verdicts).hex():
                other.ask(said.statement, name)
                before = other.answer()
                assert isinstance(before, list)
                yield Change(said, name, [(setting, verdict) for setting, verdict in before], verdicts)
