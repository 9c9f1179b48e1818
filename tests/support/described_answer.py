"""An answer with all that is sent about its columns, to be compared between servers."""

from dataclasses import dataclass, replace
from typing import Any

import pymysql


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column definition, field by field."""

    schema: str
    table: str
    original_table: str
    name: str
    original_name: str
    charset: int
    length: int
    kind: int
    flags: int
    decimals: int

    @property
    def without_width(self) -> "DescribedColumn":
        """Return all that a program may rely on. The display width of a value is a hint, and differs between point releases: for TRUE
        MariaDB 10.11.18 says 1, 10.11.19 says 5."""
        return replace(self, length=0)


@dataclass(frozen=True, slots=True)
class DescribedAnswer:
    """The answer to one statement. `error` is the server's number, 0 for none."""

    columns: tuple[DescribedColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    error: int = 0
    message: str = ""

    @property
    def shapes(self) -> list[list[str]]:
        """Return the type of each value."""
        return [[type(value).__name__ for value in row] for row in self.rows]


class Asker:
    """A connection that keeps what clients usually discard."""

    def __init__(self, port: int, user: str, password: str, *, charset: str = "utf8mb3") -> None:
        # No conversion: values stay the text that came.
        self._connection: Any = pymysql.connect(
            host="127.0.0.1",
            port=port,
            user=user,
            password=password,
            charset=charset,
            conv={},
            autocommit=None,
            read_timeout=10,
        )

    def ask(self, statement: str) -> DescribedAnswer:
        """Return the answer to one statement; errors are answers too."""
        try:
            self._connection.query(statement)
        except pymysql.MySQLError as error:
            return DescribedAnswer((), (), int(error.args[0]), str(error.args[1]))
        result = self._connection._result
        if not getattr(result, "fields", None):
            return DescribedAnswer((), ())
        columns = tuple(
            DescribedColumn(
                _text(field.db),
                _text(field.table_name),
                _text(field.org_table),
                _text(field.name),
                _text(field.org_name),
                field.charsetnr,
                field.length,
                field.type_code,
                field.flags,
                field.scale,
            )
            for field in result.fields
        )
        return DescribedAnswer(columns, tuple(result.rows))

    def command(self, code: int, body: bytes) -> bytes:
        """Send any command, and return the first packet of its answer as it came."""
        self._connection._execute_command(code, body)
        connection = self._connection
        header = connection._read_bytes(4)
        payload: bytes = connection._read_bytes(int.from_bytes(header[:3], "little"))
        return payload

    def close(self) -> None:
        """Disconnect."""
        self._connection._force_close()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
