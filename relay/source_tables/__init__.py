"""The one book of the source's tables: which exist at a place of its binlogs, and their definitions."""
