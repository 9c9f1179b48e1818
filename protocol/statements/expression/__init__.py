"""How the text of a statement is read: tokens, shapes, expressions, LIKE and WHERE."""
