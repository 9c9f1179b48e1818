"""Names and texts that were chosen to be shown to others, and what no output may contain of them.

An output is text that a person, a terminal or a program reads: `unfit` returns the part that a terminal or an eye would obey.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

MARKUP: Final = "<img src=x onerror=alert(1)>"
OBEYED: Final = "\x1b[2J\x1b]0;owned\x07\r\nlevel=error fake\t\x7f\x9b31m\u202eabc\u2066d\u200b\u2028\u2029\ufeff"
TEXTS: Final = ("é" + OBEYED + MARKUP + "\"'`&%s%n$(id)\\{}", MARKUP + "é" * 3000)
"""Texts that a peer may send as a name. The last one is long."""
LONGEST: Final = 4096
"""The maximum bytes of one text that is shown, whatever was sent."""
_OWN_LINES: Final = {"exception", "stack"}
"""These keys of our own faults have lines."""


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def unfit(text: str, *, lines: bool = False) -> str:
    """Return the characters that are obeyed and not seen. With `lines` the output has several lines."""
    return "".join(sorted({char for char in text if not char.isprintable() and not (lines and char == "\n")}))


def texts_in(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a decoded JSON, or of rows, with their places, including names of keys."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield f"{place} key", str(key)
            if key not in _OWN_LINES:
                yield from texts_in(one, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts_in(one, f"{place}[]")


class Shown:
    """The record of what was shown where; `wrong` has what is unfit to be shown, a sentence each."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.count = 0

    def text(self, where: str, text: str) -> None:
        """Check one text."""
        self.count += 1
        if (found := unfit(text)) or len(text.encode("utf-8", "replace")) > LONGEST:
            self.wrong.append(f"{where}: {found!r}, {len(text)} characters: {text[:160]!r}")

    def values(self, where: str, value: Any) -> None:
        """Check all texts in a value."""
        for place, text in texts_in(value):
            self.text(f"{where} {place}", text)

    def lines(self, where: str, text: str) -> None:
        """Check an output of lines, as of a command."""
        for line in text.removesuffix("\n").split("\n"):
            self.text(where, line)

    def log(self, where: str, data: bytes) -> None:
        """Check lines of JSON: they must be fit as they are, and after decoding."""
        for line in data.decode("utf-8").splitlines(keepends=True):
            raw = line.removesuffix("\n")
            if found := unfit(raw):
                self.wrong.append(f"{where}, the line itself: {found!r}: {raw[:160]!r}")
            self.values(where, json.loads(raw))

    def answer(self, where: str, body: bytes) -> None:
        """Check a body of HTTP that is no file of the page: it must contain no markup, and nothing that is obeyed."""
        text = body.decode("utf-8")
        if MARKUP in text or re.search(r"<(img|script)", text):
            self.wrong.append(f"{where}: has markup: {text[:300]!r}")
        if text.startswith(("{", "[")):
            self.values(where, json.loads(text))
        else:
            self.lines(where, text)

    def check(self) -> None:
        """Raise AssertionError with all that is wrong."""
        assert self.count
        shown = "\n".join(sorted(set(self.wrong))[:60])
        assert not self.wrong, f"{len(self.wrong)} texts are not fit to be shown:\n{shown}"
