"""Damaged archived files, fetched again from their origin and put in place of the damaged ones."""
