"""Global transaction identifiers: MySQL's sets of (uuid, tag, number), MariaDB's positions by replication domain."""
