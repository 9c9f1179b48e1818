"""MySQL and MariaDB replication: bytes and rules. No sockets, files, clocks or event loops in here."""
