"""Records the tables of information_schema and performance_schema: `python -m tests.corpus.record_tables [mysql56 ...]` writes
relay/table_queries/definitions/NAME.txt, whose form relay/table_queries/server_tables.py tells."""

import contextlib
import sys
from pathlib import Path

import relay.table_queries
from deploy.servers import SERVERS
from tests.support.described_answer import Asker, DescribedColumn

DEFINITIONS = Path(relay.table_queries.__file__).parent / "definitions"
RECORDED = ("mysql56", "mysql97", "mariadb")
SCHEMAS = ("information_schema", "performance_schema")
BINARY = 63
CHARACTER_BYTES = 3
NOT_FIXED = (31, 39)


def record(name: str) -> str:
    """The file for that server."""
    lines = []
    with SERVERS[name]() as server:
        server.start(server_id=1)
        with contextlib.closing(Asker(server.port, "root", "")) as asker:
            for schema in SCHEMAS:
                for (table,) in asker.ask(f"SHOW TABLES FROM {schema}").rows:
                    spelled = table.decode() if isinstance(table, bytes) else table
                    answer = asker.ask(f"SELECT * FROM {schema}.{spelled} LIMIT 0")
                    if answer.error:
                        print(f"{name}: {schema}.{spelled}: {answer.message}")
                        continue
                    lines.append("\t".join((schema, spelled, *map(column_text, answer.columns))))
    return "\n".join(sorted(lines)) + "\n"


def column_text(column: DescribedColumn) -> str:
    """One column as the file has it."""
    is_text = column.charset != BINARY
    length = column.length // CHARACTER_BYTES if is_text else column.length
    decimals = "-" if column.decimals in NOT_FIXED and is_text else str(column.decimals)
    kind = "t" if is_text else "b"
    return f"{column.name} {column.kind} {length} {column.flags} {decimals} {kind}"


if __name__ == "__main__":
    DEFINITIONS.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or RECORDED:
        (DEFINITIONS / f"{wanted}.txt").write_text(record(wanted), encoding="utf-8")
