"""The cursors that read expressions, queries, statements and programs into the constructs that they are made of."""
