"""Statements of a newer source that a target would refuse, ignore or execute differently, and how they are rewritten if possible."""
