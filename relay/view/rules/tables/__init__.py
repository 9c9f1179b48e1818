"""What is known of the source's tables at one place of its binlogs, as the rules need it."""
