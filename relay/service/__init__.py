"""The relay as one process: its parts, started, joined and stopped."""
