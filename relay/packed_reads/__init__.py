"""Packed binlogs, read as if they were plain: each frame fetched once for all readers, and kept while there is room."""
