"""Stretches of the archive as plain binlogs, which stock mysqlbinlog reads and a server applies."""
