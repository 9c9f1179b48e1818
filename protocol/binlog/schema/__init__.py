"""The structure of a table: its columns according to Table_map, information_schema and a CREATE statement."""
