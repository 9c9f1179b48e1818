"""Which storage engine a table has: as the relay recorded it, as a statement in the archive says, or as groups were closed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.archive.schema_file import read_schema
from relay.audit.files import AuditedFile
from relay.audit.store import plain_path

TRANSACTIONAL: Final = frozenset(
    {"innodb", "xtradb", "ndb", "ndbcluster", "tokudb", "rocksdb", "falcon", "bdb", "berkeleydb"}
)
NON_TRANSACTIONAL: Final = frozenset(
    {
        *(
            "myisam",
            "aria",
            "maria",
            "memory",
            "heap",
            "csv",
            "archive",
            "merge",
            "mrg_myisam",
            "blackhole",
            "federated",
        ),
        *("isam", "example", "sequence", "s3", "columnstore", "spider", "connect", "mroonga", "sphinx", "oqgraph"),
    }
)


@dataclass(frozen=True, slots=True)
class Engine:
    """`transactional` None: not known. `name`: "" where only the kind is known; `known_by`: what tells it."""

    transactional: bool | None
    name: str = ""
    known_by: str = ""


UNKNOWN: Final = Engine(None)


def of_name(name: str, known_by: str) -> Engine:
    """The engine of this name."""
    lower = name.lower()
    return Engine(True if lower in TRANSACTIONAL else False if lower in NON_TRANSACTIONAL else None, name, known_by)


def recorded_engines(files: list[AuditedFile]) -> dict[str, Engine]:
    """schema.table -> engine, as the relay asked the source. A table that had engines of both kinds is not known."""
    if not files or "://" in files[0].path:
        return {}
    directory = Path(plain_path(files[0].path)).parent
    try:
        schema = read_schema(directory)
    except OSError:
        return {}
    found: dict[str, Engine] = {}
    for table in schema.latest():
        versions = [
            of_name(version.engine, "recorded") for version in schema.known(table.schema, table.name) if version.engine
        ]
        kinds = {version.transactional for version in versions}
        if len(kinds) == 1:
            found[f"{table.schema}.{table.name}"] = versions[-1]
    return found


def evidence(alone: Iterable[tuple[str, str | None, int]]) -> dict[str, Engine]:
    """Engines by how groups end in which a table was changed alone. `alone`: (table, closed_by, how many).

    A server ends a group with Xid where an engine with transactions took part, with COMMIT where none did; with ROLLBACK
    it says nothing of one table.
    """
    closed: dict[str, set[str]] = {}
    for table, by, count in alone:
        if by in ("xid", "commit") and count:
            closed.setdefault(table, set()).add(by)
    return {
        table: Engine("xid" in by, "", "its groups end with Xid" if "xid" in by else "its groups end with COMMIT")
        for table, by in closed.items()
    }


def best_of(*sources: Mapping[str, Engine]) -> dict[str, Engine]:
    """For each table what the first source that knows the kind says."""
    made: dict[str, Engine] = {}
    for source in sources:
        for table, engine in source.items():
            if engine.transactional is not None and table not in made:
                made[table] = engine
    return made
