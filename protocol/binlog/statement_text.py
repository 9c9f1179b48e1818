"""Statement text made fit for one line of output."""

from typing import Final

TEXT_LIMIT_CHARACTERS: Final = 400

# Line breaks and other control characters would break the line, or the terminal it is shown on.
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029)} | {
    0x09: "\\t",
    0x0A: "\\n",
    0x0D: "\\r",
}


def one_line(text: bytes, limit: int = TEXT_LIMIT_CHARACTERS) -> str:
    """Return `text` as one printable line: control characters and bytes that are not UTF-8 escaped, cut after `limit`."""
    # UTF-8 characters have at most 4 bytes; a statement may have a GiB, so it is cut before decoding.
    cut = len(text) > limit * 4
    line = (text[: limit * 4] if cut else text).decode("utf-8", "backslashreplace")
    if len(line) > limit:
        cut = True
        line = line[:limit]
    if not line.isprintable():
        line = line.translate(_ESCAPES)
    return f"{line}..." if cut else line
