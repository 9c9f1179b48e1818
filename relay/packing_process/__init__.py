"""Binlogs and parts of them are packed, and read back, by a process of its own that yields to all other work."""
