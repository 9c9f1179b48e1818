"""SELECTs from tables, put into the words of SQLite, which runs them over rows of the relay's own."""
