"""The text of MariaDB's statements as MySQL understands it: clauses are rewritten, left out, or stop the view with a reason."""
