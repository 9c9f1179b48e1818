"""Records binlogs with a row of every column type, and beside each the images that the kernel reads in it.

    python -m tests.corpus.record_rows [NAME ...]

tests/interop/test_row_values.py holds the same types against SQL; run it first, for what is recorded here is what is read.
Values that would make the recording large are left out.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from deploy.servers import SERVERS
from tests.interop.test_row_values import CASES, EVERYWHERE, ONLY, SESSION, describer, unpacked
from tests.support.kernel_builds import builds
from tests.support.kernel_columns import changed_rows

ROWS: Final = Path(__file__).resolve().parent / "rows"
RECORDED: Final = ("mysql56", "mysql97-full", "mariadb-full", "mariadb118")
_LARGE: Final = ("REPEAT", "CONCAT", "999999999999999999999999999", "s63")


def record(name: str) -> None:
    """Makes one recording again."""
    case = CASES[name]
    types = EVERYWHERE + ONLY[case.server]
    with SERVERS[case.server]() as server:
        server.start(options=list(case.options))
        server.sql("CREATE DATABASE one")
        statements = [*SESSION, "FLUSH BINARY LOGS"]
        for number, (kind, _, values) in enumerate(types):
            small = [value for value in values if not any(word in value for word in _LARGE) and len(value) < 300]
            if any(word in kind for word in _LARGE) or not small:
                continue
            statements.append(f"CREATE TABLE t{number} (id INT PRIMARY KEY, c {kind})")
            rows = ", ".join(f"({i}, {value})" for i, value in enumerate([*small, "NULL"]))
            statements.append(f"INSERT INTO t{number} VALUES {rows}")
            if number % 10 == 0:
                statements += [f"UPDATE t{number} SET id = id + 100", f"DELETE FROM t{number}"]
        server.execute_many([*statements, "FLUSH BINARY LOGS"], "one")
        data = server.binlogs()[-2].read_bytes()
        descriptions: dict[str, str] = {}
        describe = describer(server)

        def remembered(schema: bytes, table: bytes, kinds: bytes) -> bytes | None:
            packed = describe(schema, table, kinds)
            descriptions[table.decode()] = "" if packed is None else packed.hex()
            return packed

        rows_read = changed_rows(
            builds()[0], data, describe=remembered if case.described else None, unpack_payload=unpacked
        ).rows
    (ROWS / f"{name}.binlog").write_bytes(data)
    images: list[list[Any]] = [[row["operation"], row["table"], row["before"], row["after"]] for row in rows_read]
    lines = ",\n".join(json.dumps(image, ensure_ascii=False) for image in images)
    described = json.dumps(descriptions)
    (ROWS / f"{name}.json").write_text(f'{{"descriptions": {described},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or RECORDED:
        record(wanted)
        print(wanted)
