"""The stored form of a book of tables: lines of JSON, as docs/ARCHITECTURE.md describes."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from protocol.errors import RelayError
from protocol.sql.tables.source_table import CharsetDefault, TableName
from relay.source_tables.known_table import KnownTable, known_table_of
from relay.source_tables.names import in_lower_case
from relay.source_tables.programs import KnownProgram, ProgramName, known_program_of

KEPT_VERSION: Final = 1

NamesAlike = dict[TableName, frozenset[TableName]]
"""Names by what they are in lower case."""


class KeptTablesUnreadable(RelayError):
    """The stored state of the tables has another version, or is damaged."""


class BookFacts(NamedTuple):
    """All that a book knows but for its tables, see `SourceTables`. temporary: by connection, schema and table."""

    folds_case: bool
    charsets: dict[str, CharsetDefault]
    complete: dict[str, bool]
    absent: NamesAlike
    doubtful: NamesAlike
    doubtful_words: dict[TableName, bool]
    temporary: dict[tuple[int, str, str], KnownTable]
    programs: dict[ProgramName, KnownProgram]


def written(facts: BookFacts, rows: Sequence[str]) -> bytes:
    """Return the state, equal for equal facts and tables; b"": nothing is known. `rows` are those of `row_of`, in order."""
    kept: dict[str, Any] = {
        "folds_case": facts.folds_case,
        "charsets": sorted(facts.charsets.items()),
        "complete": sorted(facts.complete.items()),
        "absent": _in_order(facts.absent),
        "doubtful": _in_order(facts.doubtful),
        "doubtful_words": sorted(facts.doubtful_words),
        "temporary": [[*key, known.kept()] for key, known in sorted(facts.temporary.items())],
        "programs": [program.kept() for _name, program in sorted(facts.programs.items())],
    }
    if not (rows or any(kept.values())):
        return b""
    return "\n".join([_json({"version": KEPT_VERSION, **kept}), *rows]).encode()


def row_of(known: KnownTable) -> str:
    """Return the line of a table."""
    return _json(known.kept())


def read_kept(state: bytes) -> tuple[BookFacts, list[tuple[KnownTable, str]]]:
    """Return the facts, and each table with its line, of a result of `written`. Raises: KeptTablesUnreadable."""
    try:
        first, *rows = state.decode().split("\n")
        kept = json.loads(first)
        if kept["version"] != KEPT_VERSION:
            raise ValueError(f"its version is {kept['version']}, and this program reads version {KEPT_VERSION}")
        facts = BookFacts(
            bool(kept["folds_case"]),
            {schema: (charset, collation) for schema, (charset, collation) in kept["charsets"]},
            dict(kept["complete"]),
            _by_lower_case(kept["absent"]),
            _by_lower_case(kept["doubtful"]),
            dict.fromkeys(((schema, word) for schema, word in kept["doubtful_words"]), True),
            {(thread, schema, name): known_table_of(known) for thread, schema, name, known in kept["temporary"]},
            {program.name: program for program in map(known_program_of, kept["programs"])},
        )
        return facts, [(known_table_of(json.loads(row)), row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise KeptTablesUnreadable(f"what was kept of the source's tables cannot be read: {error}") from error


def _in_order(names: NamesAlike) -> list[TableName]:
    return sorted(name for alike in names.values() for name in alike)


def _by_lower_case(kept: Sequence[Sequence[str]]) -> NamesAlike:
    made: NamesAlike = {}
    for schema, table in kept:
        lower = in_lower_case((schema, table))
        made[lower] = made.get(lower, frozenset()) | {(schema, table)}
    return made


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
