"""Tables that are read from the source itself: chunks of their rows between two places of the archive, and comparisons at one."""
