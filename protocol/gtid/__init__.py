"""Global transaction identifiers: MySQL's sets of (uuid, tag, number), and MariaDB's positions by replication domain."""
