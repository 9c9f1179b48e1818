"""The abilities of a version of MySQL, and the words for what it cannot read."""
