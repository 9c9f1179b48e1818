"""The translation of SELECTs from tables for SQLite, which runs them over rows of the relay's own."""
