"""SHOW BINARY LOGS and SHOW MASTER STATUS: the archive as a server shows its binlogs, up to what is published."""

from collections.abc import Sequence

from protocol.gtid.gtid_set import GtidSet
from protocol.resultset import Rows
from relay.admin.dialect import Dialect
from relay.archive.storage.archived_file import ArchivedFile


def binary_logs(files: Sequence[ArchivedFile], dialect: Dialect) -> Rows:
    """Return name and sizes. MySQL has the column Encrypted since 8.0.14; an archived file is always plain."""
    if dialect.is_mysql(8, 0, 14):
        return Rows(("Log_name", "File_size", "Encrypted"), tuple((file.name, file.end, "No") for file in files))
    return Rows(("Log_name", "File_size"), tuple((file.name, file.end) for file in files))


def master_status(files: Sequence[ArchivedFile], dialect: Dialect, executed: GtidSet) -> Rows:
    """Return the end of the archive. MySQL has the column Executed_Gtid_Set since 5.6.5."""
    columns: tuple[str, ...] = ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB")
    values: tuple[str | int, ...] = ("", "")
    if dialect.is_mysql(5, 6, 5):
        columns += ("Executed_Gtid_Set",)
        values += (str(executed),)
    return Rows(columns, tuple((file.name, file.end, *values) for file in files[-1:]))
