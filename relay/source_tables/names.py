"""Names of tables as servers compare them."""

from protocol.sql.tables.source_table import TableName


def in_lower_case(name: TableName) -> TableName:
    """Return the name as servers with lower_case_table_names = 1 or 2 compare it; no binlog says which setting its source has."""
    return name[0].lower(), name[1].lower()
