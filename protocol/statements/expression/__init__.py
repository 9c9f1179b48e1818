"""The readers of a statement's text: tokens, shapes, expressions, LIKE and WHERE."""
