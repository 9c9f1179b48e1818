"""The known facts of a source's schema, by place: the statements in stretches of its binlogs, and its own answers."""

from dataclasses import dataclass

from protocol.sql.tables.source_table import Table, TableName
from relay.schema_history.logged_definition import LoggedDefinition

Place = tuple[int, int]
"""(number of the file, offset in it): the order of positions in one archive. (N, 0) is the beginning of file N."""


@dataclass(frozen=True, slots=True)
class DefinedSpan:
    """[first, last): every statement in it that defines tables is known, with its text or without."""

    first: Place
    last: Place
    definitions: tuple[tuple[Place, LoggedDefinition], ...] = ()


@dataclass(frozen=True, slots=True)
class AskedTable:
    """The source's answer at a place: the table, or that there was none."""

    place: Place
    key: TableName
    table: Table | None


@dataclass(frozen=True, slots=True)
class AskedCharset:
    """The source's answer at a place about a schema's character set and collation for new tables; '' of the latter: not known."""

    place: Place
    schema: str
    charset: str
    collation: str = ""
