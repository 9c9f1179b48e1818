"""Names and texts of others, made fit to be shown: on one line, without characters that control a terminal or mislead a reader."""

from typing import Final

MOST_BYTES: Final = 600


def printable(text: str, most_bytes: int = MOST_BYTES) -> str:
    """Return `text` with a question mark for each invisible character, and cut to `most_bytes` of UTF-8.

    Those are control characters (C0, C1), characters that change the direction of text or have no width, lone surrogates, and
    characters that Unicode has not assigned.
    """
    if len(text) > most_bytes:
        text = text[: most_bytes + 1]
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "?" for char in text)
    return cut_text(text, most_bytes).decode()


def cut_text(text: str, limit_bytes: int) -> bytes:
    """Return `text` as UTF-8 of at most `limit_bytes` bytes, never ending inside a character."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit_bytes:
        return data
    return data[:limit_bytes].decode("utf-8", "ignore").encode()
