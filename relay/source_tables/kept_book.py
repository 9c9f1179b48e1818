"""The stored form of a book of tables: lines of JSON, as docs/ARCHITECTURE.md describes."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from protocol.errors import RelayError
from protocol.sql.tables.source_table import CharsetDefault, TableName
from relay.source_tables.known_table import KnownTable, known_table_of
from relay.source_tables.programs import KnownProgram, ProgramName, known_program_of

KEPT_VERSION: Final = 1


class KeptTablesUnreadable(RelayError):
    """The stored state of the tables has another version, or is damaged."""


class BookFacts(NamedTuple):
    """Everything that a book knows except its tables, see `SourceTables`. `temporary`: by connection, schema, table, oldest first."""

    folds_case: bool
    charsets: dict[str, CharsetDefault]
    complete: dict[str, bool]
    absent: dict[TableName, bool]
    doubtful: dict[TableName, bool]
    doubtful_words: dict[TableName, bool]
    temporary: dict[tuple[int, str, str], KnownTable]
    programs: dict[ProgramName, KnownProgram]


def written(facts: BookFacts, rows: Sequence[str]) -> bytes:
    """Return the state, equal for equal facts and tables; b"": nothing is known. `rows` are those of `row_of`, in order."""
    kept: dict[str, Any] = {
        "folds_case": facts.folds_case,
        "charsets": sorted(facts.charsets.items()),
        "complete": sorted(facts.complete.items()),
        "absent": sorted(facts.absent),
        "doubtful": sorted(facts.doubtful),
        "doubtful_words": sorted(facts.doubtful_words),
        "temporary": [[*key, known.kept()] for key, known in facts.temporary.items()],
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
        absent, doubtful, doubtful_words = (
            dict.fromkeys(((schema, name) for schema, name in kept[which]), True)
            for which in ("absent", "doubtful", "doubtful_words")
        )
        facts = BookFacts(
            bool(kept["folds_case"]),
            {schema: (charset, collation) for schema, (charset, collation) in kept["charsets"]},
            dict(kept["complete"]),
            absent,
            doubtful,
            doubtful_words,
            {(thread, schema, name): known_table_of(known) for thread, schema, name, known in kept["temporary"]},
            {program.name: program for program in map(known_program_of, kept["programs"])},
        )
        return facts, [(known_table_of(json.loads(row)), row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise KeptTablesUnreadable(f"what was kept of the source's tables cannot be read: {error}") from error


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
