"""The archive's files: the calls that touch them, their names and layouts, and how they are scanned."""
