"""The actions of ALTER TABLE on a column, a key or a constraint that exists: DROP, RENAME, and ALTER of a key."""

from typing import Final, NamedTuple

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import Attribute
from protocol.sql.tables.table_elements import if_exists

_OF_KEYS: Final = ("INDEX", "KEY")
_OF_CONSTRAINTS: Final = ("CONSTRAINT", "CHECK")


class AlteredPart(NamedTuple):
    """A part of a table that an action names. `kind` is INDEX or KEY as written, CONSTRAINT, CHECK, FOREIGN, PRIMARY or COLUMN.

    The kind is written from `said` on, the name from `named` on. `exists` is IF EXISTS. `new` is the new name of RENAME, `state` what
    an ALTER makes of a key, such as NOT IGNORED.
    """

    kind: str
    said: int
    name: str = ""
    named: int = -1
    exists: Attribute | None = None
    new: str = ""
    state: Attribute | None = None

    @property
    def is_key(self) -> bool:
        """True for INDEX and KEY."""
        return self.kind in _OF_KEYS


def read_dropped(reader: DdlReader) -> AlteredPart:
    """Read what follows DROP. Raises: UnsupportedSyntax."""
    said = reader.start_of_next()
    if reader.accept("PRIMARY", "KEY"):
        return AlteredPart("PRIMARY", said)
    if reader.accept("FOREIGN", "KEY"):
        return _named(reader, "FOREIGN", said)
    if reader.word() in (*_OF_KEYS, *_OF_CONSTRAINTS):
        return _named(reader, reader.take().upper, said)
    dropped = _column(reader, said)
    reader.accept("RESTRICT") or reader.accept("CASCADE")
    return dropped


def read_renamed(reader: DdlReader) -> AlteredPart:
    """Read COLUMN, INDEX or KEY after RENAME, both names too. Raises: UnsupportedSyntax."""
    said = reader.start_of_next()
    old = _column(reader, said) if reader.word() == "COLUMN" else _named(reader, reader.take().upper, said)
    reader.expect("TO")
    return old._replace(new=reader.name() if old.is_key else reader.column_name())


def read_altered_key(reader: DdlReader) -> AlteredPart:
    """Read INDEX, KEY, CHECK or CONSTRAINT after ALTER. Raises: UnsupportedSyntax."""
    said = reader.start_of_next()
    altered = _named(reader, reader.take().upper, said)
    start = reader.start_of_next()
    no = "NOT " if reader.accept("NOT") else ""
    state, stop = reader.take().upper, reader.stop_of_last()
    if state not in ("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED"):
        raise UnsupportedSyntax("what becomes of an index")
    return altered._replace(state=Attribute(no + state, start, stop, stop))


def _column(reader: DdlReader, said: int) -> AlteredPart:
    reader.accept("COLUMN")
    exists, named = if_exists(reader), reader.start_of_next()
    return AlteredPart("COLUMN", said, reader.column_name(), named, exists)


def _named(reader: DdlReader, kind: str, said: int) -> AlteredPart:
    exists, named = if_exists(reader), reader.start_of_next()
    return AlteredPart(kind, said, reader.name(), named, exists)
