"""A logged statement: its words, the tables that it names, and where in its text things stand."""
