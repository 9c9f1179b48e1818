"""What a version of MySQL can read, and the words for what it cannot."""
