"""The facts that a replica reported of itself by user variables before its dump request."""

from protocol.resultset import Value


def variable(user_variables: dict[str, Value], *names: str) -> Value:
    """Return the first of these user variables that the replica set. The servers renamed them in MySQL 8.0.26."""
    for name in names:
        value = user_variables.get(name)
        if value is not None:
            return value
    return None


def replica_checksum(user_variables: dict[str, Value]) -> str | None:
    """Return the replica's `binlog_checksum`, in upper case; None: it does not know checksums."""
    value = variable(user_variables, "source_binlog_checksum", "master_binlog_checksum")
    return None if value is None else str(value).upper()


def mariadb_capability(user_variables: dict[str, Value]) -> int:
    """Return `@mariadb_slave_capability`; 0 for a client that does not set it (MySQL, and MariaDB before 5.3)."""
    value = user_variables.get("mariadb_slave_capability")
    try:
        return int(value) if value is not None else 0
    except ValueError:
        return 0
