"""`python -m tests.bench.python_replication`: python-mysql-replication reads rows from a source; prints rows and seconds.

Takes [port, user, password, file, rows] as JSON on its standard input, so that no password is in a list of processes.
"""

import json
import sys
import time


def main() -> None:
    """Reads so many rows of the file, and prints [rows, processor seconds of this process] as JSON."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    port, user, password, file, wanted = json.load(sys.stdin)
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": port, "user": user, "passwd": password},
        server_id=4711,
        log_file=file,
        log_pos=4,
        is_mariadb=True,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    rows = 0
    begun = 0.0
    for event in stream:
        if rows == 0:
            begun = time.process_time()  # the table's columns were asked for by now
        rows += len(event.rows)
        if rows >= wanted:
            break
    used = time.process_time() - begun
    stream.close()
    print(json.dumps([rows, used]))


if __name__ == "__main__":
    main()
