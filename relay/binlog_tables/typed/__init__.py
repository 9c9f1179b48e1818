"""The changes of one table, with its columns as SQL types."""
