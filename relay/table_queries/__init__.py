"""SELECTs from the tables that servers have of themselves: rows of the relay's own, in an SQLite created for one statement."""
