"""Damaged archived files, fetched again from where they came from and put in place of what is damaged."""
