"""Statements as servers read them: the tables that they name, and whether the order of rows matters to them."""
