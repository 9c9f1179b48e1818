"""A view, a trigger, a function or a procedure of the source: what statements that name it, or set it off, touch besides."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from protocol.sql.tables.source_table import TableName

VIEW: Final = "VIEW"
TRIGGER: Final = "TRIGGER"
FUNCTION: Final = "FUNCTION"
_FIRES: Final = {
    "INSERT": frozenset(("INSERT", "")), "LOAD": frozenset(("INSERT", "DELETE", "")),
    "REPLACE": frozenset(("INSERT", "DELETE", "")), "UPDATE": frozenset(("UPDATE", "INSERT", "")), "DELETE": frozenset(("DELETE", "")),
}  # fmt: skip
"""Events of triggers by what a statement does; "": not known."""

ProgramName = tuple[str, str, str]
"""(kind, schema, name); kind: VIEW, TRIGGER, FUNCTION, PROCEDURE."""


class BodyChange(NamedTuple):
    """verb: INSERT, REPLACE, UPDATE or DELETE; tables: those that it writes, or may write. on_duplicate: of INSERT … ON DUPLICATE KEY
    UPDATE. several: it writes more than one of them, or may."""

    verb: str
    tables: tuple[TableName, ...]
    on_duplicate: bool = False
    several: bool = False


class RoutineBody(NamedTuple):
    """calls: (schema, name) of what may be functions and procedures. What occurs twice is listed once."""

    changes: tuple[BodyChange, ...] = ()
    calls: tuple[TableName, ...] = ()


class NamedWords(NamedTuple):
    """names: what may be a table, a view, a function or a procedure. tables: of these, those that stand where tables do. columns: in
    lower case, what may be columns whose values are compared. compares_rows: it may compare rows as a whole. uses_keys: rows that are
    there twice are passed over, changed or replaced. compares_values: it may compare texts that are no columns'. verbs: of what it does
    to rows. differs: a function in it, or a comparison, of which replicas make something else; "": there is none.
    """

    names: frozenset[TableName] = frozenset()
    tables: frozenset[TableName] = frozenset()
    columns: frozenset[str] = frozenset()
    compares_rows: bool = False
    uses_keys: bool = False
    compares_values: bool = False
    verbs: frozenset[str] = frozenset()
    differs: str = ""

    def kept(self) -> list[Any]:
        """For JSON, the same for the same words."""
        sets = (sorted(self.names), sorted(self.tables), sorted(self.columns))
        return [*sets, self.compares_rows, self.uses_keys, self.compares_values, sorted(self.verbs), self.differs]


class KnownProgram(NamedTuple):
    """table, event: of a trigger; event: INSERT, UPDATE, DELETE, "": not known. words: of its body, for a view of a MariaDB. text: of a
    trigger from its body on, as it was logged. body: of a trigger or a routine. reads: what a view selects from.
    """

    name: ProgramName
    words: NamedWords = NamedWords()
    table: TableName | None = None
    event: str = ""
    text: str = ""
    body: RoutineBody = RoutineBody()
    reads: tuple[TableName, ...] = ()

    @property
    def told(self) -> str:
        """For people."""
        kind, schema, name = self.name
        return f"the {kind.lower()} {schema}.{name}"

    @property
    def schema(self) -> str:
        """Names without a schema are in it."""
        return self.name[1]

    @property
    def set_off_with(self) -> TableName:
        """The name in statements that set it off: its own, a trigger's table's."""
        return self.table or self.name[1:]

    def is_set_off_by(self, words: NamedWords) -> bool:
        """Whether a statement that names it, or its table, may run it."""
        return self.name[0] != TRIGGER or any(self.event in _FIRES[verb] for verb in words.verbs)

    def kept(self) -> list[Any]:
        """For JSON, the same for the same program; `known_program_of` is the inverse."""
        return [self.name, self.words.kept(), *self[2:]]


def known_program_of(kept: Sequence[Any]) -> KnownProgram:
    """The program that `KnownProgram.kept` describes. Raises: ValueError, TypeError."""
    (kind, schema, name), words, table, event, text, (changes, calls), reads = kept
    body = RoutineBody(
        tuple(BodyChange(verb, _names(tables), *flags) for verb, tables, *flags in changes), _names(calls)
    )
    on_table = None if table is None else (str(table[0]), str(table[1]))
    return KnownProgram((kind, schema, name), _words(words), on_table, event, text, body, _names(reads))


def _words(kept: Sequence[Any]) -> NamedWords:
    names, tables, columns, rows, keys, values, verbs, differs = kept
    sets = frozenset(_names(names)), frozenset(_names(tables)), frozenset(columns)
    return NamedWords(*sets, bool(rows), bool(keys), bool(values), frozenset(verbs), str(differs))


def _names(kept: Sequence[Any]) -> tuple[TableName, ...]:
    return tuple((schema, name) for schema, name in kept)
