"""Where the statements of the corpus are from."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER, HEADER_SIZE
from protocol.binlog.query import decode_execute_load_query, decode_query, decode_query_compressed
from protocol.errors import ProtocolError
from protocol.sql.kind import kind_of
from tests.sql_verdicts.offline_histories import generated
from tests.sql_verdicts.random_sql import RandomStatements
from tests.sql_verdicts.readers import HISTORY

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST: Final = 2048
"""Bytes of a statement: longer ones have nothing but more rows."""
_RANDOM: Final = 7000
_OF_HISTORY: Final = 80
"""Definitions of a generator in a row that are a history."""
_VERBS: Final = (
    "ALTER|ANALYZE|BEGIN|CALL|CHECK|COMMIT|CREATE|DELETE|DO|DROP|FLUSH|GRANT|INSERT|LOAD|LOCK|OPTIMIZE|RELEASE|RENAME|REPAIR|REPLACE|REVOKE|ROLLBACK"
    "|SAVEPOINT|SELECT|SET|START|TRUNCATE|UNLOCK|UPDATE|USE|WITH|XA"
)
_STATEMENT: Final = re.compile(
    rf"(?:\s|\(|/\*(?![!M]).*?\*/|/\*M?!\d*|\*/|(?:--|\#)[^\n]*\n)*(?:{_VERBS})(?:[\s(/#;]|--|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_PLACEHOLDER: Final = "t1"
"""In place of what an f-string puts in."""


def collected() -> Iterator[tuple[str, bytes]]:
    """(origin, statement) of all, some of them more than once."""
    for origin, texts in (*_literals(), *_text_files()):
        for text in texts:
            if _STATEMENT.match(text) is not None:
                yield origin, text.encode("utf-8", "surrogatepass")
    for path in sorted((ROOT / "tests" / "corpus").glob("*/*.binlog")):
        for statement in _of_binlog(path.read_bytes()):
            yield f"binlogs {path.parent.name}", statement
    for origin, made in generated():
        statements = [one.encode() for text in made for one in text.split(";;")]
        for statement in statements:
            yield origin, statement
        defining = [one for one in statements if kind_of(one).may_define]
        for at in range(0, len(defining), _OF_HISTORY):
            yield f"history {origin}", HISTORY.join(defining[at : at + _OF_HISTORY])
    drawn = RandomStatements(1)
    for _ in range(_RANDOM):
        yield "random_sql", drawn.statement().encode()


def _literals() -> Iterator[tuple[str, list[str]]]:
    """Texts in the tests' sources: parametrizations, workloads, cases."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        place = path.relative_to(ROOT).parts
        if place[1] == "sql_verdicts":
            continue
        yield (
            f"literals {'/'.join(place[1:3]) if len(place) > 3 else place[1]}",
            list(_texts_of(ast.parse(path.read_text(encoding="utf-8")))),
        )


def _texts_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        pieces = [getattr(one, "value", "") if isinstance(one, ast.Constant) else _PLACEHOLDER for one in node.values]
        yield "".join(map(str, pieces))
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        elif isinstance(node.value, bytes):
            yield node.value.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()
        return
    for child in ast.iter_child_nodes(node):
        yield from _texts_of(child)


def _text_files() -> Iterator[tuple[str, list[str]]]:
    odd = (ROOT / "tests" / "support" / "odd_statements.txt").read_text(encoding="utf-8").splitlines()
    yield "odd_statements", [line.lstrip("!").replace("⏎", "\n").replace("{db}", "odd") for line in odd]
    for path in sorted((ROOT / "deploy").rglob("*.sql")):
        yield "deploy", re.split(r";\s*\n", path.read_text(encoding="utf-8"))


def _of_binlog(data: bytes) -> Iterator[bytes]:
    """The texts of its Query events, as far as it can be read."""
    at = 4
    described: FormatDescription | None = None
    while at + HEADER_SIZE <= len(data):
        _time, kind, _server, length, _end, _flags = HEADER.unpack_from(data, at)
        if length < HEADER_SIZE or at + length > len(data):
            return
        body = data[at + HEADER_SIZE : at + length]
        at += length
        try:
            if kind == EventType.FORMAT_DESCRIPTION:
                described = decode_format_description(body)
                continue
            if described is None:
                continue
            if described.checksum:
                body = body[:-CHECKSUM_SIZE]
            if kind == EventType.QUERY:
                yield decode_query(body, described).text
            elif kind == EventType.EXECUTE_LOAD_QUERY:
                yield decode_execute_load_query(body, described).text
            elif kind == EventType.QUERY_COMPRESSED:
                yield decode_query_compressed(body, described).text
        except ProtocolError:
            continue


def distinct(found: Iterable[tuple[str, bytes]]) -> dict[bytes, str]:
    """Statement -> its first origin; none that is longer than LONGEST, but for histories."""
    made: dict[bytes, str] = {}
    for origin, statement in found:
        if 0 < len(statement) <= LONGEST or HISTORY in statement:
            made.setdefault(statement, origin)
    return made
