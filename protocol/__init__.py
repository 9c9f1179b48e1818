"""MySQL and MariaDB replication: bytes and rules. This package uses no sockets, files, clocks or event loops."""
