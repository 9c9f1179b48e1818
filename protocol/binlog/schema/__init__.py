"""What a table looks like: the columns that Table_map, information_schema and a CREATE statement tell."""
