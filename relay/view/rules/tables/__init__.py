"""The source's tables at one place of its binlogs, as far as they are known and as the rules need them."""
