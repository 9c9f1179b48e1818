"""`python -m tests.bench.audit_reader DIRECTORY TURNS`: the data source's reader alone, in one process and without Spark.

Prints the least processor seconds of reading everything at each level, by its name, as JSON.
"""

import json
import sys
import time


def main() -> None:
    """Reads each level `turns` times; every batch is made and thrown away."""
    from relay.binlog_tables.arrow import read

    path, turns = sys.argv[1], int(sys.argv[2])
    results = {}
    for level in ("events", "transactions", "rows"):
        used = []
        for _ in range(turns):
            begun = time.process_time()
            for _batch in read(path, level):
                pass
            used.append(time.process_time() - begun)
        results[level] = max(min(used), 0.01)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
