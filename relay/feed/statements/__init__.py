"""What the source's statements say, and what they do to a fed table's columns."""
