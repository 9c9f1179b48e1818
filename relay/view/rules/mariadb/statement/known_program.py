"""A view, a trigger, a function or a procedure of the source: what statements that name it, or set it off, touch besides."""

import json
from typing import Final, NamedTuple

from protocol.sql.tables.source_table import TableName

VIEW: Final = "VIEW"
TRIGGER: Final = "TRIGGER"
_FIRES: Final = {
    "INSERT": frozenset(("INSERT", "")), "LOAD": frozenset(("INSERT", "DELETE", "")),
    "REPLACE": frozenset(("INSERT", "DELETE", "")), "UPDATE": frozenset(("UPDATE", "INSERT", "")), "DELETE": frozenset(("DELETE", "")),
}  # fmt: skip
"""Events of triggers by what a statement does; "": not known."""

ProgramName = tuple[str, str, str]
"""(kind, schema, name); kind: VIEW, TRIGGER, FUNCTION, PROCEDURE."""


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

    def encode(self) -> list[object]:
        """For JSON, the same for the same words."""
        sets = (sorted(self.names), sorted(self.tables), sorted(self.columns))
        return [*sets, self.compares_rows, self.uses_keys, self.compares_values, sorted(self.verbs), self.differs]


def decode_named_words(told: list[object]) -> NamedWords:
    """The inverse of `NamedWords.encode`. Raises: ValueError, TypeError."""
    names, tables, columns, rows, keys, values, verbs, differs = told
    return NamedWords(
        _names(names), _names(tables), _words(columns), bool(rows), bool(keys), bool(values), _words(verbs), str(differs)
    )  # fmt: skip


def _names(told: object) -> frozenset[TableName]:
    if not isinstance(told, list):
        raise TypeError("no list of names")
    return frozenset((schema, name) for schema, name in told)


def _words(told: object) -> frozenset[str]:
    if not isinstance(told, list):
        raise TypeError("no list of words")
    return frozenset(told)


class KnownProgram(NamedTuple):
    """words: of its body. table, event: of a trigger; event: "": not known."""

    name: ProgramName
    words: NamedWords
    table: TableName | None = None
    event: str = ""

    @property
    def told(self) -> str:
        """For people."""
        kind, schema, name = self.name
        return f"the {kind.lower()} {schema}.{name}"

    def is_set_off_by(self, words: NamedWords) -> bool:
        """Whether a statement that names it, or its table, may run it."""
        return self.name[0] != TRIGGER or any(self.event in _FIRES[verb] for verb in words.verbs)

    def encode(self) -> str:
        """One line of text, the same for the same program."""
        return json.dumps([self.name, self.words.encode(), self.table, self.event], ensure_ascii=False)


def decode_known_program(line: str) -> KnownProgram:
    """The inverse of `KnownProgram.encode`. Raises: ValueError, TypeError."""
    (kind, schema, name), words, table, event = json.loads(line)
    return KnownProgram(
        (kind, schema, name), decode_named_words(words), tuple(table) if table is not None else None, event
    )
