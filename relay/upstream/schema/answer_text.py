"""Values of information_schema, as old and new servers send them, and literals that all of them read."""

from typing import Any, Protocol

from relay.upstream.source.answer_bound import ORDINARY, AnswerBound


class SchemaSource(Protocol):
    """A connection to the source."""

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement. `bound` limits how much of them is read."""


def answer_text(value: object) -> str:
    """Return a value as text: old servers send some of these columns as bytes. NULL, as for the column of a key on an expression,
    becomes ''."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)


def quoted_text(text: str) -> str:
    """Return a string literal that is correct whatever sql_mode says about backslashes."""
    return f"CONVERT(x'{text.encode().hex()}' USING utf8)" if "\\" in text else "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"
