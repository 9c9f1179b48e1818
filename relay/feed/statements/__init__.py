"""The source's statements, and their effects on a fed table's columns."""
