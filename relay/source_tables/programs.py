"""A view, trigger, function or procedure of the source, with the further tables that statements that name or fire it affect."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from protocol.sql.tables.source_table import TableName

VIEW: Final = "VIEW"
TRIGGER: Final = "TRIGGER"
FUNCTION: Final = "FUNCTION"
FIRES: Final = {
    "INSERT": frozenset(("INSERT", "")),
    "REPLACE": frozenset(("INSERT", "DELETE", "")),
    "UPDATE": frozenset(("UPDATE", "")),
    "DELETE": frozenset(("DELETE", "")),
}
"""The events of triggers by the change that fires them; "": not known."""
_FIRES_BY_WORD: Final = {**FIRES, "LOAD": FIRES["REPLACE"], "UPDATE": FIRES["UPDATE"] | {"INSERT"}}
"""The events of triggers by the verbs in a statement: UPDATE may be that of INSERT … ON DUPLICATE KEY UPDATE."""

ProgramName = tuple[str, str, str]
"""(kind, schema, name); the kind is VIEW, TRIGGER, FUNCTION or PROCEDURE."""


class BodyChange(NamedTuple):
    """A change in a body. `verb` is INSERT, REPLACE, UPDATE or DELETE; `tables` are those that it writes, or may write. `on_duplicate`:
    it is INSERT … ON DUPLICATE KEY UPDATE. `several`: it writes more than one of them, or may."""

    verb: str
    tables: tuple[TableName, ...]
    on_duplicate: bool = False
    several: bool = False


class RoutineBody(NamedTuple):
    """The content of a body. `calls` are (schema, name) of possible functions and procedures. Duplicates are listed once."""

    changes: tuple[BodyChange, ...] = ()
    calls: tuple[TableName, ...] = ()


class NamedWords(NamedTuple):
    """The words of a body. `names` may be tables, views, functions or procedures; `tables` are those of them in places of tables.
    `columns`, in lower case, may be columns whose values are compared. `compares_rows`: it may compare rows as a whole. `uses_keys`:
    duplicate rows are skipped, changed or replaced. `compares_values`: it may compare texts that are no columns'. `verbs` change rows.
    `differs` is a function in it, or a comparison, that has another result on replicas; "": there is none.
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
        """Return them for JSON, equal for equal words."""
        sets = (sorted(self.names), sorted(self.tables), sorted(self.columns))
        return [*sets, self.compares_rows, self.uses_keys, self.compares_values, sorted(self.verbs), self.differs]


class KnownProgram(NamedTuple):
    """A program. `table`, `event` and `timing` belong to a trigger; `event` is INSERT, UPDATE, DELETE, "": unknown. `words` are its
    body's, for a view of a MariaDB. `text` is that of a trigger from its body on, and of a routine from its parameters on, as logged
    under `sql_mode`. `body` is a trigger's or a routine's. `reads` are a view's tables.
    """

    name: ProgramName
    words: NamedWords = NamedWords()
    table: TableName | None = None
    event: str = ""
    text: str = ""
    body: RoutineBody = RoutineBody()
    reads: tuple[TableName, ...] = ()
    timing: str = ""
    sql_mode: int = 0

    @property
    def title(self) -> str:
        """The name for people."""
        kind, schema, name = self.name
        return f"the {kind.lower()} {schema}.{name}"

    @property
    def schema(self) -> str:
        """The schema of names without one."""
        return self.name[1]

    @property
    def set_off_with(self) -> TableName:
        """The name in statements that run it: its own, or that of a trigger's table."""
        return self.table or self.name[1:]

    def is_set_off_by(self, words: NamedWords) -> bool:
        """Return whether a statement that names it, or its table, may run it."""
        return self.name[0] != TRIGGER or any(self.event in _FIRES_BY_WORD[verb] for verb in words.verbs)

    def kept(self) -> list[Any]:
        """Return it for JSON, equal for equal programs; `known_program_of` is the inverse."""
        return [self.name, self.words.kept(), *self[2:]]


def known_program_of(kept: Sequence[Any]) -> KnownProgram:
    """Return the program that `KnownProgram.kept` describes. Raises: ValueError, TypeError."""
    (kind, schema, name), words, table, event, text, (changes, calls), reads, *session = kept
    body = RoutineBody(
        tuple(BodyChange(verb, _names(tables), *flags) for verb, tables, *flags in changes), _names(calls)
    )
    on_table = None if table is None else (str(table[0]), str(table[1]))
    return KnownProgram((kind, schema, name), _words(words), on_table, event, text, body, _names(reads), *session)


def _words(kept: Sequence[Any]) -> NamedWords:
    names, tables, columns, rows, keys, values, verbs, differs = kept
    sets = frozenset(_names(names)), frozenset(_names(tables)), frozenset(columns)
    return NamedWords(*sets, bool(rows), bool(keys), bool(values), frozenset(verbs), str(differs))


def _names(kept: Sequence[Any]) -> tuple[TableName, ...]:
    return tuple((schema, name) for schema, name in kept)
