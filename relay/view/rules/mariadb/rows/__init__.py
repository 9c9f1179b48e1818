"""Table_map and row events of MariaDB as MySQL reads them, and the known facts of their tables."""
