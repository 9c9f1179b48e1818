"""Table_map and row events of MariaDB as MySQL reads them, and what is known of the tables that they are of."""
