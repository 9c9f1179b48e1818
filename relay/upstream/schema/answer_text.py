"""Values of information_schema, as old and new servers send them, and literals that all of them read."""

from typing import Any, Protocol

from relay.upstream.source.answer_bound import ORDINARY, AnswerBound


class SchemaSource(Protocol):
    """A connection to the source."""

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        """The rows of a statement. bound: the most that is read of them."""


def answer_text(value: object) -> str:
    """A value as text: old servers send some of these columns as bytes. NULL, as for the column of a key on an expression: ''."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)


def quoted_text(text: str) -> str:
    """A string literal that is right whatever sql_mode says of backslashes."""
    return f"CONVERT(x'{text.encode().hex()}' USING utf8)" if "\\" in text else "'" + text.replace("'", "''") + "'"
