"""The functions, operators, comparisons and clauses that a statement is made of, with the classes of values that each gets."""
