"""Numbers, times and names as people read them, on a page and on a terminal.

Names come from binlogs, so anyone may have chosen them: nothing in them may act as markup, as a terminal's command, or change the
direction of what follows.
"""

import unicodedata
from datetime import UTC, datetime
from typing import Final

LONGEST_TEXT: Final = 4000
"""The maximum number of characters of one text; the rest is cut, and reported."""
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def shown(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return `text` with everything in it visible: control and format characters become \\u202e, line ends and tabs blanks."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} characters more)"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_shown(character) for character in cut)


def _shown(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if unicodedata.category(character) not in _ACTING:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def count(number: float) -> str:
    """Format 1234567 as 1,234,567."""
    return f"{number:,.0f}"


def number_of(number: int, noun: str) -> str:
    """Return 1 file, 2 files."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{count(number)} {noun if number == 1 else plural}"


def size(bytes_: float) -> str:
    """Return bytes in the unit that leaves one to four digits before the point."""
    value = float(bytes_)
    for unit in _BYTE_UNITS:
        if abs(value) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:,.1f} {unit}"


def span(seconds: float) -> str:
    """Return a duration: 0.3 s, 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if abs(seconds) < 10:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + " s"
    whole = round(seconds)
    for large, small, names in ((86400, 3600, "d h"), (3600, 60, "h min"), (60, 1, "min s")):
        if abs(whole) >= large:
            first, second = names.split()
            rest = abs(whole) % large // small
            return f"{whole // large} {first}" + (f" {rest} {second}" if rest else "")
    return f"{whole} s"


def utc(time: datetime) -> datetime:
    """Return the time in UTC. Times without a zone, as Spark's rows have, are in this process's zone."""
    return time.astimezone(UTC)


def moment(time: datetime | None) -> str:
    """Return a time in UTC, to the second; - for none."""
    return "-" if time is None else utc(time).strftime("%Y-%m-%d %H:%M:%S")


def share(part: float, whole: float) -> str:
    """Return a percentage; a part that exists is never 0 %, and an incomplete one never 100 %."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %".replace(".0 %", " %")


def number(value: float) -> str:
    """Return a number that need not be whole: 1,234, 12.3, 0.05."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2g}" if abs(value) < 0.1 else f"{value:.2f}".rstrip("0")
