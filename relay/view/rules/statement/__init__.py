"""A logged statement: its words, the tables that it names, and the places of these in its text."""
