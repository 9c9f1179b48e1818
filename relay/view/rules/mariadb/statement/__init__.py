"""The text of MariaDB's statements as MySQL understands it: clauses rewritten, left out, or a stop with its reason."""
